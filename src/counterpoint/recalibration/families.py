"""The recalibrations that there are to choose from.

A temperature T divides logits. Where it acts (`acts`):
- "before": on every member's logits, then the mean of the probabilities;
- "after": on the log of the mean probability;
- "per-member": one temperature per member, fitted to that member alone, then the mean of the probabilities.

With signals it depends on the image: log T = log temperature + Σ slope · signal. A slope is never negative: a sign that
an image is hard never raises the confidence.
"""

from dataclasses import dataclass

from counterpoint.errors import InputError
from counterpoint.records.recalibrated import Acts, FitImages, Signal


@dataclass(frozen=True)
class Family:
    """A recalibration before it is fitted."""

    name: str
    acts: Acts
    images: FitImages
    signals: tuple[Signal, ...] = ()

    def parameters(self, members: int) -> int:
        return (members if self.acts == "per-member" else 1) + len(self.signals)


_CLEAN = (
    Family("before", "before", "clean"),
    Family("after", "after", "clean"),
    Family("per-member", "per-member", "clean"),
)
_SHIFTED = (
    Family("before, shifted", "before", "shifted"),
    Family("after, shifted", "after", "shifted"),
    Family("per-member, shifted", "per-member", "shifted"),
    Family("by entropy", "before", "shifted", ("entropy",)),
    Family("by disagreement", "before", "shifted", ("disagreement",)),
    Family("by both", "before", "shifted", ("entropy", "disagreement")),
)
_FOR_ONE_NETWORK = ("before", "before, shifted", "by entropy")


def families(members: int, *, shifted: bool) -> list[Family]:
    """Those that make sense for an ensemble of so many members, or for a single network.

    Of a single network there is nothing to average and no disagreement. Without `shifted` only those that are fitted on
    clean images.
    """
    known = (*_CLEAN, *_SHIFTED) if shifted else _CLEAN
    return [family for family in known if members > 1 or family.name in _FOR_ONE_NETWORK]


def check_members(family: Family, members: int) -> None:
    """Raise if the family needs disagreement between members, and there is only one network."""
    if "disagreement" in family.signals and members == 1:
        raise InputError(f"{family.name!r} needs the disagreement between members, and there is only one network")
