"""AugMix (Hendrycks et al. 2020) as the paper uses it: sample a plan for each image, then apply it without randomness.

Each image goes through `width` chains of 1 to `depth` operations on 8-bit values; the chains are mixed in float32 with
Dirichlet(1, …, 1) weights, and their mixture with the clean image, with weight m (SPEC D6). A plan holds levels, not
pixels or degrees, so it does not depend on the size of the images.

Shapes: N images, W chains an image, R = N·W chains, D places in a chain, C channels, H W pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from counterpoint.augment import geometry, tone
from counterpoint.augment.mixing import mixing_weights
from counterpoint.augment.ops import check_images, images_a_chunk
from counterpoint.environment import has_triton
from counterpoint.errors import InputError, unknown
from counterpoint.seeding import Stream

LOWEST_LEVEL, HIGHEST_LEVEL = 0.1, 10.0


def _share(levels_N: Tensor, most: float) -> Tensor:
    """`most` at level 10, in proportion below; the sign of the level stays."""
    # The divisor is a tensor because CUDA divides by a number through its reciprocal: rounded twice.
    return levels_N * most / levels_N.new_full((), HIGHEST_LEVEL)


def _whole_share(levels_N: Tensor, most: float) -> Tensor:
    return _share(levels_N, most).long()


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
    """How far a shear moves a row (or column) for each one below (or right of) it, in pixels."""
    return _share(levels_N, 0.3)


def pixels_of(levels_N: Tensor, size: int) -> Tensor:
    """How far an image of this width (or height) is translated."""
    return _whole_share(levels_N, size / 3)


def _enhancement(levels_N: Tensor) -> Tensor:
    return _share(levels_N.abs(), 1.8) + 0.1


# Each operation of the AugMix code as a function of the images and their signed levels (N,).
_APPLY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "autocontrast": lambda images, _: tone.autocontrast(images),
    "equalize": lambda images, _: tone.equalize(images),
    "posterize": lambda images, levels: tone.posterize(images, bits_of(levels)),
    "rotate": lambda images, levels: geometry.rotate(images, degrees_of(levels)),
    "solarize": lambda images, levels: tone.solarize(images, threshold_of(levels)),
    "shear_x": lambda images, levels: geometry.shear_x(images, shear_of(levels)),
    "shear_y": lambda images, levels: geometry.shear_y(images, shear_of(levels)),
    "translate_x": lambda images, levels: geometry.translate_x(images, pixels_of(levels, images.shape[3])),
    "translate_y": lambda images, levels: geometry.translate_y(images, pixels_of(levels, images.shape[2])),
    "colour": lambda images, levels: tone.colour(images, _enhancement(levels)),
    "contrast": lambda images, levels: tone.contrast(images, _enhancement(levels)),
    "brightness": lambda images, levels: tone.brightness(images, _enhancement(levels)),
    "sharpness": lambda images, levels: tone.sharpness(images, _enhancement(levels)),
}
ALL_OPERATIONS = tuple(_APPLY)
OPERATIONS, EXTRA_OPERATIONS = ALL_OPERATIONS[:9], ALL_OPERATIONS[9:]

_IDLE = -1
_CHUNKS_AT_ONCE = 16  # operations are grouped over this many chunks of images, so that the groups are not small


@dataclass(frozen=True, eq=False)
class AugMixPlan:
    """What happens to each image. Plans of members or steps can be joined (`concatenate`) and cut (`plan[10:20]`)."""

    operations_NWD: Tensor  # int8: the place in ALL_OPERATIONS, or −1 after the chain's end
    levels_NWD: Tensor  # float64, the random sign included
    weights_NW: Tensor  # float32, of the chains; they sum to 1
    m_N: Tensor  # float32, the weight of the augmented image

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.operations_NWD, self.levels_NWD, self.weights_NW, self.m_N

    def __len__(self) -> int:
        return len(self.m_N)

    def __getitem__(self, index: slice | Tensor) -> "AugMixPlan":
        return AugMixPlan(*(tensor[index] for tensor in self.tensors))

    def to(self, device: torch.device | str) -> "AugMixPlan":
        return AugMixPlan(*(tensor.to(device) for tensor in self.tensors))


def concatenate(plans: Sequence[AugMixPlan]) -> AugMixPlan:
    """One plan for the images of all `plans`, in their order."""
    return AugMixPlan(*(torch.cat(parts) for parts in zip(*(plan.tensors for plan in plans), strict=True)))


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
    """A plan for the images with these numbers in the data set, on their device; the same in any batch.

    `severity` is one number or one for each image: levels are uniform between 0.1 and it, and 0 leaves the image clean.
    The m come from `mixing_weights(mixing, …, p=p, beta=beta)`.
    """
    severity_N = _checked_severity(severity, indices_N)
    choices = _checked_choices(operations, indices_N.device)
    if min(width, depth) < 1:
        raise InputError(f"width is {width} and depth is {depth}; both must be 1 or more")
    draws = [3 * width * depth, 2 * width]
    places, chains = stream.uniform(indices_N, sum(draws)).split(draws, dim=1)
    picks_NWD, strengths_NWD, signs_NWD = places.reshape(-1, 3, width, depth).unbind(1)
    lengths_NW, heights_NW = chains.reshape(-1, 2, width).unbind(1)

    after_end_NWD = torch.arange(depth, device=indices_N.device) > (lengths_NW * depth).long()[..., None]
    levels_NWD = LOWEST_LEVEL + strengths_NWD * (severity_N - LOWEST_LEVEL)[:, None, None]
    exponentials_NW = -heights_NW.log()
    m_N = mixing_weights(mixing, indices_N, replace(stream, purpose=f"{stream.purpose}/mixing"), p=p, beta=beta)
    return AugMixPlan(
        operations_NWD=choices[(picks_NWD * len(choices)).long()].masked_fill_(after_end_NWD, _IDLE),
        levels_NWD=torch.where(signs_NWD < 0.5, -levels_NWD, levels_NWD),
        weights_NW=(exponentials_NW / exponentials_NW.sum(1, keepdim=True)).float(),
        m_N=m_N * (severity_N > 0),
    )


def _checked_severity(severity: float | Tensor, indices_N: Tensor) -> Tensor:
    given = torch.as_tensor(severity, dtype=torch.float64)
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
    if not operations:
        raise InputError(f"operations is empty; it must name at least one of {', '.join(ALL_OPERATIONS)}")
    for name in operations:
        if name not in ALL_OPERATIONS:
            raise unknown("operation", name, ALL_OPERATIONS)
    return torch.tensor([ALL_OPERATIONS.index(name) for name in operations], dtype=torch.int8, device=device)


def apply_augmix(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The planned views of uint8 images, as float32 in [0, 1]."""
    check_images(images_NCHW)
    if len(plan) != len(images_NCHW):
        raise InputError(f"the plan is for {len(plan)} images and there are {len(images_NCHW)}; the two must be equal")
    if plan.m_N.device != images_NCHW.device:
        raise InputError(
            f"the plan is on {plan.m_N.device}, the images on {images_NCHW.device}; use plan.to(images.device)"
        )
    views_NCHW = torch.empty(images_NCHW.shape, dtype=torch.float32, device=images_NCHW.device)
    at_once = _CHUNKS_AT_ONCE * images_a_chunk(images_NCHW)
    make_views = _choose_way(images_NCHW, plan)
    for start in range(0, len(plan), at_once):
        part = slice(start, start + at_once)
        views_NCHW[part] = make_views(images_NCHW[part], plan[part])
    return views_NCHW


