"""Progress of long work. The library calls a watcher; only the command line prints."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class ValidationFigures:
    """The averaged prediction's figures on the validation images.

    >>> from counterpoint.watching import ValidationFigures
    >>> ValidationFigures(error=0.1, nll=0.4, ece=0.02).error
    0.1
    """

    error: float
    nll: float
    ece: float


@dataclass(frozen=True)
class TrainingProgress:
    """How far a training is. Loss and error are this epoch's means over views.

    A watcher gets the first one, with a speed of 0, when all inputs are checked and the first step begins.

    >>> from counterpoint.watching import TrainingProgress
    >>> progress = TrainingProgress("mine", 1, total_steps=2, epoch=1, epochs=2, loss=2, error=1, images_per_second=9)
    >>> progress.step / progress.total_steps
    0.5
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
    """Gets the progress of long work. This class ignores it; the command line's class draws progress bars.

    Give an object of a class of your own to a function that takes a `watcher`, with the methods that you want.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load
    >>> from counterpoint.training.loop import Options, train
    >>> from counterpoint.watching import Watcher
    >>> class Printing(Watcher):
    ...     def trained(self, progress):
    ...         print(f"step {progress.step} of {progress.total_steps}")
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> finished = train(experiment, "runs/mine", load("digits"), options=Options(device="cpu"), watcher=Printing())
    step 0 of 2
    step 2 of 2
    """

    def trained(self, progress: TrainingProgress) -> None:
        """A training has come this far."""

    def counted(self, work: str, done: int, total: int) -> None:
        """`done` of the `total` things that `work` goes through are done."""

    def noted(self, text: str) -> None:
        """Something that a person should read."""

    def warned(self, text: str) -> None:
        """Something that a person should act on."""


class _OnlyWarning(Watcher):
    """Makes a Python warning of what a person should act on, and ignores the rest."""

    def warned(self, text: str) -> None:
        warnings.warn(text, stacklevel=2)


SILENT = Watcher()
WARNING = _OnlyWarning()
"""What a training tells where nobody gave it a watcher: a person who trains from Python hears of what is wrong."""


def counting(things: Iterable[Thing], watcher: Watcher, work: str, total: int, done: int = 0) -> Iterator[Thing]:
    """The things, one after another, while the watcher hears how far the work on them is. `done` were done before."""
    for number, thing in enumerate(things, start=done):
        watcher.counted(work, number, total)
        yield thing
    if total:
        watcher.counted(work, total, total)
