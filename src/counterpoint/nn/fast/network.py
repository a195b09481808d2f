"""ResNeXt-29's forward pass in training, made of the fast pieces, on the parameters of the reference network."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from counterpoint.nn.batch_ensemble import BatchEnsembleConv2d
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.fast.grouped import grouped as grouped_conv
from counterpoint.nn.fast.norm import Norm, Summed, norm_relu, residual_relu, sums_of
from counterpoint.nn.fast.pointwise import block_input, pointwise
from counterpoint.nn.members import expand_to_rows
from counterpoint.nn.resnext import Bottleneck, ResNeXt29


def fast_forward(
    model: Ensemble, views_MBCHW: Tensor, keep: Tensor | None, dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """What `model(views, keep)` computes in training mode: activations in `dtype`, sums and logits in fp32."""
    network, members = cast(ResNeXt29, model.network), model.num_members
    images_NCHW = views_MBCHW.flatten(0, 1)
    stem_conv, stem_norm = _layers(network.stem)
    y_NHWC = _stem(images_NCHW, stem_conv, dtype)
    x_NHWC = norm_relu(Summed(y_NHWC, sums_of(y_NHWC, members)), Norm(stem_norm, members, _r(stem_conv)))
    for i, block in enumerate(network.blocks):
        x_NHWC = _bottleneck(x_NHWC, cast(Bottleneck, block), members, None if keep is None else keep[i])
    logits_NK = network.classifier(x_NHWC.mean(dim=(1, 2), dtype=torch.float32))
    return logits_NK.unflatten(0, (members, -1))


def _stem(images_NCHW: Tensor, conv: nn.Conv2d, dtype: torch.dtype) -> Tensor:
    if isinstance(conv, BatchEnsembleConv2d):
        images_NCHW = images_NCHW * expand_to_rows(conv.s, len(images_NCHW))[..., None, None]
    x_NCHW, weight = (tensor.to(dtype, memory_format=torch.channels_last) for tensor in (images_NCHW, conv.weight))
    return conv2d(x_NCHW, weight, None, conv.stride, conv.padding).permute(0, 2, 3, 1).contiguous()


def _bottleneck(x_NHWC: Tensor, block: Bottleneck, members: int, keep_N: Tensor | None) -> Tensor:
    (reduce, reduce_norm), (grouped, grouped_norm) = _layers(block.reduce), _layers(block.grouped)
    expand, expand_norm = _layers(block.expand)
    shortcut, shortcut_norm = (None, None) if isinstance(block.shortcut, nn.Identity) else _layers(block.shortcut)
    y, shortcut_y = block_input(x_NHWC, reduce, shortcut)
    x_NHWC = norm_relu(y, Norm(reduce_norm, members), _s(grouped))
    y_NHWC = grouped_conv(x_NHWC, grouped)
    x_NHWC = norm_relu(Summed(y_NHWC, sums_of(y_NHWC, members)), Norm(grouped_norm, members, _r(grouped)))
    y = pointwise(x_NHWC, expand)
    fast_shortcut_norm = Norm(shortcut_norm, members) if shortcut_norm is not None else None
    return residual_relu(y, Norm(expand_norm, members), shortcut_y, fast_shortcut_norm, keep_N)


def _layers(conv_norm: nn.Module) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
    conv, norm = cast(nn.Sequential, conv_norm)
    return cast(nn.Conv2d, conv), cast(nn.BatchNorm2d, norm)


def _r(conv: nn.Conv2d) -> Tensor | None:
    return conv.r if isinstance(conv, BatchEnsembleConv2d) else None


def _s(conv: nn.Conv2d) -> Tensor | None:
    return conv.s if isinstance(conv, BatchEnsembleConv2d) else None
