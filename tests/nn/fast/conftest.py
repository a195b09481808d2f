"""Where and on what the kernels run: on a GPU in bf16, or on a CPU under Triton's interpreter in fp32."""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.interpreted import mend_interpreter

# There is no Triton for macOS and Windows.
collect_ignore_glob = [] if find_spec("triton") else ["test_*.py"]
ON_GPU = torch.cuda.is_available()

# Of the largest exact value, or of 1, the size of the inputs: where BatchNorm undoes r, the gradient of r is what is
# left of terms that cancel. fp32: some hundred values are summed in another order, and variances are Σy²/n − μ².
# bf16: results are rounded to 8 bits, and so are the folded weights and the parts of their gradients: a few times 2⁻⁹.
_TOLERANCE = {torch.float32: 5e-5, torch.bfloat16: 2e-2}
_MARGIN = 2**14  # values; no tile has more

mend_interpreter()

Draw = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
Tensors = Sequence[Tensor]
CheckAll = Callable[[Tensors, Tensors, Tensors, Tensors], None]


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda" if ON_GPU else "cpu")


@pytest.fixture
def dtype() -> torch.dtype:
    """Of the activations. Triton 3.6's interpreter multiplies matrices of bf16 as if their bits were integers."""
    return torch.bfloat16 if ON_GPU else torch.float32


@pytest.fixture(autouse=True)
def exact_reference() -> Iterator[None]:
    """No TF32 in what the kernels are compared with."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


class _GuardedMemory:
    """Tensors full of NaN, with more NaN before and after each.

    A value that is not written stays NaN, a result that was read from outside a tensor becomes NaN, and what was
    written outside is found in the end.
    """

    def __init__(self) -> None:
        self._buffers: list[Tensor] = []

    def tensor_like(self, model: Tensor) -> Tensor:
        buffer = torch.full((model.numel() + 2 * _MARGIN,), torch.nan, dtype=model.dtype, device=model.device)
        self._buffers.append(buffer)
        # Not a slice, which autograd would treat differently.
        inside = torch.empty(0, dtype=model.dtype, device=model.device)
        return inside.set_(buffer.untyped_storage(), _MARGIN, model.shape, model.stride())

    def check(self) -> None:
        for buffer in self._buffers:
            assert bool(buffer[:_MARGIN].isnan().all()), "written before the tensor"
            assert bool(buffer[-_MARGIN:].isnan().all()), "written after the tensor"


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[_GuardedMemory]:
    """Whatever counterpoint allocates without filling it is guarded."""
    memory = _GuardedMemory()

    def guarded(allocate: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def allocate_guarded(*arguments: Any, **options: Any) -> Tensor:
            tensor = allocate(*arguments, **options)
            return memory.tensor_like(tensor) if tensor.is_floating_point() else tensor

        return allocate_guarded

    monkeypatch.setattr(torch, "empty_like", guarded(torch.empty_like))
    monkeypatch.setattr(Tensor, "new_empty", guarded(Tensor.new_empty))
    yield memory
    memory.check()


@pytest.fixture
def draw(device: torch.device, dtype: torch.dtype, memory: _GuardedMemory) -> Draw:
    """draw(*shape, dtype=…): fresh normal numbers, the same from run to run."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int, dtype: torch.dtype = dtype) -> Tensor:
        values = torch.randn(shape, generator=generator).to(device, dtype)
        return memory.tensor_like(values).copy_(values)

    return draw


@pytest.fixture
def check(dtype: torch.dtype) -> Check:
    """check(found, exact): the same shape, and as near as the precision allows."""

    def check(found: Tensor, exact: Tensor) -> None:
        assert found.shape == exact.shape
        difference = (found.double() - exact.double()).abs().max()
        assert difference <= _TOLERANCE[dtype] * exact.double().abs().max().clamp(min=1)

    return check


@pytest.fixture
def check_all(check: Check, draw: Draw) -> CheckAll:
    """check_all(outputs, leaves, exact outputs, exact leaves): the values, and all gradients of a random weighting."""

    def check_all(found: Tensors, leaves: Tensors, exact: Tensors, exact_leaves: Tensors) -> None:
        probes = [draw(*output.shape) for output in found]
        gradients = torch.autograd.grad(found, leaves, [probe.clone() for probe in probes])
        exact_gradients = torch.autograd.grad(exact, exact_leaves, [probe.double() for probe in probes])
        for ours, theirs in zip((*found, *gradients), (*exact, *exact_gradients), strict=True):
            check(ours, theirs)

    return check_all
