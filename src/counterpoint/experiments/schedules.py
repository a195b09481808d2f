"""How long to train a row: as the paper did, for a fifth of it, or just long enough to see that it runs.

A schedule is part of a result's name. Only results at `paper` can be compared with the paper's figures. Networks that
are trained briefly are not yet over-confident, so shorter schedules say nothing about calibration on clean images.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from counterpoint.config import Experiment
from counterpoint.errors import one_of

SMOKE_STEPS, SMOKE_IMAGES = 64, 200


@dataclass(frozen=True)
class Schedule:
    """How a row is shortened.

    `images` is how many images of the clean set and of each cell are evaluated (None: all). `eager` trains by the eager
    engine, which needs no compiling.
    """

    name: str
    about: str
    shorten: Callable[[Experiment], Experiment]
    images: int | None = None
    eager: bool = False


def _as_it_is(experiment: Experiment) -> Experiment:
    return experiment


def _a_fifth(experiment: Experiment) -> Experiment:
    return replace(experiment, epochs=max(1, experiment.epochs // 5))


def _some_steps(experiment: Experiment) -> Experiment:
    return replace(experiment, epochs=1, steps=SMOKE_STEPS, warmup_steps=0)  # a row's warm-up is longer


SCHEDULES = {
    s.name: s
    for s in (
        Schedule("paper", "the paper's epochs", _as_it_is),
        Schedule("short", "a fifth of the paper's epochs", _a_fifth),
        Schedule(
            "smoke",
            f"{SMOKE_STEPS} steps, evaluated on {SMOKE_IMAGES} images",
            _some_steps,
            images=SMOKE_IMAGES,
            eager=True,
        ),
    )
}


def find_schedule(name: str) -> Schedule:
    """The schedule called `name`."""
    return SCHEDULES[one_of("schedule", name, SCHEDULES)]
