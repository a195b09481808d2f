"""What a conversion did: which layers were converted, which were not and why, and how many parameters that adds."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ENOUGH = 0.5
"""A conversion of a smaller share of the weight layers gives a warning."""
BY_CHOICE = EXCLUDED, NOT_INCLUDED = "it was excluded", "it was not included"
PARAMETER = "parameter"
"""The kind shown for a parameter that belongs to a module itself."""
_NAMED = 3  # how many layers a line of the report names


@dataclass(frozen=True)
class Layer:
    """A layer, or a parameter that a module has for itself."""

    name: str
    kind: str


@dataclass(frozen=True)
class LeftOut(Layer):
    """A layer with a weight that all members share, and why."""

    reason: str

    @property
    def by_choice(self) -> bool:
        """Whether the user said so."""
        return self.reason in BY_CHOICE


@dataclass(frozen=True)
class Conversion:
    """What a conversion did. `str` turns it into a readable text.

    A weight layer multiplies activations by a weight: linear layers, convolutions, attention's projections, recurrent
    layers. An embedding only looks up rows, and a normalisation only scales, so neither is a weight layer.

    >>> from counterpoint.nn import batch_ensemble, resnet
    >>> ensemble = batch_ensemble(resnet(num_classes=10, width=4), num_members=2)
    >>> ensemble.conversion.layer_share  # every weight layer was converted
    1.0
    """

    model: str
    num_members: int
    factors: str  # how r and s begin
    converted: tuple[Layer, ...]
    left_out: tuple[LeftOut, ...]
    shared: tuple[Layer, ...]
    """What else all members share: normalisations, embeddings, parameters of their own."""
    parameters: int  # of the model
    parameters_converted: int  # of them, those of converted layers
    parameters_added: int
    per_member: tuple[Layer, ...] = ()
    """Normalisations that each member has for itself."""

    @property
    def layer_share(self) -> float:
        """How much of the weight layers was converted."""
        return len(self.converted) / (len(self.converted) + len(self.left_out))

    @property
    def parameter_share(self) -> float:
        """How much of the model's parameters belongs to converted layers; each member has them in its own way."""
        return self.parameters_converted / self.parameters

    @property
    def warning(self) -> str | None:
        wanted = len(self.converted) + sum(not layer.by_choice for layer in self.left_out)
        if len(self.converted) >= ENOUGH * wanted:
            return None
        return (
            f"only {len(self.converted)} of {wanted} weight layers of {self.model} were converted; "
            "the members may hardly differ"
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        layers = len(self.converted) + len(self.left_out)
        members = "1 member" if self.num_members == 1 else f"{self.num_members} members"
        yield f"{self.model} as an ensemble of {members}; {self.factors}"
        yield f"  converted  {_counted(self.converted)}: {len(self.converted)} of {layers} weight layers"
        yield f"             with {self.parameter_share:.1%} of the model's {self.parameters:,} parameters"
        yield f"  added      {self.parameters_added:,} parameters ({self.parameters_added / self.parameters:.1%})"
        if self.per_member:
            yield f"  per member {_counted(self.per_member)}"
        if self.shared:
            yield f"  shared     {_counted(self.shared)}"
        for (kind, reason), names in _grouped(self.left_out).items():
            yield f"  left out   {len(names)} {kind} ({_some(names)}): {reason}"
        if self.warning:
            yield f"  warning    {self.warning}"


def _counted(layers: Iterable[Layer]) -> str:
    counts = Counter(layer.kind for layer in layers)
    return ", ".join(f"{n} {'parameters' if kind == PARAMETER and n > 1 else kind}" for kind, n in counts.items())


def _grouped(left_out: Iterable[LeftOut]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for layer in left_out:
        groups.setdefault((layer.kind, layer.reason), []).append(layer.name)
    return groups


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
