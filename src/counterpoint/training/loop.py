"""Train an experiment into a run folder, from the start or from its last checkpoint."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.config import Experiment
from counterpoint.data import DataSet, LabelledImages, UserImages
from counterpoint.devices import choose_device
from counterpoint.errors import InputError, check_minutes, one_of, shown
from counterpoint.nn import Health, measure_health
from counterpoint.parallel.group import agreed, any_of
from counterpoint.parallel.world import ALONE, World
from counterpoint.runs.checkpoints import Checkpoint, save_checkpoint
from counterpoint.runs.folder import Run, folder_of, load_run
from counterpoint.storage.provenance import now
from counterpoint.time_limit import TimeLimit
from counterpoint.training.batches import Batch, epoch_batches, place, steps_at_once, steps_per_epoch, total_steps
from counterpoint.training.engines import ENGINES, Engine, EngineName, choose_engine, make_engine
from counterpoint.training.health import health_warnings, logged_health
from counterpoint.training.memory import check_memory
from counterpoint.training.monitoring import (
    Throttled,
    check_finite,
    check_loss,
    logged_validation,
    open_tensorboard,
    validate,
)
from counterpoint.training.optimiser import learning_rate, set_learning_rate
from counterpoint.training.preparing import Task, begin, hold, prepare, start_alike, to_validate_on
from counterpoint.training.run_images import check_images_of
from counterpoint.training.starting_weights import starting_from
from counterpoint.training.step import seed_layers
from counterpoint.watching import SILENT, WARNING, Watcher

CHECKPOINT_SECONDS = 60.0  # between checkpoints: the network and its momentum are 53 MiB for ResNeXt-29
_STOP_MARGIN_SECONDS = 5.0  # for the checkpoint, before max_minutes are over


@dataclass(frozen=True)
class Options:
    """How an experiment is computed: the device, the engine, limits and logs.

    No option changes which results are likely. Some change the last digits, because they compute in another order.

    >>> from counterpoint.training.loop import Options
    >>> Options(device="cpu", max_minutes=30).engine
    'auto'
    """

    device: str = "auto"
    engine: EngineName = "auto"
    """What computes a step (see `engines`)."""
    deterministic: bool = False
    """Whether a GPU gives the same bits every time, also after a resume, at some cost in speed. A CPU always does."""
    max_minutes: float | None = None
    tensorboard: bool = False
    validate: bool = False
    """Whether to validate after each epoch. The figures are only shown; training does not depend on them."""
    less_memory: bool = False
    """Compute each block's activations again in the backward pass instead of keeping them. The result is the same."""
    member_by_member: bool = False
    """Go through the members one after another in each step. This needs batchnorm=per-member if there is BatchNorm."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", str(self.device))  # torch's own devices are taken too, and kept as a text
        one_of("engine", self.engine, ENGINES)
        check_minutes(self.max_minutes)


def train(
    experiment: Experiment,
    folder: Path | str,
    data: DataSet | UserImages,
    *,
    seed: int = 0,
    start: Run | Path | str | None = None,
    root: Path | str | None = None,
    options: Options | None = None,
    watcher: Watcher = WARNING,
    should_stop: Callable[[], bool] = lambda: False,
    world: World = ALONE,
) -> bool:
    """Train an experiment in `folder`, or continue the unfinished run there. Returns True when the run is finished.

    The result is False if `max_minutes` or `should_stop` ended the training early. The run then has a checkpoint to
    continue from. To train in several processes, call this in each of them with its own `world` (docs/parallel.md).
    Only the first process writes files and calls the watcher. Without a `watcher`, what you should act on becomes a
    Python warning, and progress is not shown.

    `start` is a finished run, or its folder, whose weights a new run begins with; `starts_from` then becomes their
    hash. It must not have been trained on images that the new run validates or tests on. To check this, its images are
    read again, with the data folder `root`.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    True
    """
    started, options = time.monotonic(), Options() if options is None else options
    if not isinstance(options, Options):
        raise InputError(f"options are {shown(repr(options))}; they must be a value such as Options(device='cpu')")
    folder, root = folder_of(folder), Path(root) if root else None
    watcher = watcher if world.is_first else SILENT
    with ExitStack() as held:
        with agreed(world):  # before the run is begun, so that what is refused leaves no run behind
            check_images_of(experiment, data)
            source = None if start is None else load_run(start)
            experiment = starting_from(source, experiment)
            device = choose_device(options.device, world)
            saves = options.less_memory or options.member_by_member
            engine = choose_engine(options.engine, experiment, device, world, less_memory=saves)
            asked = dataclasses.asdict(options)
            task = Task(folder, experiment, data, seed, source, root, asked, device, engine, world, watcher)
            held.enter_context(hold(task))
            prepared = prepare(task)
            images, validation = prepared.parts.train, to_validate_on(prepared.parts, options.validate)
            less_memory = check_memory(
                prepared.model,
                experiment,
                images.image_shape,
                len(images),
                device=device,
                engine=engine,
                less_memory=options.less_memory,
                member_by_member=options.member_by_member,
                world=world,
                watcher=watcher,
            )
        less_memory = any_of(world, less_memory)  # a block is computed again in every process or in none
        with agreed(world):
            run, state = begin(task, prepared)
            training = _Training(
                run,
                place(images, device),
                place(validation, device) if validation is not None and world.is_first else None,
                make_engine(
                    state,
                    experiment,
                    engine,
                    world,
                    less_memory=less_memory,
                    member_by_member=options.member_by_member,
                ),
                watcher,
                open_tensorboard(folder, state.step, options.tensorboard and world.is_first),
                started,
                seconds_before=0.0 if prepared.checkpoint is None else prepared.checkpoint.seconds,
            )
        del prepared  # it holds the checkpoint's tensors, which the state has now
        start_alike(state, world)
        limit = TimeLimit(options.max_minutes, started, _STOP_MARGIN_SECONDS)
        limit.is_near()  # the first step begins
        return _train_epochs(training, lambda: any_of(world, should_stop() or limit.is_near()))


@dataclass(frozen=True, eq=False)
class _Training:
    """What a training needs from its first step to its last."""

    run: Run
    images: LabelledImages
    validation: LabelledImages | None
    engine: Engine
    watcher: Watcher
    board: Callable[[Mapping[str, Any]], None]
    started: float
    """By the monotonic clock, in this process."""
    seconds_before: float
    """What earlier processes spent on the run."""

    @property
    def seconds_here(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds(self) -> float:
        return self.seconds_before + self.seconds_here

    @property
    def per_epoch(self) -> int:
        return steps_per_epoch(self.run.experiment, len(self.images))

    @property
    def total(self) -> int:
        return total_steps(self.run.experiment, len(self.images))

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """The batches of an epoch from its step `first` on; the last epoch may be cut short."""
        state, experiment, device = self.engine.state, self.run.experiment, self.engine.state.sums.device
        batches = epoch_batches(
            self.images,
            experiment,
            device=device,
            seed=self.run.seed,
            epoch=epoch,
            first=first,
            at_once=steps_at_once(experiment, self.images.image_shape, device),
            num_blocks=state.model.num_blocks,
            normalisation=self.run.description.normalisation,
            world=self.engine.world,
        )
        return itertools.islice(batches, self.total - state.step)


def _train_epochs(training: _Training, should_stop: Callable[[], bool]) -> bool:
    """Go on to the last step, epoch by epoch. False if a stop was asked for; there is a checkpoint then."""
    run, state, world = training.run, training.engine.state, training.engine.world
    total, per_epoch, images = training.total, training.per_epoch, len(training.images)
    log = run.read_log()
    healths, validated = logged_health(log), logged_validation(log)
    report = Throttled(training.watcher, run.experiment, state, total, per_epoch, images, validated)
    saved = training.seconds_here
    if state.step < total:
        report(saved)
    while state.step < total:
        epoch = state.step // per_epoch
        stopping = _take_steps(training, epoch, report, should_stop)
        with agreed(world):
            check_finite(run, state)
            if not stopping:
                _log_epoch(training, epoch, healths, report)
        stopping = stopping or (state.step < total and should_stop())
        with agreed(world):
            if stopping or state.step == total or training.seconds_here - saved >= CHECKPOINT_SECONDS:
                _save(training)
                saved = training.seconds_here
        if stopping:
            return False
    return True


def _take_steps(training: _Training, epoch: int, report: Throttled, should_stop: Callable[[], bool]) -> bool:
    """Take the steps of the epoch that are left. True if a stop was asked for before its end."""
    run, state = training.run, training.engine.state
    first = state.step % training.per_epoch
    if first == 0:
        state.sums.zero_()
    for batch in training.batches(epoch, first):
        seed_layers(run.experiment, run.seed, state.step, training.engine.world.rank)
        update(training.engine, batch, training.total)
        check_loss(run, state)
        report(training.seconds_here)
        if state.step % training.per_epoch and state.step < training.total and should_stop():
            return True
    return False


def update(engine: Engine, batch: Batch, total: int) -> None:
    """Take one step of `total`: set the schedule's learning rate, then let the engine step."""
    state = engine.state
    set_learning_rate(state.optimiser, learning_rate(engine.experiment, state.step, total))
    engine.step(batch)
    state.step += 1


