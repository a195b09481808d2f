"""What AugMix will do to each image: a plan, sampled before anything is applied.

Each image goes through `width` chains of 1 to `depth` operations (docs/paper.md, 6). A plan holds levels, not pixels or
degrees, so it does not depend on the size of the images.

Shapes: N images, W chains per image, D places in a chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import get_args

import torch
from scipy.special import betaincinv
from torch import Tensor

from counterpoint.errors import InputError, is_finite, one_of, shown, unknown, whole_number
from counterpoint.policy import Mixing
from counterpoint.seeding import Stream

OPERATIONS = tuple("autocontrast equalize posterize rotate solarize shear_x shear_y translate_x translate_y".split())
EXTRA_OPERATIONS = ("colour", "contrast", "brightness", "sharpness")
ALL_OPERATIONS = OPERATIONS + EXTRA_OPERATIONS
IDLE = -1
"""What a plan holds at the places after a chain's end."""

LOWEST_LEVEL, HIGHEST_LEVEL = 0.1, 10.0


def share_of_level(levels_N: Tensor, most: float) -> Tensor:
    """`most` at level 10, and in proportion below it. The sign of the level is kept."""
    # The divisor is a tensor because CUDA divides by a number by multiplying with its reciprocal, which rounds twice.
    return levels_N * most / levels_N.new_full((), HIGHEST_LEVEL)


def _whole_share(levels_N: Tensor, most: float) -> Tensor:
    return share_of_level(levels_N, most).long()


def bits_of(levels_N: Tensor) -> Tensor:
    """How many bits posterize keeps."""
    return 4 - _whole_share(levels_N.abs(), 4)


def degrees_of(levels_N: Tensor) -> Tensor:
    """How far an image is rotated."""
    return _whole_share(levels_N, 30)


def threshold_of(levels_N: Tensor) -> Tensor:
    """The least value that solarize inverts."""
    return 256 - _whole_share(levels_N.abs(), 256)


def shear_of(levels_N: Tensor) -> Tensor:
    """By how many pixels more a shear moves each row (or column) than the one before it."""
    return share_of_level(levels_N, 0.3)


def pixels_of(levels_N: Tensor, size: int) -> Tensor:
    """How far an image of this width (or height) is translated."""
    return _whole_share(levels_N, size / 3)


@dataclass(frozen=True, eq=False)
class AugMixPlan:
    """What AugMix will do to each of N images. `concatenate` joins plans, and `plan[10:20]` takes a part.

    >>> import torch
    >>> from counterpoint.augment import sample_augmix
    >>> from counterpoint.seeding import Stream
    >>> plan = sample_augmix(torch.arange(8), 3.0, Stream(0, "augmix"))
    >>> len(plan), len(plan[2:5])
    (8, 3)
    """

    operations_NWD: Tensor  # int8: the place in ALL_OPERATIONS, or −1 after the chain's end
    levels_NWD: Tensor  # float64, the random sign included
    weights_NW: Tensor  # float32, of the chains; they sum to 1
    m_N: Tensor  # float32, the weight of the augmented image
    may_have_extras: bool = field(default=True, kw_only=True)
    """False if the plan cannot hold any of EXTRA_OPERATIONS. If it may, finding out makes the CPU wait for the GPU."""

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.operations_NWD, self.levels_NWD, self.weights_NW, self.m_N

    def __len__(self) -> int:
        return len(self.m_N)

    def __repr__(self) -> str:
        _, width, depth = self.operations_NWD.shape
        return f"AugMixPlan({len(self)} images, {width} chains of at most {depth} operations, on {self.m_N.device})"

    def __getitem__(self, index: slice | Tensor) -> "AugMixPlan":
        if not isinstance(index, slice) and not (isinstance(index, Tensor) and index.ndim == 1):
            raise InputError(
                f"a plan cannot be indexed with {shown(repr(index))}; take a part of it with a slice or a tensor, such "
                "as plan[2:3]"
            )
        return AugMixPlan(*(tensor[index] for tensor in self.tensors), may_have_extras=self.may_have_extras)

    def to(self, device: torch.device | str) -> "AugMixPlan":
        return AugMixPlan(*(tensor.to(device) for tensor in self.tensors), may_have_extras=self.may_have_extras)


