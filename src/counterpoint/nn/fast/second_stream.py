"""Weight gradients on a second CUDA stream, where they fill the gaps of the main one.

Nothing else in a backward pass needs the gradients of the weights, so the main stream does not wait for them.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from torch import Tensor
from torch.autograd import Variable

Result = TypeVar("Result")

_MOST_UNDER_WAY = 2  # pieces of work whose inputs are kept in memory


def run_on_second_stream(work: Callable[[], Result], *inputs: Tensor) -> Result:
    """What `work` returns. `inputs` are the tensors that it reads.

    `work` must return gradients of parameters that have none yet, in the memory format of the parameters. Autograd then
    takes them as they are, and nothing reads them before the backward pass is over. On a CPU `work` is simply run.
    """
    return _second_stream(inputs[0].device).run(work, inputs) if inputs[0].is_cuda else work()


@cache
def _second_stream(device: torch.device) -> "_SecondStream":
    return _SecondStream(device)


class _SecondStream:
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
        # The inputs are kept, because the memory of a tensor that nobody holds may be given to other tensors.
        self._under_way.append((event, inputs))
        if len(self._under_way) > _MOST_UNDER_WAY:
            torch.cuda.current_stream().wait_event(self._under_way.pop(0)[0])
        return result

    def _wait_for_all(self) -> None:
        torch.cuda.current_stream().wait_stream(self._stream)
        self._under_way.clear()
