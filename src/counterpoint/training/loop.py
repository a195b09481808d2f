"""Train an experiment into a run folder, from the start or from its last checkpoint."""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet
from counterpoint.data.split import Part, split_training_images
from counterpoint.devices import choose_device, training_arithmetic
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, measure_health
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint, sweep_checkpoints
from counterpoint.runs.folder import Description, Run, check_folder, find_run, keep_description, open_run
from counterpoint.storage.locks import locked
from counterpoint.storage.provenance import describe_environment, now
from counterpoint.training.description import build_described, describe, describe_run, fitting_weights
from counterpoint.training.engines import Engine, EngineName, choose_engine, make_engine
from counterpoint.training.health import health_warnings, logged_health
from counterpoint.training.layers_of_others import draws_put_back, introduce, seed_layers
from counterpoint.training.optimizer import learning_rate, set_learning_rate
from counterpoint.training.step import Batch, TrainState, epoch_batches, steps_per_epoch, total_steps
from counterpoint.training.tensorboard import open_tensorboard
from counterpoint.watching import SILENT, TrainingProgress, Watcher

_WATCH_SECONDS = 1.0  # the least between two reports to a watcher: reading the loss empties the GPU's queue
STEPS_AT_ONCE = {"cuda": 64, "cpu": 4}  # the views of so many steps are made together
CHECKPOINT_SECONDS = 60.0  # between checkpoints: the network and its momentum are 53 MiB for ResNeXt-29
_STOP_MARGIN_SECONDS = 5.0  # for the checkpoint, before max_minutes are over


@dataclass(frozen=True)
class Options:
    """How to run an experiment. Nothing here changes the distribution of its result."""

    device: str = "auto"
    engine: EngineName = "auto"
    """What computes a step (see `engines`)."""
    deterministic: bool = False
    """The same bits every time on a GPU too, also after a resume, at some cost in speed. A CPU always gives them."""
    max_minutes: float | None = None
    tensorboard: bool = False


@dataclass
class _Clock:
    """Seconds spent in this process (`here`), and on the run in all its processes (`whole`)."""

    before: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def here(self) -> float:
        return time.monotonic() - self.started

    @property
    def whole(self) -> float:
        return self.before + self.here