def _log_epoch(training: _Training, epoch: int, healths: list[Health], report: Throttled) -> None:
    """Log how the epoch ended, and validate first if that is wanted. The network's health is added to `healths`."""
    run, state = training.run, training.engine.state
    loss, error = state.means()
    record: dict[str, Any] = {"event": "epoch", "epoch": epoch + 1, "step": state.step, "loss": loss, "error": error}
    if training.validation is not None:
        normalisation = run.description.normalisation
        report.validated = validate(state.model, training.validation, normalisation, state.sums.device)
        record["validation"] = dataclasses.asdict(report.validated)
    record["learning_rate"] = learning_rate(run.experiment, state.step - 1, training.total)
    record |= {"seconds": round(training.seconds, 3), "time": now()}
    health = measure_health(state.model)
    record["health"] = dataclasses.asdict(health)
    if warnings := health_warnings(health, run.experiment, training.per_epoch, healths):
        record["warnings"] = warnings
    healths.append(health)
    for warning in warnings:
        training.watcher.warned(f"{run.experiment.name}, epoch {epoch + 1}: {warning}")
    run.append_log(**record)
    training.board(record)
    if training.validation is not None:
        report(training.seconds_here)


def _save(training: _Training) -> None:
    state = training.engine.state
    if training.engine.world.is_first:
        save_checkpoint(training.run.folder, Checkpoint(state.tensors(), state.step, training.seconds))