def _choose_way(images_NCHW: Tensor, plan: AugMixPlan) -> Callable[[Tensor, AugMixPlan], Tensor]:
    """One kernel on a GPU; groups of chains elsewhere, and for the extra operations, which the kernel does not know."""
    if not images_NCHW.is_cuda or not has_triton() or bool((plan.operations_NWD >= len(OPERATIONS)).any()):
        return views_by_groups
    from counterpoint.augment.fused import fused_views

    return fused_views


def views_by_groups(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The planned views as float32 in [0, 1], by PyTorch alone."""
    return _mix(images_NCHW, run_chains(images_NCHW, plan), plan)


def run_chains(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """What comes out of each chain, uint8 (N, W, C, H, W); for an image with m = 0, which needs no chain, the image."""
    chains_RCHW = images_NCHW.repeat_interleave(plan.weights_NW.shape[1], dim=0)
    position_R = torch.arange(len(chains_RCHW), device=images_NCHW.device)
    operations_NWD = plan.operations_NWD.masked_fill((plan.m_N == 0)[:, None, None], _IDLE)
    for levels_R, groups in zip(_by_place(plan.levels_NWD), _group_chains(_by_place(operations_NWD)), strict=True):
        results = [
            operation(chains_RCHW.index_select(0, position_R[some]), levels_R[some])
            for operation, group in zip((_leave, *_APPLY.values()), groups, strict=True)
            for some in group.split(images_a_chunk(images_NCHW))
            if len(some)
        ]
        # The results stay in the order of the groups: finding a chain is cheaper than putting it back.
        chains_RCHW, position_R = torch.cat(results), torch.cat(groups).argsort()
    return chains_RCHW.index_select(0, position_R).unflatten(0, plan.weights_NW.shape)


def _leave(images_NCHW: Tensor, _: Tensor) -> Tensor:
    return images_NCHW


def _by_place(values_NWD: Tensor) -> Tensor:
    return values_NWD.permute(2, 0, 1).flatten(1)


def _group_chains(operations_DR: Tensor) -> list[tuple[Tensor, ...]]:
    """For each place in the chains, which of them are idle there and which have each of ALL_OPERATIONS.

    A GPU is waited for here, once, and nowhere else.
    """
    kinds = torch.arange(_IDLE, len(ALL_OPERATIONS), dtype=torch.int8, device=operations_DR.device)
    counts_DK = (operations_DR[:, None] == kinds[:, None]).sum(2).tolist()
    return [order_R.split(counts) for order_R, counts in zip(operations_DR.argsort(dim=1), counts_DK, strict=True)]


def _mix(images_NCHW: Tensor, chains_NWCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """((1 − m) · image + m · Σ weight · chain) / 255, no more than 1 although the rounded weights may sum to more."""
    weights_NW = plan.m_N[:, None] * plan.weights_NW
    mixed_NCHW = images_NCHW.float().mul_((1 - plan.m_N)[:, None, None, None])
    for chain_NCHW, weight_N in zip(chains_NWCHW.unbind(1), weights_NW.unbind(1), strict=True):
        mixed_NCHW.add_(chain_NCHW.float().mul_(weight_N[:, None, None, None]))
    return mixed_NCHW.div_(255).clamp_(max=1)