def concatenate(plans: Sequence[AugMixPlan]) -> AugMixPlan:
    """Join `plans` into one plan, whose images are in the same order.

    >>> import torch
    >>> from counterpoint.augment import concatenate, sample_augmix
    >>> from counterpoint.seeding import Stream
    >>> plans = [sample_augmix(torch.arange(8), 3.0, Stream(0, "augmix", member=i)) for i in range(4)]
    >>> len(concatenate(plans))
    32
    """
    if not plans:
        raise InputError("there are no plans to join; give at least one")
    if len(shapes := {plan.operations_NWD.shape[1:] for plan in plans}) > 1:
        found = " and ".join(f"{width} chains of {depth}" for width, depth in sorted(shapes))
        raise InputError(f"the plans have {found} operations; only plans of the same width and depth can be joined")
    joined = (torch.cat(parts) for parts in zip(*(plan.tensors for plan in plans), strict=True))
    return AugMixPlan(*joined, may_have_extras=any(plan.may_have_extras for plan in plans))


def sample_augmix(
    indices_N: Tensor,
    severity: float | Tensor,
    stream: Stream,
    *,
    width: int = 3,
    depth: int = 3,
    mixing: str = "bernoulli",
    p: float = 0.875,
    beta: float = 1.0,
    operations: Sequence[str] = OPERATIONS,
) -> AugMixPlan:
    """Draw what AugMix will do to each image, on the device of `indices_N`.

    `indices_N` (N,) are the images' numbers in the data set, as integers. An image's plan does not depend on the other
    images of the batch. `severity` is one number, or a tensor (N,) with one per image. The level of each operation is
    uniform between 0.1 and the severity; a severity of 0 leaves the image clean. `width` is the number of chains, and
    `depth` the largest number of operations in a chain. The weights m come from `mixing_weights(mixing, …, p=p,
    beta=beta)`.

    >>> import torch
    >>> from counterpoint.augment import sample_augmix
    >>> from counterpoint.seeding import Stream
    >>> plan = sample_augmix(torch.arange(8), severity=3.0, stream=Stream(seed=0, purpose="augmix"))
    >>> plan.operations_NWD.shape  # 8 images, 3 chains, at most 3 operations
    torch.Size([8, 3, 3])
    """
    severity_N = _checked_severity(severity, indices_N)
    return draw_augmix(
        indices_N, severity_N, stream, width=width, depth=depth, mixing=mixing, p=p, beta=beta, operations=operations
    )


def draw_augmix(
    indices_N: Tensor,
    severity_N: Tensor,
    stream: Stream,
    *,
    mixing: str,
    p: float,
    beta: float,
    width: int = 3,
    depth: int = 3,
    operations: Sequence[str] = OPERATIONS,
) -> AugMixPlan:
    """What `sample_augmix` draws, for float64 severities that need no check, such as a policy's.

    The check would make a GPU wait.
    """
    _check_stream(stream)
    choices = _checked_choices(operations, indices_N.device)
    width, depth = whole_number("width", width, 1), whole_number("depth", depth, 1)
    draws = [3 * width * depth, 2 * width]
    places, chains = stream.uniform(indices_N, sum(draws)).split(draws, dim=1)
    picks_NWD, strengths_NWD, signs_NWD = places.reshape(-1, 3, width, depth).unbind(1)
    lengths_NW, heights_NW = chains.reshape(-1, 2, width).unbind(1)

    after_end_NWD = torch.arange(depth, device=indices_N.device) > (lengths_NW * depth).long()[..., None]
    levels_NWD = LOWEST_LEVEL + strengths_NWD * (severity_N - LOWEST_LEVEL)[:, None, None]
    exponentials_NW = -heights_NW.log()
    m_N = mixing_weights(mixing, indices_N, replace(stream, purpose=f"{stream.purpose}/mixing"), p=p, beta=beta)
    return AugMixPlan(
        operations_NWD=choices[(picks_NWD * len(choices)).long()].masked_fill_(after_end_NWD, IDLE),
        levels_NWD=torch.where(signs_NWD < 0.5, -levels_NWD, levels_NWD),
        weights_NW=(exponentials_NW / exponentials_NW.sum(1, keepdim=True)).float(),
        m_N=m_N * (severity_N > 0),
        may_have_extras=not set(operations).isdisjoint(EXTRA_OPERATIONS),
    )


