"""The settings of the augmentations: which ones the members get, how strong they are, and which member gets which.

The paper's augmentations are described in docs/paper.md.

Each augmentation has a vector of severities and an assignment:
- `diverse` gives entry i to member i;
- `shuffled` permutes the vector among the members before each step;
- `constant` gives its single entry to every member.

A member whose severity is 0 does not get the augmentation.
"""

import math
from dataclasses import dataclass
from typing import Literal

from counterpoint.errors import InputError, whole_number
from counterpoint.setting_types import settle

Assignment = Literal["diverse", "shuffled", "constant"]
Mixing = Literal["bernoulli", "beta"]
_MOST_PADDING = 4096  # pixels; own images have no longer sides


def _check_vector(name: str, values: tuple[float, ...], assignment: str) -> None:
    if not values or (assignment == "constant" and len(values) != 1):
        wanted = "one entry" if assignment == "constant" else "one entry per member"
        raise InputError(f"{name} has {len(values)} entries {list(values)}; {assignment!r} needs {wanted}")
    for value in values:
        if not 0 <= value < math.inf:
            raise InputError(f"{name} {value} is not allowed; each entry must be a finite number of 0 or more")


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
    if len(scale) != 2 or not 0 < scale[0] <= scale[1] <= 1:
        raise InputError(
            f"crop_scale is {list(scale)}; it must be two shares of the area, the least and the greatest, each above 0 "
            "and at most 1, such as 0.25,1"
        )


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise InputError(f"{name} is {value}; a probability must be between 0 and 1")


@dataclass(frozen=True)
class AugMix:
    """AugMix with the paper's mixing of clean and augmented images: (1 − m)·x + m·x_aug.

    The weight m is drawn for each image. `jsd` is the weight of AugMix's consistency loss: 0 in the paper, 12 in AugMix
    itself. If it is above 0, each member learns the label from its clean view. The consistency loss pulls its
    predictions for the clean view and for two AugMix views towards each other.

    >>> from counterpoint import AugMix
    >>> AugMix(severity=(3.0,), assignment="constant").severity  # one for all members: not diverse
    (3.0,)
    """

    severity: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    """How strong AugMix's operations may be, one number per member; a member with 0 sees no AugMix. With
    assignment=constant it is a single number for all members."""
    assignment: Assignment = "diverse"
    """Which member gets which severity: its own (diverse), a random one at each step (shuffled), or all the same
    (constant). With `diverse`, the first number is for the first member, and so on. With `shuffled`, the numbers are
    dealt out anew before each step. With `constant`, there is one number."""
    mixing: Mixing = "bernoulli"
    """How the clean and the augmented image are combined: one of the two (bernoulli), or a weighted mean (beta). `p` is
    the chance of the augmented image, `beta` the distribution of the weight."""
    p: float = 0.875
    """The chance that a member sees the augmented image; only for mixing=bernoulli."""
    beta: float = 1.0
    """The weight of the augmented image is drawn from Beta(beta, beta); only for mixing=beta. With 1, every weight from
    0 to 1 is equally likely."""
    jsd: float = 0.0
    """The weight of AugMix's consistency loss in the training loss; 0 turns it off. The loss rewards equal predictions
    for three views of an image. The paper does not use it; AugMix's authors use 12."""

    def __post_init__(self) -> None:
        settle(self)
        _check_vector("augmix severity", self.severity, self.assignment)
        for value in self.severity:
            if 0 < value < 0.1 or value > 10:
                raise InputError(f"augmix severity {value} is out of range; it must be 0 (clean) or between 0.1 and 10")
        _check_probability("augmix p", self.p)
        if not 0 < self.beta < math.inf:
            raise InputError(f"augmix beta is {self.beta}; it must be a finite number of more than 0")
        if not 0 <= self.jsd < math.inf:
            raise InputError(f"augmix jsd is {self.jsd}; it must be 0 (no consistency loss) or more, and finite")


