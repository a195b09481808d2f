"""Diversity as a value: which augmentations the members get, how strong they are, and which member gets which.

The paper's augmentations are described in docs/paper.md.

Each augmentation has a vector of severities and an assignment:
- `diverse` gives entry i to member i;
- `shuffled` permutes the vector among the members before each step;
- `constant` gives its single entry to every member.

A member whose severity is 0 does not get the augmentation.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from counterpoint.errors import InputError, one_of, shown

Assignment = Literal["diverse", "shuffled", "constant"]
Mixing = Literal["bernoulli", "beta"]
_MOST_PADDING = 4096  # pixels; own images have no longer sides


def _check_vector(name: str, values: tuple[float, ...], assignment: str) -> None:
    one_of(f"{name} assignment", assignment, get_args(Assignment))
    if not isinstance(values, tuple | list):
        raise InputError(f"{name} is {shown(values)}; it must be a tuple of numbers, such as (1.0, 2.0)")
    if not values or (assignment == "constant" and len(values) != 1):
        wanted = "one entry" if assignment == "constant" else "one entry per member"
        raise InputError(f"{name} has {len(values)} entries {list(values)}; {assignment!r} needs {wanted}")
    for value in values:
        if not _is_finite(value):
            raise InputError(f"{name} {shown(value)} is not a finite number of 0 or more")


def _is_finite(value: object) -> bool:
    """Whether it is a number of 0 or more, and not infinity."""
    return isinstance(value, int | float) and 0 <= value < float("inf")


def _check_length(name: str, values: tuple[float, ...], assignment: str, num_members: int, key: str) -> None:
    if assignment == "constant" or len(values) == num_members:
        return
    if num_members == 1:
        needed = f"one for a single network: set policy.{key} to one number"
    else:
        needed = (
            f"one for each of {num_members} members: set policy.{key} to {num_members} numbers, or to one number and "
            f"policy.{key.split('.')[0]}.assignment to constant"
        )
    raise InputError(f"{name} has {len(values)} entries {list(values)}; {assignment!r} needs {needed}")


def _check_scale(scale: tuple[float, ...]) -> None:
    values = list(scale) if isinstance(scale, tuple | list) else scale
    if not isinstance(values, list) or len(values) != 2 or not 0 < values[0] <= values[1] <= 1:
        raise InputError(
            f"crop_scale is {shown(values)}; it must be two shares of the area, the least and the greatest, above 0 "
            "and not above 1, such as 0.25,1"
        )


def _check_probability(name: str, value: float) -> None:
    if not (_is_finite(value) and value <= 1):
        raise InputError(f"{name} is {shown(value)}; a probability must be between 0 and 1")


@dataclass(frozen=True)
class AugMix:
    """AugMix with the paper's mixing of clean and augmented images: (1 − m)·x + m·x_aug, m drawn for each image.

    `jsd` is the weight of AugMix's consistency loss: 0 in the paper, 12 in AugMix itself. Where it is above 0, each
    member learns from its clean view, and its predictions for that view and two AugMix views are drawn together.

    >>> from counterpoint import AugMix
    >>> AugMix(severity=(3.0,), assignment="constant").severity  # one for all members: not diverse
    (3.0,)
    """

    severity: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    """How strong the operations are, for each member; 0 leaves a member's images clean."""
    assignment: Assignment = "diverse"
    """Which member gets which severity: its own, dealt out anew before each step, or one for all."""
    mixing: Mixing = "bernoulli"
    """How clean and augmented image are mixed: one of them by chance, or both by a weight."""
    p: float = 0.875
    """With bernoulli, the chance of the augmented image."""
    beta: float = 1.0
    """With beta, both parameters of the weight's distribution."""
    jsd: float = 0.0
    """The weight of AugMix's consistency loss; 0 is none."""

    def __post_init__(self) -> None:
        _check_vector("augmix severity", self.severity, self.assignment)
        for value in self.severity:
            if 0 < value < 0.1 or value > 10:
                raise InputError(f"augmix severity {value} is out of range; it must be 0 (clean) or between 0.1 and 10")
        one_of("augmix mixing", self.mixing, get_args(Mixing))
        _check_probability("augmix p", self.p)
        if not (_is_finite(self.beta) and self.beta > 0):
            raise InputError(f"augmix beta is {shown(self.beta)}; it must be a finite number of more than 0")
        if not _is_finite(self.jsd):
            raise InputError(f"augmix jsd is {shown(self.jsd)}; it must be 0 (no consistency loss) or more, and finite")