def _check_stream(stream: Stream) -> None:
    if not isinstance(stream, Stream):
        raise InputError(f"stream is {shown(stream)}; it must be a value such as Stream(seed, 'augmix', epoch, member)")


def _checked_severity(severity: float | Tensor, indices_N: Tensor) -> Tensor:
    if not isinstance(indices_N, Tensor):
        raise InputError(f"indices are {shown(indices_N)}; they must be a tensor of whole numbers with one axis")
    try:
        given = torch.as_tensor(severity, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"severity is {shown(repr(severity))}; it must be a number, or a tensor (N,)") from None
    if indices_N.ndim != 1 or given.shape not in ((), indices_N.shape):
        raise InputError(
            f"indices have shape {tuple(indices_N.shape)} and severity {tuple(given.shape)}; "
            "indices must be (N,), and severity a number or (N,)"
        )
    wrong = given[~((given == 0) | ((given >= LOWEST_LEVEL) & (given <= HIGHEST_LEVEL)))]
    if len(wrong):
        raise InputError(
            f"severity is {wrong[0].item():g}; it must be between {LOWEST_LEVEL:g} and {HIGHEST_LEVEL:g}, "
            "or 0 for a clean image"
        )
    return given.to(indices_N.device).expand(indices_N.shape)


def _checked_choices(operations: Sequence[str], device: torch.device) -> Tensor:
    if isinstance(operations, str) or not isinstance(operations, Sequence) or not operations:
        found = shown(repr(operations)) if operations else "empty"
        raise InputError(f"operations is {found}; it must name at least one, in a list, of {', '.join(ALL_OPERATIONS)}")
    for name in operations:
        if name not in ALL_OPERATIONS:
            raise unknown("operation", name, ALL_OPERATIONS)
    return _places(tuple(operations), device)


@lru_cache(maxsize=8)
def _places(operations: tuple[str, ...], device: torch.device) -> Tensor:
    """The operations' places in ALL_OPERATIONS. They are kept, because making a tensor from a list makes a GPU wait."""
    return torch.tensor([ALL_OPERATIONS.index(name) for name in operations], dtype=torch.int8, device=device)


def mixing_weights(kind: str, indices_N: Tensor, stream: Stream, *, p: float = 0.875, beta: float = 1.0) -> Tensor:
    """Draw the weight m of the augmented image for each image, as a float32 tensor (N,).

    `indices_N` (N,) are the images' numbers in the data set. With "bernoulli", m is 1 with probability `p` and
    otherwise 0, so `p` is the share of images that are augmented. With "beta", m is drawn from Beta(beta, beta).

    >>> import torch
    >>> from counterpoint.augment import mixing_weights
    >>> from counterpoint.seeding import Stream
    >>> m = mixing_weights("bernoulli", torch.arange(1000), Stream(0, "mixing"), p=0.875)
    >>> 0.85 < m.mean().item() < 0.9
    True
    """
    one_of("mixing", kind, get_args(Mixing))
    _check_stream(stream)
    if not is_finite(p) or not 0 <= p <= 1:
        raise InputError(f"p is {shown(repr(p))}; the probability that an image is augmented must be between 0 and 1")
    if not is_finite(beta) or beta <= 0:
        raise InputError(
            f"beta is {shown(repr(beta))}; it must be a finite number of more than 0 (1 is the uniform distribution)"
        )
    uniform_N = stream.uniform(indices_N, 1)[:, 0]
    if kind == "bernoulli":
        return (uniform_N < p).float()
    return _beta_quantile(uniform_N, beta).float()


def _beta_quantile(uniform_N: Tensor, beta: float) -> Tensor:
    if beta == 1:
        return uniform_N
    return torch.from_numpy(betaincinv(beta, beta, uniform_N.cpu().numpy())).to(uniform_N.device)