@dataclass(frozen=True)
class Adversarial:
    """The adversarial perturbation of the paper's eq. 1: x + (m/E[m])·u·s·sign(∇ₓL).

    s is the member's severity. u ~ U(0, 1) and m ~ Bernoulli(p) are drawn for each image, and E[m] is p. `space` says
    in which unit s is given: the network's input in [−1, 1], or pixels in [0, 1] (docs/paper.md, 7). `clip` cuts the
    result off at black and white; the paper's formula does not (docs/paper.md, 8).

    >>> from counterpoint import Adversarial
    >>> Adversarial().severity  # one per member
    (0.0, 0.05, 0.1, 0.15)
    """

    severity: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15)
    """The size of the perturbation, one number per member; a pixel moves by at most severity / p. How far it moves is
    drawn evenly between 0 and that. With assignment=constant it is a single number for all members."""
    assignment: Assignment = "diverse"
    """Which member gets which severity: its own (diverse), a random one at each step (shuffled), or all the same
    (constant). With `diverse`, the first number is for the first member, and so on. With `shuffled`, the numbers are
    dealt out anew before each step. With `constant`, there is one number."""
    p: float = 0.875
    """The chance that an image is perturbed. The perturbation is divided by it, so that its mean does not change."""
    space: Literal["network", "pixel"] = "network"
    """The unit of the severity: the network's input, from −1 to 1 (network), or pixels from 0 to 1 (pixel)."""
    clip: bool = False
    """Whether perturbed pixels are cut off at black and white, so that the result is a valid image."""

    def __post_init__(self) -> None:
        settle(self)
        _check_vector("adversarial severity", self.severity, self.assignment)
        _check_probability("adversarial p", self.p)
        if self.p == 0:
            raise InputError(
                "adversarial p is 0, so that nothing would be perturbed; it must be above 0 and at most 1. To turn the "
                "perturbation off, set policy.adversarial=none"
            )


@dataclass(frozen=True)
class StochasticDepth:
    """In training, each image skips each residual branch with the member's drop rate, the same in every block.

    With `rescale`, a branch that is not skipped is divided by 1 − drop rate. Its mean in training is then the same as
    in evaluation.

    >>> from counterpoint import StochasticDepth
    >>> StochasticDepth(drop_rate=(0.075,), assignment="constant").drop_rate
    (0.075,)
    """

    drop_rate: tuple[float, ...] = (0.0, 0.05, 0.1, 0.15)
    """The chance that an image skips a residual branch in training, one number per member. With assignment=constant it
    is a single number for all members."""
    assignment: Assignment = "diverse"
    """Which member gets which drop rate: its own (diverse), a random one at each step (shuffled), or all the same
    (constant). With `diverse`, the first number is for the first member, and so on. With `shuffled`, the numbers are
    dealt out anew before each step. With `constant`, there is one number."""
    rescale: bool = True
    """Whether a branch that is not skipped is divided by 1 − drop rate. Its mean in training is then the same as in
    evaluation."""

    def __post_init__(self) -> None:
        settle(self)
        _check_vector("drop rate", self.drop_rate, self.assignment)
        for rate in self.drop_rate:
            if rate >= 1:
                raise InputError(f"drop rate {rate} is too large; it must be at least 0 and below 1")


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
    """Whether each image is mirrored left to right with a chance of one half."""
    crop_padding: int = 4
    """How many black pixels are added on each side before a random crop of the old size is taken; 0 turns it off. It
    has no effect if crop_scale is set."""
    crop_scale: tuple[float, float] | None = None
    """The least and the greatest share of the area that a random crop keeps; none uses crop_padding instead. The crop
    is enlarged to the image's size."""
    crop_per_view: bool = False
    """Whether each member gets its own flip and crop; otherwise all members share them."""
    augmix: AugMix | None = None
    """AugMix: chains of random operations, mixed with the image. Setting one of its parts turns it on."""
    adversarial: Adversarial | None = None
    """Adversarial perturbation: pixels move so that the loss grows. Setting one of its parts turns it on."""
    stochastic_depth: StochasticDepth | None = None
    """Stochastic depth: images skip residual branches at random. Setting one of its parts turns it on."""

    def __post_init__(self) -> None:
        settle(self)
        whole_number("crop_padding", self.crop_padding, 0, _MOST_PADDING)
        if self.crop_scale is not None:
            _check_scale(self.crop_scale)
        if self.augmix and self.augmix.jsd and self.adversarial:
            raise InputError(
                f"augmix jsd is {self.augmix.jsd}, and there is an adversarial perturbation too; the consistency loss "
                "has three views, and it is not defined which of them to perturb: set policy.augmix.jsd=0 or "
                "policy.adversarial=none"
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
