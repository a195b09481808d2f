"""Telling a watcher how far a training is, now and then."""

import math
from dataclasses import dataclass, field

from counterpoint.config import Experiment
from counterpoint.training.step import TrainState
from counterpoint.watching import SILENT, TrainingProgress, ValidationFigures, Watcher

_SECONDS = 1.0  # the least between two reports: reading the loss empties the GPU's queue


@dataclass
class Throttled:
    """To be called before the first step, after each step, and when an epoch has been validated.

    It tells the watcher how far training is: at each epoch's end, and otherwise no more often than once a second.
    """

    watcher: Watcher
    experiment: Experiment
    state: TrainState
    total: int
    per_epoch: int
    validated: ValidationFigures | None
    """After the last epoch."""
    _first_step: int = field(init=False)
    _last: float = -math.inf

    def __post_init__(self) -> None:
        self._first_step = self.state.step

    def __call__(self, seconds: float) -> None:
        """`seconds` have been spent in this process."""
        step = self.state.step
        in_epoch = step % self.per_epoch and step < self.total
        if self.watcher is SILENT or (in_epoch and seconds - self._last < _SECONDS):
            return
        self._last = seconds
        loss, error = self.state.means()
        self.watcher.trained(
            TrainingProgress(
                experiment=self.experiment.name,
                step=step,
                total_steps=self.total,
                epoch=max(1, math.ceil(step / self.per_epoch)),
                epochs=math.ceil(self.total / self.per_epoch),
                loss=loss,
                error=error,
                images_per_second=(step - self._first_step) * self.experiment.batch_size / max(seconds, 1e-9),
                validated=self.validated,
            )
        )
