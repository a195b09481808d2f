"""The device that work runs on, and torch's settings for arithmetic, which are put back afterwards."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar, get_args

import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.parallel.world import ALONE, World

if sys.platform != "win32":
    import resource

Module = TypeVar("Module", bound=nn.Module)

_CGROUPS = Path("/sys/fs/cgroup")
_CONTAINERS = (
    (_CGROUPS / "memory.max", _CGROUPS / "memory.current", "inactive_file"),
    (
        _CGROUPS / "memory" / "memory.limit_in_bytes",
        _CGROUPS / "memory" / "memory.usage_in_bytes",
        "total_inactive_file",
    ),
)
"""A container's limit and use, in either version of cgroups, and what memory.stat calls files that can be dropped."""
_PROC = Path("/proc")
_PIXELS_AT_ONCE = 256 * 64 * 64

Precision = Literal["headline", "bf16", "strict"]
"""Of an evaluation: fp32 with TF32 convolutions on a GPU, bf16 with fp32 linear layers, or fp32 everywhere."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def choose_device(name: str | torch.device, world: World = ALONE) -> torch.device:
    """The device called `name`; "auto" is the GPU if there is one. With several processes, each gets its own GPU."""
    name = str(name)  # torch's own devices are taken too
    if not world.is_alone and name.startswith("cuda:"):
        raise InputError(f"device {name!r} cannot be shared by {world.size} processes; use auto, cpu or cuda")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not world.is_alone and name == "cuda":
        name = f"cuda:{world.local_rank}"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is not known; use auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r} is not supported; use auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device {name!r} does not exist: torch sees {torch.cuda.device_count()} GPUs here; use auto or cpu"
        )
    return device


def moved(module: Module, device: torch.device) -> Module:
    """The module on the device: on a GPU channels-last, in which convolutions are faster.

    On a CPU that layout would let torch 2.13 corrupt memory, in the backward pass of a convolution of one channel
    (docs/log.md).
    """
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    return module.to(device, memory_format=layout)  # type: ignore[call-overload]


def total_memory(device: torch.device) -> int:
    """The bytes of memory that the device has. For a CPU these are what this process may use."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if sys.platform == "win32":
        return sys.maxsize
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), resource.getrlimit(resource.RLIMIT_AS)[0]]
    limits += [limit for file, _, _ in _CONTAINERS if (limit := _number_in(file)) is not None]
    return min(limit for limit in limits if limit > 0)  # RLIM_INFINITY is −1


def free_memory() -> int:
    """The bytes that this process can still take of the CPU's memory. Swap does not count: it is too slow to train in.

    What the system keeps of files counts as free where the system says so, because it gives that up at once.
    """
    free = [total_memory(torch.device("cpu"))]
    if (available := _entry(_PROC / "meminfo", "MemAvailable:")) is not None:
        free.append(1024 * available)
    for file, used_file, droppable in _CONTAINERS:
        limit, used = _number_in(file), _number_in(used_file)
        if limit is not None and used is not None:
            free.append(limit - used + (_entry(file.parent / "memory.stat", droppable) or 0))
    if sys.platform != "win32" and (most := resource.getrlimit(resource.RLIMIT_AS)[0]) > 0:
        free.append(most - 1024 * (_entry(_PROC / "self" / "status", "VmSize:") or 0))
    return max(min(free), 0)


def _number_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return None


def _entry(file: Path, name: str) -> int | None:
    """The number after `name` at the start of a line."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), None)


def at_once(most: int, height: int, width: int) -> int:
    """How many of at most `most` images go through a network together on a CPU, without gradients.

    Large images go in smaller batches, because a system that runs out of memory ends the process without a message.
    """
    return max(1, min(most, _PIXELS_AT_ONCE // (height * width)))


def has_triton() -> bool:
    """Whether our kernels can run. They need Triton, which comes with PyTorch's CUDA builds but not on every system."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def training_arithmetic(device: torch.device, deterministic: bool) -> Iterator[None]:
    """Inside, a GPU uses the kernels for training: the fastest, or with `deterministic` those that repeat their bits.

    A CPU needs no setting.
    """
    if device.type != "cuda":
        yield
        return
    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), cudnn.benchmark
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when deterministic
    torch.use_deterministic_algorithms(deterministic)
    cudnn.benchmark = not deterministic
    try:
        with torch.cuda.device(device):  # streams and kernels for which no device is named use this one
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        cudnn.benchmark = before[1]


@contextmanager
def arithmetic(precision: Precision, device: torch.device) -> Iterator[None]:
    """Inside, torch computes at `precision`: headline lets convolutions alone use TF32, and bf16 is autocast."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32
    cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32 = precision == "headline", True, False
    try:
        with warnings.catch_warnings(), torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            warnings.filterwarnings("ignore", "TensorFloat32 tensor cores", UserWarning)  # it is off on purpose
            yield
    finally:
        cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32 = before


def describe_precision(precision: Precision, device: torch.device) -> str:
    """The precision in words, for a result's record."""
    if precision == "bf16":
        return "bf16 activations and convolutions, fp32 linear layers"
    on_gpu = device.type == "cuda"
    return "fp32 activations, TF32 convolutions" if on_gpu and precision == "headline" else "fp32"
