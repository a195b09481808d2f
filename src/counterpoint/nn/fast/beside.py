"""Work of a backward pass that nothing in it waits for, on a second stream, where it fills the gaps of the main one."""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor
from torch.autograd import Variable

Result = TypeVar("Result")

_AT_ONCE = 2  # pieces of work whose inputs are kept in memory


def run_beside(work: Callable[[], Result], *inputs: Tensor) -> Result:
    """What `work` returns, which must be gradients of parameters that have none yet, in the parameters' own memory
    format: autograd then takes them as they are, and nothing reads them before the backward pass is over.

    `inputs` are the tensors that it reads. On a CPU it simply runs.
    """
    return _stream_beside(inputs[0].device).run(work, inputs) if inputs[0].is_cuda else work()


@cache
def _stream_beside(device: torch.device) -> "_StreamBeside":
    return _StreamBeside(device)


class _StreamBeside:
    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)
        self._under_way: list[tuple[torch.cuda.Event, tuple[Tensor, ...]]] = []

    def run(self, work: Callable[[], Result], inputs: tuple[Tensor, ...]) -> Result:
        Variable._execution_engine.queue_callback(self._wait_for_all)
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            result = work()
            event = torch.cuda.Event()
            event.record()
        # The inputs are kept because their memory may be given to others as soon as nobody holds them.
        self._under_way.append((event, inputs))
        if len(self._under_way) > _AT_ONCE:
            torch.cuda.current_stream().wait_event(self._under_way.pop(0)[0])
        return result

    def _wait_for_all(self) -> None:
        torch.cuda.current_stream().wait_stream(self._stream)
        self._under_way.clear()
