"""What the processes of a world do together: agree, wait for each other, add up.

All of them call each function here at the same place. For a process alone nothing happens, and no group is made.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor

from counterpoint.errors import InputError, StoppedError
from counterpoint.parallel.world import AgreedError, ProcessLostError, World

Result = TypeVar("Result")

PATIENCE = timedelta(minutes=30)
"""How long processes wait for one that does not answer. One that has ended is noticed at once."""
LONG_PATIENCE = timedelta(days=1)
"""The same, where one process may work for hours before the others are needed."""


@contextmanager
def joined(world: World, patience: timedelta = PATIENCE) -> Iterator[None]:
    """Inside, the processes reach each other: by gloo in a CPU's memory, and by NCCL in a GPU's."""
    if world.is_alone:
        yield
        return
    import torch.distributed as dist

    # Its functions have the group of that moment as a default. Imported later (torch.compile does it), they would keep
    # the group alive after its end, and gloo's threads could abort the process while Python ends.
    import torch.distributed.nn

    with _reaching_others():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=patience)
    yield
    dist.destroy_process_group()  # after an error the others may not answer, and the process ends anyway


@contextmanager
def agreed(world: World) -> Iterator[None]:
    """All processes come to the end of this block, or all raise the error of the first that has one.

    Where one was stopped and none has an error, all raise StoppedError. Inside, no process may need another.
    """
    if world.is_alone:
        yield
        return
    error: Exception | None = None
    try:
        yield
    except (InputError, OSError, StoppedError) as caught:
        if isinstance(caught, AgreedError | ProcessLostError):
            raise
        error = caught
    was_stopped = isinstance(error, StoppedError)
    told = _gather(world, (None if error is None or was_stopped else _in_words(error), was_stopped))
    if first := next((text for text, _ in told if text is not None), None):
        raise AgreedError(first) from error
    if any(stopped for _, stopped in told):
        raise StoppedError


def first_then_others(world: World, work: Callable[[], Result]) -> Result:
    """What `work` returns in this process. The first process does it before the others, which then find its files."""
    results: list[Result] = []
    for turn in (True, False) if not world.is_alone else (True,):
        with agreed(world):
            if world.is_first == turn:
                results.append(work())
    return results[0]


def any_of(world: World, flag: bool) -> bool:
    """Whether the flag is set in any process."""
    if world.is_alone:
        return flag
    flags = torch.tensor([float(flag)])
    add_up(world, [flags])
    return bool(flags)


def from_first(world: World, value: Result) -> Result:
    """The value that the first process has, in all of them."""
    if world.is_alone:
        return value
    import torch.distributed as dist

    values = [value]
    with _reaching_others():
        dist.broadcast_object_list(values, src=0)
    return values[0]


def copy_from_first(world: World, tensors: Sequence[Tensor]) -> None:
    """Give the tensors the values that they have in the first process."""
    import torch.distributed as dist

    with _reaching_others():
        for tensor in tensors if not world.is_alone else ():
            dist.broadcast(tensor, src=0)


def add_up(world: World, tensors: Sequence[Tensor]) -> None:
    """Replace the tensors by their sums over all processes, which have the same bits in each.

    They are sent as one, because many small messages take longer.
    """
    if world.is_alone:
        return
    for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
        of_type = [tensor for tensor in tensors if tensor.dtype == dtype]
        sums = torch.cat([tensor.reshape(-1) for tensor in of_type])
        all_reduce(sums)
        for tensor, total in zip(of_type, sums.split([tensor.numel() for tensor in of_type]), strict=True):
            tensor.copy_(total.view(tensor.shape))


def all_reduce(tensor: Tensor) -> None:
    """Replace the tensor by its sum over all processes."""
    import torch.distributed as dist

    with _reaching_others():
        dist.all_reduce(tensor)


def _gather(world: World, value: Result) -> list[Result]:
    """Each process's value."""
    import torch.distributed as dist

    values = [value] * world.size
    with _reaching_others():
        dist.all_gather_object(values, value)
    return values


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextmanager
def _reaching_others() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        detail = str(error).strip().splitlines()[0]
        raise ProcessLostError(
            "another process of this run has ended or does not answer; its message and torchrun's report say why. The "
            f"same command continues the run, also with another number of processes ({detail})"
        ) from error
