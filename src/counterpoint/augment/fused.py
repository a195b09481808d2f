"""AugMix on a GPU in kernels of our own, for its nine operations. The values are those of `augmix.views_by_groups`."""

import torch
import triton
from torch import Tensor

from counterpoint.augment import augmix_plan, geometry, kernels
from counterpoint.augment.augmix_plan import AugMixPlan

_SMALL = 64 * 64  # pixels; a larger image has a program for each chain
# Pixels that a program works on at a time, and its warps. More would need more registers, and fewer programs would fit
# on a multiprocessor.
_BLOCK, _WARPS = 256, 4
_LARGE_BLOCK, _LARGE_WARPS = 1024, 8
Tables = tuple[Tensor, ...]
_KINDS = {
    "autocontrast": kernels.AUTOCONTRAST,
    "equalize": kernels.EQUALIZE,
    "posterize": kernels.POSTERIZE,
    "solarize": kernels.SOLARIZE,
}


def fused_views(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The planned views of uint8 images, as float32 in [0, 1]."""
    height, width = images_NCHW.shape[2:]
    tables = (_kinds(plan), _matrices(plan, height, width), _amounts(plan))
    weights = (plan.weights_NW, plan.m_N)
    make = _views_of_small if height * width <= _SMALL else _views_of_large
    views_NCHW = torch.empty(images_NCHW.shape, dtype=torch.float32, device=images_NCHW.device)
    with torch.cuda.device_of(images_NCHW):  # where Triton launches
        make(images_NCHW.contiguous(), _contiguous(tables), _contiguous(weights), views_NCHW)
    return views_NCHW


def _contiguous(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(tensor.contiguous() for tensor in tensors)


def _views_of_small(images_NCHW: Tensor, tables: Tables, weights: Tables, views_NCHW: Tensor) -> None:
    """One program for each image."""
    number, channels, height, width = images_NCHW.shape
    chains, depth = tables[0].shape[1:]
    scratch = images_NCHW.new_empty(number, chains + 1, channels, height, width)
    kernels.augmix_kernel[(number,)](
        images_NCHW, *tables, *weights, scratch, views_NCHW,
        CHAINS=chains, DEPTH=depth, CHANNELS=channels, HEIGHT=height, WIDTH=width, BLOCK=_BLOCK,
        num_warps=_WARPS, enable_fp_fusion=False,
    )  # fmt: skip


def _views_of_large(images_NCHW: Tensor, tables: Tables, weights: Tables, views_NCHW: Tensor) -> None:
    """One program for each chain of each image, then one for each tile of the mixtures."""
    number, channels, height, width = images_NCHW.shape
    chains, depth = tables[0].shape[1:]
    values = channels * height * width
    tiles = triton.cdiv(values, _LARGE_BLOCK)
    scratch = images_NCHW.new_empty(number, chains, 2, channels, height, width)
    kernels.chains_kernel[(number * chains,)](
        images_NCHW, *tables, scratch,
        CHAINS=chains, DEPTH=depth, CHANNELS=channels, HEIGHT=height, WIDTH=width, BLOCK=_LARGE_BLOCK,
        num_warps=_LARGE_WARPS, enable_fp_fusion=False,
    )  # fmt: skip
    kernels.mixing_kernel[(number * tiles,)](
        images_NCHW, *weights, scratch, views_NCHW,
        CHAINS=chains, VALUES=values, TILES=tiles, BLOCK=_LARGE_BLOCK,
        num_warps=_LARGE_WARPS, enable_fp_fusion=False,
    )  # fmt: skip


def _is(plan: AugMixPlan, name: str) -> Tensor:
    return plan.operations_NWD == augmix_plan.OPERATIONS.index(name)


def _kinds(plan: AugMixPlan) -> Tensor:
    """What is done at each place, as int8 (N, W, D). An image with m = 0 needs no chain: all its places are idle."""
    kinds_NWD = torch.full_like(plan.operations_NWD, kernels.AFFINE.value)
    for name, kind in _KINDS.items():
        kinds_NWD.masked_fill_(_is(plan, name), kind.value)
    idle_NWD = (plan.operations_NWD < 0) | (plan.m_N == 0)[:, None, None]
    return kinds_NWD.masked_fill_(idle_NWD, kernels.IDLE.value)


def _matrices(plan: AugMixPlan, height: int, width: int) -> Tensor:
    """The matrices of the geometric operations, as float64 (N, W, D, 6): where each output pixel is taken from."""
    levels_NWD = plan.levels_NWD
    zero, one = torch.zeros_like(levels_NWD), torch.ones_like(levels_NWD)
    shear, degrees = augmix_plan.shear_of(levels_NWD), augmix_plan.degrees_of(levels_NWD)

    def only(name: str, values_NWD: Tensor) -> Tensor:
        return torch.where(_is(plan, name), values_NWD.double(), zero)

    slid = (
        one, only("shear_x", shear), only("translate_x", augmix_plan.pixels_of(levels_NWD, width)),
        only("shear_y", shear), one, only("translate_y", augmix_plan.pixels_of(levels_NWD, height)),
    )  # fmt: skip
    turned = geometry.rotation(degrees, height, width)
    rotated_NWD1 = _is(plan, "rotate")[..., None]
    return torch.where(rotated_NWD1, torch.stack(turned, dim=-1), torch.stack(slid, dim=-1))


def _amounts(plan: AugMixPlan) -> Tensor:
    """The bits that posterize keeps, or the least value that solarize inverts, as int32 (N, W, D).

    For all other operations it is 256: no value is that large, so nothing is inverted.
    """
    bits = 255 << (8 - augmix_plan.bits_of(plan.levels_NWD)) & 255
    threshold = torch.where(_is(plan, "solarize"), augmix_plan.threshold_of(plan.levels_NWD), 256)
    return torch.where(_is(plan, "posterize"), bits, threshold).int()
