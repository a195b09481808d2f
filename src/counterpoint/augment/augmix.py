"""AugMix (Hendrycks et al. 2020) as the paper uses it: a plan (`augmix_plan`) applied to images, without randomness.

The operations work on 8-bit values. The chains are mixed in float32 with Dirichlet(1, …, 1) weights. Then their mixture
is mixed with the clean image, with weight m (docs/paper.md, 6).

Shapes: N images, W chains per image, R = N·W chains, D places in a chain, C channels, H W pixels.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from counterpoint.augment import geometry, tone
from counterpoint.augment.augmix_plan import (
    ALL_OPERATIONS,
    IDLE,
    OPERATIONS,
    AugMixPlan,
    bits_of,
    degrees_of,
    pixels_of,
    share_of_level,
    shear_of,
    threshold_of,
)
from counterpoint.augment.standard import check_images, images_per_chunk, white
from counterpoint.devices import has_triton
from counterpoint.errors import InputError


def _enhancement(levels_N: Tensor) -> Tensor:
    return share_of_level(levels_N.abs(), 1.8) + 0.1


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
# Operations are grouped over this many chunks of images: enough that the groups are not small.
_CHUNKS_AT_ONCE = 16


def apply_augmix(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """Apply a plan to uint8 images (N, C, H, W). The result is float32 in [0, 1], of the same shape.

    >>> import torch
    >>> from counterpoint.augment import apply_augmix, sample_augmix
    >>> from counterpoint.seeding import Stream
    >>> images_u8 = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
    >>> views = apply_augmix(images_u8, sample_augmix(torch.arange(8), 3.0, Stream(0, "augmix")))
    >>> views.shape, views.dtype
    (torch.Size([8, 3, 32, 32]), torch.float32)
    """
    check_images(images_NCHW)
    if not isinstance(plan, AugMixPlan):
        raise InputError(f"plan is a {type(plan).__name__}; it must be a plan that sample_augmix has drawn")
    if len(plan) != len(images_NCHW):
        raise InputError(
            f"the plan is for {len(plan)} images but there are {len(images_NCHW)} images; the two numbers must be equal"
        )
    if plan.m_N.device != images_NCHW.device:
        raise InputError(
            f"the plan is on {plan.m_N.device}, the images on {images_NCHW.device}; use plan.to(images.device)"
        )
    views_NCHW = torch.empty(images_NCHW.shape, dtype=torch.float32, device=images_NCHW.device)
    at_once = _CHUNKS_AT_ONCE * images_per_chunk(images_NCHW)
    make_views = _choose_implementation(images_NCHW, plan)
    for start in range(0, len(plan), at_once):
        part = slice(start, start + at_once)
        views_NCHW[part] = make_views(images_NCHW[part], plan[part])
    return views_NCHW


def _choose_implementation(images_NCHW: Tensor, plan: AugMixPlan) -> Callable[[Tensor, AugMixPlan], Tensor]:
    """Kernels on a GPU, groups of chains elsewhere.

    The kernels do not know the extra operations. A plan with any of them is worked on in groups on a GPU too.
    """
    if not images_NCHW.is_cuda or not has_triton():
        return views_by_groups
    if plan.may_have_extras and bool((plan.operations_NWD >= len(OPERATIONS)).any()):
        return views_by_groups
    from counterpoint.augment.fused import fused_views

    return fused_views


def views_by_groups(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The planned views as float32 in [0, 1], by PyTorch alone."""
    return _mix(images_NCHW, run_chains(images_NCHW, plan), plan)


def run_chains(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The result of each chain, as uint8 (N, W, C, H, W). For an image with m = 0, which needs no chain, the image."""
    chains_RCHW = images_NCHW.repeat_interleave(plan.weights_NW.shape[1], dim=0)
    position_R = torch.arange(len(chains_RCHW), device=images_NCHW.device)
    operations_NWD = plan.operations_NWD.masked_fill((plan.m_N == 0)[:, None, None], IDLE)
    for levels_R, groups in zip(_by_place(plan.levels_NWD), _group_chains(_by_place(operations_NWD)), strict=True):
        results = [
            operation(chains_RCHW.index_select(0, position_R[some]), levels_R[some])
            for operation, group in zip((_leave, *(_APPLY[name] for name in ALL_OPERATIONS)), groups, strict=True)
            for some in group.split(images_per_chunk(images_NCHW))
            if len(some)
        ]
        # The results stay in the order of the groups: looking up a chain is cheaper than moving it back.
        chains_RCHW, position_R = torch.cat(results), torch.cat(groups).argsort()
    return chains_RCHW.index_select(0, position_R).unflatten(0, plan.weights_NW.shape)


def _leave(images_NCHW: Tensor, _: Tensor) -> Tensor:
    return images_NCHW


def _by_place(values_NWD: Tensor) -> Tensor:
    return values_NWD.permute(2, 0, 1).flatten(1)


def _group_chains(operations_DR: Tensor) -> list[tuple[Tensor, ...]]:
    """For each place in the chains: the chains that are idle there, then those with each of ALL_OPERATIONS.

    This is the only point at which Python waits for a GPU, once for all places.
    """
    kinds = torch.arange(IDLE, len(ALL_OPERATIONS), dtype=torch.int8, device=operations_DR.device)
    counts_DK = (operations_DR[:, None] == kinds[:, None]).sum(2).tolist()
    return [order_R.split(counts) for order_R, counts in zip(operations_DR.argsort(dim=1), counts_DK, strict=True)]


def _mix(images_NCHW: Tensor, chains_NWCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """((1 − m) · image + m · Σ weight · chain) / 255.

    The rounded weights may sum to more than 1, so the result is limited to 1.
    """
    weights_NW = plan.m_N[:, None] * plan.weights_NW
    mixed_NCHW = images_NCHW.float().mul_((1 - plan.m_N)[:, None, None, None])
    for chain_NCHW, weight_N in zip(chains_NWCHW.unbind(1), weights_NW.unbind(1), strict=True):
        mixed_NCHW.add_(chain_NCHW.float().mul_(weight_N[:, None, None, None]))
    return mixed_NCHW.div_(white(mixed_NCHW.dtype, mixed_NCHW.device)).clamp_(max=1)


def jensen_shannon(logits_VNK: Tensor) -> Tensor:
    """AugMix's consistency loss: the Jensen–Shannon divergence, in nats, of the predictions for V views of each image.

    It is the mean over the views of KL(view ‖ mean of the views), averaged over the images (Hendrycks et al. 2020,
    eq. 1 and 2).
    """
    log_probs_VNK = logits_VNK.log_softmax(dim=-1)
    log_mean_NK = torch.logsumexp(log_probs_VNK, dim=0) - math.log(len(logits_VNK))
    return (log_probs_VNK.exp() * (log_probs_VNK - log_mean_NK)).sum(dim=-1).mean()
