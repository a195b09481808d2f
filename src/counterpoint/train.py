"""Train an experiment into a run folder, from the start or from its last checkpoint."""

import dataclasses
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet
from counterpoint.environment import describe_environment, now
from counterpoint.errors import InputError
from counterpoint.health import health_warnings, logged_health
from counterpoint.models import build_model
from counterpoint.nn import measure_health
from counterpoint.optim import learning_rate, make_optimiser
from counterpoint.paths import Learner, PathName, choose_path, make_learner
from counterpoint.runs import Checkpoint, Run, check_folder, locked, open_run
from counterpoint.steps import (
    Part,
    TrainState,
    epoch_steps,
    split_training_images,
    steps_an_epoch,
    total_steps,
    update,
)
from counterpoint.tensorboard import open_tensorboard

_WATCH_SECONDS = 1.0  # reading the loss empties the GPU's queue, so a watcher is told no more often than this
STEPS_AT_ONCE = {"cuda": 64, "cpu": 4}  # whose views are made together
CHECKPOINT_SECONDS = 60.0  # between checkpoints: the network and its momentum are 53 MiB for ResNeXt-29
_STOP_MARGIN_SECONDS = 5.0  # for the checkpoint, before max_minutes are over


@dataclass(frozen=True)
class Progress:
    """How far a training is; loss and error are this epoch's means over views.

    The first one, with a speed of 0, comes when nothing more can be refused and the first step begins. One with
    warnings comes at an epoch's end, when many channels of the network are lost.
    """

    step: int
    total_steps: int
    epoch: int
    epochs: int
    loss: float
    error: float
    images_a_second: float
    warnings: tuple[str, ...] = ()


Watcher = Callable[[Progress], None]


@dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: nothing here changes the distribution of the result."""

    device: str = "auto"
    path: PathName = "auto"
    """How a step is computed (see `paths`)."""
    deterministic: bool = False
    """Bit-identical results on a GPU too, also after a resume, for some speed. A CPU always gives them."""
    max_minutes: float | None = None
    tensorboard: bool = False


@dataclass
class _Clock:
    """Time of this process, and of the run over all its processes."""

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
    watcher: Watcher | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train in `folder`, or go on with the unfinished run there. True when the run is finished; False when
    `max_minutes` or `should_stop` ended it early, with a checkpoint."""
    options, clock = options or Options(), _Clock()
    device = choose_device(options.device)
    path = choose_path(options.path, experiment, device)
    _set_up_backends(device, options.deterministic)
    check_folder(folder)  # before it is locked, which leaves a file in it
    with locked(folder):
        environment = describe_environment(device)
        run = open_run(folder, experiment, seed=seed, options=dataclasses.asdict(options), environment=environment)
        part = split_training_images(data, experiment)[0].to(device)
        state = _start(run, part, device, clock)
        run.append_log(event="started", step=state.step, path=path, environment=environment)
        limit = math.inf if options.max_minutes is None else 60 * options.max_minutes - _STOP_MARGIN_SECONDS
        learn = make_learner(state, experiment, path)
        return _train_epochs(
            run, state, part, learn, options, clock, watcher, lambda: should_stop() or clock.here > limit
        )


def choose_device(name: str) -> torch.device:
    """The device called `name`; "auto" is the GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is not known; use auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r} is not supported; use auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device {name!r} is not there: torch sees {torch.cuda.device_count()} GPUs")
    return device


def _set_up_backends(device: torch.device, deterministic: bool) -> None:
    if device.type == "cuda":
        if device.index is not None:
            torch.cuda.set_device(device)  # whose streams and kernels are meant where nobody says so
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when deterministic
        torch.use_deterministic_algorithms(deterministic)
        torch.backends.cudnn.benchmark = not deterministic


def _start(run: Run, part: Part, device: torch.device, clock: _Clock) -> TrainState:
    """The state after the run's last checkpoint, or before its first step."""
    model = build_model(run.experiment, len(part.images.classes), part.images.images_NCHW.shape[1], run.seed)
    # Not on a CPU: there torch 2.13 corrupts memory in the backward pass of a one-channel convolution (docs/log.md).
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    model = model.to(device, memory_format=layout).train()  # type: ignore[call-overload]
    sums = torch.zeros(3, dtype=torch.float64, device=device)
    state = TrainState(model, make_optimiser(model, run.experiment), sums)
    if checkpoint := run.latest():
        state.restore(checkpoint.tensors, checkpoint.step)
        clock.before = checkpoint.seconds
    run.trim_log(state.step)
    return state


