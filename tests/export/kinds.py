"""A recalibration of every kind that there is, for three members."""

from counterpoint.recalibration.choose import NONE
from counterpoint.recalibration.families import families
from counterpoint.records.recalibrated import Parameter, Recalibration, Slope

_VALUES = (0.4, -0.3, 0.7)


def kinds(members: int) -> dict[str, Recalibration]:
    """Every family by its name, with made-up parameters, and none."""
    found = {"none": NONE}
    for family in families(members, shifted=True):
        values = _VALUES[:members] if family.acts == "per-member" else _VALUES[:1]
        slopes = tuple(Slope(signal, Parameter(1.5)) for signal in family.signals)
        found[family.name] = Recalibration(family.acts, family.images, tuple(map(Parameter, values)), slopes)
    return found


KINDS = kinds(3)