@dataclass(frozen=True)
class Adversarial:
    """The perturbation of eq. 1: x + (m/E[m])·u·s·sign(∇ₓL), u ~ U(0, 1) and m ~ Bernoulli(p) for each image.

    `space` says in which units s is given: as the network sees the image, in [−1, 1], or as pixels in [0, 1]
    (docs/paper.md, 7). `clip` keeps the result a valid image; the paper's formula does not (docs/paper.md, 8).

    >>> from counterpoint import Adversarial
    >>> Adversarial().severity  # one per member
    (0.0, 0.05, 0.1, 0.15)
    """

    severity: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15)
    """How far each pixel is moved at most, for each member."""
    assignment: Assignment = "diverse"
    """Which member gets which severity: its own, dealt out anew before each step, or one for all."""
    p: float = 0.875
    """The chance that an image is perturbed."""
    space: Literal["network", "pixel"] = "network"
    """What the severity is measured in: the network's input from −1 to 1, or pixels from 0 to 1."""
    clip: bool = False
    """Whether the result is kept a valid image."""

    def __post_init__(self) -> None:
        _check_vector("adversarial severity", self.severity, self.assignment)
        _check_probability("adversarial p", self.p)
        if self.p == 0:
            raise InputError(
                "adversarial p is 0, so that nothing would be perturbed; leave the augmentation out instead"
            )
        one_of("adversarial space", self.space, ("network", "pixel"))


@dataclass(frozen=True)
class StochasticDepth:
    """For each image, each residual branch is dropped with the member's drop rate, which is the same in every block.

    With `rescale`, a kept branch is divided by 1 − drop rate in training. Its expectation is then that of evaluation.

    >>> from counterpoint import StochasticDepth
    >>> StochasticDepth(drop_rate=(0.075,), assignment="constant").drop_rate
    (0.075,)
    """

    drop_rate: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15)
    """The chance that a residual branch is dropped, for each member."""
    assignment: Assignment = "diverse"
    """Which member gets which drop rate: its own, dealt out anew before each step, or one for all."""
    rescale: bool = True
    """Whether a kept branch is divided by the chance to be kept."""

    def __post_init__(self) -> None:
        _check_vector("drop rate", self.drop_rate, self.assignment)
        for rate in self.drop_rate:
            if rate >= 1:
                raise InputError(f"drop rate {rate} is outside [0, 1)")


@dataclass(frozen=True)
class MemberPolicy:
    """What the members see: flip and crop first, then AugMix, then the adversarial perturbation (docs/paper.md, 9, 10).

    Flip and crop are shared by the members. With `crop_per_view` they are drawn for each member instead.

    >>> from counterpoint import AugMix, MemberPolicy, StochasticDepth
    >>> policy = MemberPolicy(augmix=AugMix(), stochastic_depth=StochasticDepth())
    >>> policy.augmix.severity  # member 0 sees the mildest images, member 3 the strongest
    (1.0, 2.0, 3.0, 4.0)
    """

    flip: bool = True
    """Whether images are mirrored left to right by chance."""
    crop_padding: int = 4
    """By how many black pixels images are padded before a random crop of their size; 0 is no crop."""
    crop_scale: tuple[float, float] | None = None
    """The least and the greatest share of the area that is cut out at random and enlarged to the image's size; none is
    the padded crop."""
    crop_per_view: bool = False
    """Whether each member gets a flip and crop of its own."""
    augmix: AugMix | None = None
    """AugMix; naming one of its parts turns it on."""
    adversarial: Adversarial | None = None
    """Adversarial perturbation; naming one of its parts turns it on."""
    stochastic_depth: StochasticDepth | None = None
    """Stochastic depth; naming one of its parts turns it on."""

    def __post_init__(self) -> None:
        if not (isinstance(self.crop_padding, int) and 0 <= self.crop_padding <= _MOST_PADDING):
            raise InputError(
                f"crop_padding is {shown(self.crop_padding)}; it must be from 0 to {_MOST_PADDING:,} pixels"
            )
        if self.crop_scale is not None:
            _check_scale(self.crop_scale)
        if self.augmix and self.augmix.jsd and self.adversarial:
            raise InputError(
                f"augmix jsd is {self.augmix.jsd} and there is an adversarial perturbation too: which of the three "
                "views it perturbs is not defined; leave one of the two out"
            )

    @property
    def views_per_step(self) -> int:
        """How many views of an image a member sees per step: three with AugMix's consistency loss, else one."""
        return 3 if self.augmix and self.augmix.jsd else 1

    def check_members(self, num_members: int) -> None:
        """Raise unless every severity vector fits `num_members`."""
        if augmix := self.augmix:
            _check_length("augmix severity", augmix.severity, augmix.assignment, num_members, "augmix.severity")
        if adversarial := self.adversarial:
            severity, assignment = adversarial.severity, adversarial.assignment
            _check_length("adversarial severity", severity, assignment, num_members, "adversarial.severity")
        if depth := self.stochastic_depth:
            _check_length("drop rate", depth.drop_rate, depth.assignment, num_members, "stochastic_depth.drop_rate")