def _train_epochs(
    run: Run,
    state: TrainState,
    part: Part,
    learn: Learner,
    options: Options,
    clock: _Clock,
    watcher: Watcher | None,
    should_stop: Callable[[], bool],
) -> bool:
    experiment, device = run.experiment, part.numbers_N.device
    an_epoch = steps_an_epoch(experiment, len(part))
    total = total_steps(experiment, len(part))
    board = open_tensorboard(run.folder, state.step, options.tensorboard)
    watch = _throttled(watcher, state, total, an_epoch, experiment, clock)
    saved = clock.here
    healths = logged_health(run.read_log())
    if state.step < total:
        watch()
    while state.step < total:
        epoch, first = divmod(state.step, an_epoch)
        if first == 0:
            state.sums.zero_()
        steps = epoch_steps(
            part,
            experiment,
            seed=run.seed,
            epoch=epoch,
            first=first,
            at_once=STEPS_AT_ONCE[device.type],
            num_blocks=state.model.num_blocks,
        )
        for step in itertools.islice(steps, total - state.step):
            update(state, step, experiment, total, learn)
            watch()
            if state.step % an_epoch and state.step < total and should_stop():
                _require_finite(run, state, epoch)
                _save(run, state, clock)
                return False
        record = _epoch_record(run, state, epoch, total, clock)
        health = measure_health(state.model)
        warnings = health_warnings(health, experiment, an_epoch, healths)
        healths.append(health)
        record |= {"health": dataclasses.asdict(health)} | ({"warnings": warnings} if warnings else {})
        run.append_log(**record)
        board(record)
        if warnings:
            watch(warnings)
        stopping = state.step < total and should_stop()
        if stopping or state.step == total or clock.here - saved >= CHECKPOINT_SECONDS:
            _save(run, state, clock)
            saved = clock.here
        if stopping:
            return False
    return True


def _save(run: Run, state: TrainState, clock: _Clock) -> None:
    run.save(Checkpoint(state.tensors(), state.step, clock.whole))


def _epoch_record(run: Run, state: TrainState, epoch: int, total: int, clock: _Clock) -> dict[str, object]:
    _require_finite(run, state, epoch)
    loss, error = _means(state)
    rate = learning_rate(run.experiment, state.step - 1, total)
    values = {"loss": loss, "error": error, "learning_rate": rate, "seconds": round(clock.whole, 3), "time": now()}
    return {"event": "epoch", "epoch": epoch + 1, "step": state.step, **values}


def _require_finite(run: Run, state: TrainState, epoch: int) -> None:
    """Keep a network that has diverged out of the checkpoints."""
    loss, _ = _means(state)
    if not math.isfinite(loss):
        before = run.latest()
        kept = f"The checkpoint of step {before.step} is kept" if before else "There is no checkpoint from before"
        raise InputError(
            f"training diverged: the loss of epoch {epoch + 1} is {loss}. {kept}; "
            f"lower learning_rate (now {run.experiment.learning_rate}) in a new run, with another --out"
        )


def _means(state: TrainState) -> tuple[float, float]:
    """This epoch's loss and error so far; NaN before its first step."""
    loss, wrong, rows = state.sums.tolist()
    return (loss / rows, wrong / rows) if rows else (math.nan, math.nan)


def _throttled(
    watcher: Watcher | None, state: TrainState, total: int, an_epoch: int, experiment: Experiment, clock: _Clock
) -> Callable[..., None]:
    """A function to call before the first step and after each, which tells the watcher from time to time and at each
    epoch's end; and to call with warnings when there are any."""
    first_step, last_time, epochs = state.step, -math.inf, math.ceil(total / an_epoch)

    def watch(warnings: Sequence[str] = ()) -> None:
        nonlocal last_time
        within = state.step % an_epoch and state.step < total
        if watcher is None or (within and clock.here - last_time < _WATCH_SECONDS):
            return
        last_time = clock.here
        speed = (state.step - first_step) * experiment.batch_size / max(clock.here, 1e-9)
        epoch = max(1, math.ceil(state.step / an_epoch))
        watcher(Progress(state.step, total, epoch, epochs, *_means(state), speed, tuple(warnings)))

    return watch
