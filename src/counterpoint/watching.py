"""What long work tells of itself while it runs. Only the command line prints; the library tells a watcher."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is; loss and error are this epoch's means over views.

    The first one, with a speed of 0, comes when nothing more can be refused and the first step begins.
    """

    experiment: str
    step: int
    total_steps: int
    epoch: int
    epochs: int
    loss: float
    error: float
    images_per_second: float


class Watcher:
    """Told of work that takes a while. This one says nothing; the command line's draws bars."""

    def trained(self, progress: TrainingProgress) -> None:
        """A training has come this far."""

    def counted(self, work: str, done: int, total: int) -> None:
        """So many of the things that `work` goes through are done."""

    def noted(self, text: str) -> None:
        """Something that a person should read."""

    def warned(self, text: str) -> None:
        """Something that a person should act on."""


SILENT = Watcher()
