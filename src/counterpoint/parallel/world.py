"""Which process this is, of how many, and which of them reports an error that several have. Needs no torch."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from counterpoint.errors import InputError

LET_THE_FIRST_SPEAK = 10.0
"""Seconds that a silent process waits before it ends: torchrun ends all others as soon as one has failed."""
_TORCHRUN_SETS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class World:
    """This process is number `rank` of `size` that work together, and number `local_rank` of `local_size` on its
    machine.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size or self.local_rank < 0:
            raise InputError(
                f"RANK {self.rank}, WORLD_SIZE {self.size} and LOCAL_RANK {self.local_rank} do not fit together; they "
                "are set by torchrun"
            )

    @property
    def is_alone(self) -> bool:
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """The one process that writes and prints."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This process's part of `count` things in a row. Parts differ by one at most, and the first are the larger."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def count(self, count: int) -> int:
        """How many of `count` things this process has."""
        here = self.share(count)
        return int(here.stop - here.start)


ALONE = World()


def this_world(environment: Mapping[str, str] = os.environ) -> World:
    """The processes that torchrun has started, by the variables that it sets; otherwise this process alone."""
    if any(name not in environment for name in _TORCHRUN_SETS):
        return ALONE
    numbers = {name: environment[name] for name in _TORCHRUN_SETS[:3]}
    numbers["LOCAL_WORLD_SIZE"] = environment.get("LOCAL_WORLD_SIZE", "1")
    try:
        return World(*map(int, numbers.values()))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        said = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
        raise InputError(f"{said} must be whole numbers; they are set by torchrun") from None


class AgreedError(InputError):
    """An error that every process raises."""


class ProcessLostError(InputError):
    """Another process has ended or does not answer."""


def is_told_by_another(error: BaseException, world: World) -> bool:
    """Whether this process can be silent about the error.

    Before the processes are joined all have the same command line, and so the same error. A lost process may be the
    first, so that the second speaks too.
    """
    if world.is_first:
        return False
    if not _are_joined() or isinstance(error, AgreedError):
        return True
    return isinstance(error, ProcessLostError) and world.rank > 1


def _are_joined() -> bool:
    if "torch" not in sys.modules:
        return False
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()