def train(
    experiment: Experiment,
    folder: Path,
    data: DataSet,
    *,
    seed: int = 0,
    options: Options | None = None,
    watcher: Watcher = SILENT,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train in `folder`, or go on with the unfinished run there. True when the run is finished.

    False when `max_minutes` or `should_stop` ended it early. It then has a checkpoint to go on from.
    """
    options, clock = options or Options(), _Clock()
    device = choose_device(options.device)
    name = choose_engine(options.engine, experiment, device)
    check_folder(folder)  # before the lock, which puts a file into the folder
    busy = f"another process is training in {folder}; wait for it, or choose another --out"
    with locked(folder, busy), training_arithmetic(device, options.deterministic), draws_put_back(device, experiment):
        model, description, checkpoint = _prepare(experiment, folder, data, seed)
        environment = describe_environment(device)
        run = open_run(folder, experiment, seed=seed, options=dataclasses.asdict(options), environment=environment)
        run = keep_description(run, description)
        sweep_checkpoints(folder)
        part = split_training_images(data, experiment)[0].to(device)
        state = _start(run, model, checkpoint, device, clock)
        if not state.step:
            introduce(model, experiment, watcher)
        run.append_log(event="started", step=state.step, engine=name, environment=environment)
        limit = math.inf if options.max_minutes is None else 60 * options.max_minutes - _STOP_MARGIN_SECONDS
        engine = make_engine(state, experiment, name)
        return _train_epochs(run, part, engine, options, clock, watcher, lambda: should_stop() or clock.here > limit)


def _prepare(
    experiment: Experiment, folder: Path, data: DataSet, seed: int
) -> tuple[Ensemble, Description, Checkpoint | None]:
    """The model, what the run has to keep, and the checkpoint to go on from.

    It comes before the run is begun, so that a model that cannot be made leaves no run behind.
    """
    run = find_run(folder, experiment, seed=seed)
    is_described = run is not None and "description" in run.record
    description = describe_run(run, data).description if run and is_described else describe(experiment, data)
    checkpoint = latest_checkpoint(folder)
    model = build_described(experiment, description, seed, restored=checkpoint is not None, said=experiment.model)
    return model, description, checkpoint


def _start(run: Run, model: Ensemble, checkpoint: Checkpoint | None, device: torch.device, clock: _Clock) -> TrainState:
    """The state after the run's last checkpoint, or before its first step."""
    # Channels-last on a GPU only: on a CPU torch 2.13 corrupts memory in the backward pass of a one-channel convolution
    # (docs/log.md).
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    model = model.to(device, memory_format=layout).train()  # type: ignore[call-overload]
    state = TrainState.before_first_step(model, run.experiment)
    if checkpoint:
        with fitting_weights(run):
            state.restore(checkpoint.tensors, checkpoint.step)
        clock.before = checkpoint.seconds
    run.trim_log(state.step)
    return state


def _train_epochs(
    run: Run,
    part: Part,
    engine: Engine,
    options: Options,
    clock: _Clock,
    watcher: Watcher,
    should_stop: Callable[[], bool],
) -> bool:
    experiment, state, device = run.experiment, engine.state, part.numbers_N.device
    per_epoch = steps_per_epoch(experiment, len(part))
    total = total_steps(experiment, len(part))
    board = open_tensorboard(run.folder, state.step, options.tensorboard)
    watch = _throttled(watcher, state, total, per_epoch, experiment, clock)
    saved = clock.here
    healths = logged_health(run.read_log())
    if state.step < total:
        watch()
    while state.step < total:
        epoch, first = divmod(state.step, per_epoch)
        if first == 0:
            state.sums.zero_()
        batches = epoch_batches(
            part,
            experiment,
            seed=run.seed,
            epoch=epoch,
            first=first,
            at_once=STEPS_AT_ONCE[device.type],
            num_blocks=state.model.num_blocks,
            normalisation=run.description.normalisation,
        )
        for batch in itertools.islice(batches, total - state.step):
            seed_layers(experiment, run.seed, state.step)
            update(engine, batch, total)
            watch()
            if state.step % per_epoch and state.step < total and should_stop():
                _require_finite(run, state, epoch)
                _save(run, state, clock)
                return False
        record = _epoch_record(run, state, epoch, total, clock)
        health = measure_health(state.model)
        warnings = health_warnings(health, experiment, per_epoch, healths)
        healths.append(health)
        record |= {"health": dataclasses.asdict(health)} | ({"warnings": warnings} if warnings else {})
        run.append_log(**record)
        board(record)
        for warning in warnings:
            watcher.warned(f"{experiment.name}, epoch {epoch + 1}: {warning}")
        stopping = state.step < total and should_stop()
        if stopping or state.step == total or clock.here - saved >= CHECKPOINT_SECONDS:
            _save(run, state, clock)
            saved = clock.here
        if stopping:
            return False
    return True


def update(engine: Engine, batch: Batch, total: int) -> None:
    """Take one step of `total`: set the schedule's learning rate, then let the engine step."""
    state = engine.state
    set_learning_rate(state.optimiser, learning_rate(engine.experiment, state.step, total))
    engine.step(batch)
    state.step += 1


def _save(run: Run, state: TrainState, clock: _Clock) -> None:
    save_checkpoint(run.folder, Checkpoint(state.tensors(), state.step, clock.whole))


def _epoch_record(run: Run, state: TrainState, epoch: int, total: int, clock: _Clock) -> dict[str, object]:
    _require_finite(run, state, epoch)
    loss, error = _means(state)
    rate = learning_rate(run.experiment, state.step - 1, total)
    values = {"loss": loss, "error": error, "learning_rate": rate, "seconds": round(clock.whole, 3), "time": now()}
    return {"event": "epoch", "epoch": epoch + 1, "step": state.step, **values}


def _require_finite(run: Run, state: TrainState, epoch: int) -> None:
    """Raise if training has diverged, so that no checkpoint of such a network is saved."""
    loss, _ = _means(state)
    if not math.isfinite(loss):
        before = latest_checkpoint(run.folder)
        kept = f"The checkpoint of step {before.step} is kept" if before else "There is no checkpoint from before"
        raise InputError(
            f"training diverged: the loss of epoch {epoch + 1} is {loss}. {kept}; "
            f"lower learning_rate (now {run.experiment.learning_rate}) in a new run, with another --out"
        )


def _means(state: TrainState) -> tuple[float, float]:
    """The mean loss and error of this epoch so far; NaN before its first step."""
    loss, wrong, rows = state.sums.tolist()
    return (loss / rows, wrong / rows) if rows else (math.nan, math.nan)


def _throttled(
    watcher: Watcher, state: TrainState, total: int, per_epoch: int, experiment: Experiment, clock: _Clock
) -> Callable[[], None]:
    """A function to call before the first step and after each step.

    It tells the watcher how far training is: at each epoch's end, and otherwise no more often than once a second.
    """
    first_step, last_time, epochs = state.step, -math.inf, math.ceil(total / per_epoch)

    def watch() -> None:
        nonlocal last_time
        in_epoch = state.step % per_epoch and state.step < total
        if watcher is SILENT or (in_epoch and clock.here - last_time < _WATCH_SECONDS):
            return
        last_time = clock.here
        speed = (state.step - first_step) * experiment.batch_size / max(clock.here, 1e-9)
        epoch = max(1, math.ceil(state.step / per_epoch))
        name = experiment.name
        watcher.trained(TrainingProgress(name, state.step, total, epoch, epochs, *_means(state), speed))

    return watch
