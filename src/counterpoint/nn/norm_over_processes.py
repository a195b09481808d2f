"""BatchNorm over the batches of several processes: its statistics are those of all rows, as if they were one batch.

The sums go through `sum_over_processes`, an operator of its own, so that torch.compile takes it as it is.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from counterpoint.errors import InputError
from counterpoint.parallel.group import all_reduce
from counterpoint.parallel.world import World


@torch.library.custom_op("counterpoint::sum_over_processes", mutates_args=())
def sum_over_processes(values: Tensor) -> Tensor:
    sums = values.clone(memory_format=torch.contiguous_format)
    all_reduce(sums)
    return sums


@sum_over_processes.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def normalise_over_processes(model: nn.Module, world: World) -> None:
    """Make every BatchNorm of the model take its statistics over all processes. Its tensors and names stay the same."""
    for norm in model.modules():
        if isinstance(norm, nn.InstanceNorm1d | nn.InstanceNorm2d | nn.InstanceNorm3d) and norm.track_running_stats:
            raise InputError(
                f"{type(norm).__name__} with track_running_stats averages over the rows of one process; use it without "
                "them, or train in one process"
            )
        # Torch's SyncBatchNorm does the same already, on a GPU.
        if isinstance(norm, _BatchNorm) and not isinstance(norm, nn.SyncBatchNorm | _OverProcesses):
            norm.__class__ = _over_processes(type(norm), world)  # type: ignore[assignment,arg-type]


class _OverProcesses(nn.Module):
    """A BatchNorm of any class, whose own code runs as it is up to torch's `batch_norm`."""

    world: World

    def forward(self, input: Tensor) -> Tensor:
        asked: list[World] = []
        with _GlobalStatistics(self.world, asked):
            output: Tensor = super().forward(input)
        if self.training and not asked:
            raise InputError(
                f"{type(self).__name__} does not use torch.nn.functional.batch_norm, so that its statistics cannot be "
                "taken over several processes; train in one process"
            )
        return output


@cache
def _over_processes(plain: Any, world: World) -> type[nn.Module]:
    return type(plain.__name__, (_OverProcesses, plain), {"world": world})


class _GlobalStatistics(TorchFunctionMode):
    """Inside, `batch_norm` in training takes its statistics over all processes. `asked` gets an entry for each call."""

    def __init__(self, world: World, asked: list[World]) -> None:
        super().__init__()
        self.world, self.asked = world, asked

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is batch_norm:
            self.asked.append(self.world)
            return batch_norm_over_processes(self.world, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def batch_norm_over_processes(
    world: World,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Torch's `batch_norm`, as if the rows of all processes were one batch. In evaluation it is torch's own."""
    if not training:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    output, mean_C, var_C, count = _Normalise.apply(input, weight, bias, eps, world.rank, world.size)
    with torch.no_grad():
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean_C.to(running_mean.dtype), alpha=momentum)
        if running_var is not None:
            unbiased_C = var_C * (count / (count - 1))
            running_var.mul_(1 - momentum).add_(unbiased_C.to(running_var.dtype), alpha=momentum)
    return output


class _Normalise(torch.autograd.Function):
    """(x − μ) / √(σ² + ε) · γ + β, with μ and σ² of all processes' rows.

    The backward pass is written out, so that it needs one sum over the processes, and nothing is kept but the input.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, rank: int, size: int
    ) -> Any:
        x = _accurate(input)
        mean_C, var_C, count = statistics_over_processes(x, rank, size)
        centred = x - _to_channels(mean_C, x)
        scale_C = (var_C + eps).rsqrt()
        output = centred * _to_channels(scale_C if weight is None else scale_C * weight, x)
        if bias is not None:
            output = output + _to_channels(bias, x)
        ctx.save_for_backward(input, weight, mean_C, scale_C, count)
        ctx.has_bias = bias is not None
        ctx.mark_non_differentiable(mean_C, var_C, count)
        return output.to(input.dtype), mean_C, var_C, count

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        input, weight, mean_C, scale_C, count = ctx.saved_tensors
        g = _accurate(grad)
        normalised = (_accurate(input) - _to_channels(mean_C, input)) * _to_channels(scale_C, input)
        here_2C = torch.stack([_sum(g), _sum(g * normalised)])
        all_2C = sum_over_processes(here_2C) / count
        gamma_C = scale_C if weight is None else scale_C * weight
        centred = g - _to_channels(all_2C[0], g) - normalised * _to_channels(all_2C[1], g)
        grad_input = (centred * _to_channels(gamma_C, g)).to(input.dtype)
        # The gradients of the parameters are those of this process's rows. They are summed over processes with all
        # other gradients.
        grad_bias, grad_weight = here_2C
        return grad_input, None if weight is None else grad_weight, grad_bias if ctx.has_bias else None, *(None,) * 3


def statistics_over_processes(x: Tensor, rank: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each channel's mean and variance over all processes, and how many values they are of.

    Each process tells its mean and its squared differences from that. E[x²] − μ² would lose its digits where μ is
    large. The sum over the processes puts each one's row beside the others', so one message is enough.
    """
    count_here = x.numel() // x.shape[1]
    mean_here_C = _sum(x) / count_here
    squares_C = _sum((x - _to_channels(mean_here_C, x)).square())
    row = torch.cat([mean_here_C, squares_C, x.new_full((1,), count_here)])
    rows_P = sum_over_processes(torch.stack([row if process == rank else 0 * row for process in range(size)]))
    mean_PC, squares_PC, count_P1 = rows_P.split([x.shape[1], x.shape[1], 1], dim=1)
    count = count_P1.sum()
    mean_C = (count_P1 / count * mean_PC).sum(0)
    var_C = (squares_PC + count_P1 * (mean_PC - mean_C).square()).sum(0) / count
    return mean_C, var_C, count


def _accurate(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _sum(x: Tensor) -> Tensor:
    """The sums over all axes but the channels'."""
    return x.sum([0, *range(2, x.dim())])


def _to_channels(values_C: Tensor, x: Tensor) -> Tensor:
    return values_C.view(-1, *(1,) * (x.dim() - 2))
