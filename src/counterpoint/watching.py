"""Progress of long work. The library calls a watcher; only the command line prints."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ValidationFigures:
    """The averaged prediction's figures on the validation images."""

    error: float
    nll: float
    ece: float


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is. Loss and error are this epoch's means over views.

    A watcher gets the first one, with a speed of 0, when all inputs are checked and the first step begins.
    """

    experiment: str
    step: int
    total_steps: int
    epoch: int
    epochs: int
    loss: float
    error: float
    images_per_second: float
    validated: ValidationFigures | None = None  # after the last epoch; None where training does not validate


class Watcher:
    """Gets the progress of long work. This class ignores it; the command line's class draws progress bars."""

    def trained(self, progress: TrainingProgress) -> None:
        """A training has come this far."""

    def counted(self, work: str, done: int, total: int) -> None:
        """`done` of the `total` things that `work` goes through are done."""

    def noted(self, text: str) -> None:
        """Something that a person should read."""

    def warned(self, text: str) -> None:
        """Something that a person should act on."""


SILENT = Watcher()
