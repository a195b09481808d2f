"""Which process reports an error that several processes have."""

import sys

from counterpoint.errors import InputError
from counterpoint.parallel.world import World

LET_THE_FIRST_SPEAK = 10.0
"""Seconds that a silent process waits before it ends: torchrun ends all others as soon as one has failed."""


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
