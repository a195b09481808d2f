"""Whether a layer is linear in its input, found by trying it: only then do r and s around it scale its weight."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from counterpoint.nn.batch_ensemble import channels

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""How far two computations of the same value may lie apart, relative to the largest of them."""


def close(found: Tensor, expected: Tensor, share: float = 1.0) -> bool:
    """Whether two results agree within a share of their dtype's tolerance. What is not finite must be so in both."""
    if found.shape != expected.shape:
        return False
    if not expected.is_floating_point():
        return torch.equal(found, expected)
    finite = expected.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return False
    if not finite.any():
        return True
    scale = expected[finite].abs().max().double().clamp(min=1e-30)
    return bool((found - expected)[finite].abs().max().double() <= share * TOLERANCE[expected.dtype] * scale)


@torch.no_grad()
def why_not_linear(layer: nn.Module) -> str | None:
    """Why the layer cannot have members, or None: it is linear, keeps rows apart and adds its bias last."""
    name = type(layer).__name__
    trial: Any = copy.deepcopy(layer).eval()
    x, y = _inputs(trial)
    try:
        with_bias = trial(x) if trial.bias is not None else None
        bias, trial.bias = trial.bias, None
        both, of_x, of_y, first_row = trial(x - 2 * y), trial(x), trial(y), trial(x[:1])
    except Exception as error:  # whatever a stranger's code raises
        return f"{name} fails when it is tried without its bias ({type(error).__name__}: {error})"
    if not isinstance(of_x, Tensor) or of_x.shape[_channel_axis(trial)] != channels(trial)[1]:
        return f"{name} does not return a tensor with its channels"
    if not close(both, of_x - 2 * of_y):
        return f"{name} is not linear in its input"
    if not close(of_x[:1], first_row):
        return f"{name} mixes the rows of a batch"
    if with_bias is not None and not close(with_bias, of_x + _shaped(bias, of_x, trial)):
        return f"{name} does more with its bias than to add it"
    return None


def _channel_axis(layer: nn.Module) -> int:
    return -1 if isinstance(layer, nn.Linear) else 1


def _shaped(bias: Tensor, like: Tensor, layer: nn.Module) -> Tensor:
    shape = [1] * like.dim()
    shape[_channel_axis(layer)] = -1
    return bias.view(shape)


def _inputs(layer: Any) -> tuple[Tensor, Tensor]:
    """Two inputs of three rows, large enough for the layer's kernel."""
    shape: tuple[int, ...] = (3, channels(layer)[0])
    if not isinstance(layer, nn.Linear):
        shape += tuple(2 * d * (k - 1) + 2 for k, d in zip(layer.kernel_size, layer.dilation, strict=True))
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(shape, generator=generator, device="cpu").to(layer.weight) for _ in range(2))
    return x, y
