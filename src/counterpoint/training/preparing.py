"""Everything before the first step: what training starts with is made and checked, then the run is begun."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from counterpoint.config import MOST_STEPS, Experiment
from counterpoint.data import DataSet, LabelledImages, Parts, UserImages, parts_of
from counterpoint.devices import moved, training_arithmetic
from counterpoint.errors import InputError
from counterpoint.images.sources import check_not_inside
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble, measure_health
from counterpoint.parallel.group import copy_from_first, from_first
from counterpoint.parallel.world import World
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, sweep_checkpoints
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run, check_folder, find_run, follow_run, keep_description, open_run
from counterpoint.runs.split_file import SPLIT, write_split
from counterpoint.storage.locks import locked
from counterpoint.storage.provenance import describe_environment
from counterpoint.training.batches import steps_per_epoch, total_steps
from counterpoint.training.engines import EngineName
from counterpoint.training.memory import enough_memory
from counterpoint.training.network import build_described, describe, describe_run, fitting_weights
from counterpoint.training.run_images import check_unseen_by
from counterpoint.training.starting_weights import build_from
from counterpoint.training.step import TrainState, draws_put_back, has_draws
from counterpoint.watching import Watcher

_MOST_FOR_ADAMW = 0.01


@dataclass(frozen=True, eq=False)
class Task:
    """A training that was asked for."""

    folder: Path
    experiment: Experiment
    data: DataSet | UserImages
    seed: int
    start: Run | None
    """The run whose weights a new one begins with."""
    root: Path | None
    """The data folder, where the images of that run are read again."""
    options: Mapping[str, Any]
    """Those of `train`, for run.json."""
    device: torch.device
    engine: EngineName
    world: World
    watcher: Watcher


@contextmanager
def hold(task: Task) -> Iterator[None]:
    """Inside, no other process trains in the folder, and torch computes as training needs it."""
    folder, experiment, data, device, world = task.folder, task.experiment, task.data, task.device, task.world
    if world.is_first:  # before the lock, which puts a file into the folder
        check_folder(folder)
        if isinstance(data, UserImages):
            check_not_inside(folder, data.source)
    busy = f"another process is training or evaluating in {folder}; wait for it, or choose another folder (--out)"
    with (
        locked(folder, busy) if world.is_first else nullcontext(),
        training_arithmetic(device, task.options["deterministic"]),
        draws_put_back(device, experiment),
        enough_memory(experiment, device),
    ):
        yield


@dataclass(frozen=True, eq=False)
class Prepared:
    """What training starts with."""

    parts: Parts
    model: Ensemble
    description: Description
    """What the run has to keep."""
    checkpoint: Checkpoint | None
    """What to go on from."""


def prepare(task: Task) -> Prepared:
    """Check and make everything before the run is begun, so that a model that cannot be made leaves no run behind."""
    folder, experiment, seed, start, watcher = task.folder, task.experiment, task.seed, task.start, task.watcher
    parts = parts_of(task.data, experiment)
    check_batches(experiment, len(parts.train), task.world)
    run = find_run(folder, experiment, seed=seed)
    if run and (diverged := run.diverged_after) is not None:
        watcher.warned(
            f"training in {folder} diverged after step {diverged}; with the same settings it is "
            "likely to diverge again; train a new run with a lower learning_rate in another folder (--out)"
        )
    is_described = run is not None and "description" in run.record
    description = describe_run(run, parts).description if run and is_described else describe(experiment, parts)
    checkpoint = latest_checkpoint(folder, watcher.warned)
    if checkpoint is not None:
        model = build_described(experiment, description, seed, restored=True, trusted_model=experiment.model)
        return Prepared(parts, model, description, checkpoint)
    _check_schedule(experiment, description, watcher)
    if start is None:
        model = build_described(experiment, description, seed, restored=False, trusted_model=experiment.model)
    else:
        check_unseen_by(start, experiment, task.data, task.root, watcher)
        model, taken = build_from(experiment, description, seed, start, trusted_model=experiment.model)
        watcher.noted(f"starts from {taken}")
    introduce(model, experiment, watcher)
    return Prepared(parts, model, description, None)


def _check_schedule(experiment: Experiment, description: Description, watcher: Watcher) -> None:
    """Raise or warn where steps and images do not go with the settings."""
    total, images = description.total_steps, description.training_images
    if total > MOST_STEPS:
        raise InputError(
            f"{experiment.epochs:,} epochs are {total:,} steps; at most {MOST_STEPS:,} are possible: set fewer epochs"
        )
    if experiment.warmup_steps >= total:
        watcher.warned(
            f"warmup_steps is {experiment.warmup_steps:,}, and there are {total:,} steps in all: the learning rate "
            f"never reaches {experiment.learning_rate:g}; set fewer warmup_steps, or train longer"
        )
    if experiment.optimiser == "adamw" and experiment.learning_rate > _MOST_FOR_ADAMW:
        watcher.warned(
            f"learning_rate is {experiment.learning_rate:g}, as for SGD; with AdamW networks seldom learn at more than "
            f"{_MOST_FOR_ADAMW}: set a learning_rate such as 0.001"
        )
    if experiment.batch_size > images:
        fewer = 2 ** max(0, (images // 4).bit_length() - 1)
        share = fewer / experiment.batch_size
        rate = experiment.learning_rate * (share if experiment.optimiser == "sgd" else math.sqrt(share))
        watcher.warned(
            f"batch_size is {experiment.batch_size:,}, and there are {images:,} images to train on: every step has all "
            f"of them; for more steps per epoch set batch_size={fewer} and learning_rate={rate:.2g}"
        )


def introduce(model: Ensemble, experiment: Experiment, watcher: Watcher) -> None:
    """Tell what the conversion made of another's network, and warn if little is left of its pretrained weights."""
    if is_own(experiment.model) or experiment.num_members is None:
        return
    if model.conversion is not None:
        watcher.noted(f"{experiment.model}: {model.conversion}")
    if experiment.pretrained and experiment.has_factors and experiment.init_std == Experiment.init_std:
        watcher.warned(
            f"the pretrained weights are multiplied by r and s from N(1, {experiment.init_std}²), and little is left "
            "of them; init_std none keeps the members near them"
        )


def check_batches(experiment: Experiment, images: int, world: World) -> None:
    """Raise if a batch, also the smaller last one of an epoch, has fewer images than there are processes."""
    whole = min(experiment.batch_size, images)
    if whole < world.size:
        raise InputError(
            f"a batch has {whole} images (batch_size {experiment.batch_size}, {images:,} to train on), and each of the "
            f"{world.size} processes needs one; start fewer processes"
        )
    last = images % experiment.batch_size
    is_reached = total_steps(experiment, images) >= steps_per_epoch(experiment, images)
    if is_reached and 0 < last < world.size:
        raise InputError(
            f"the last batch of an epoch has {last} of the {images:,} images (batch_size {experiment.batch_size}), and "
            f"each of the {world.size} processes needs one; start fewer processes, or set another batch_size"
        )


def begin(task: Task, prepared: Prepared) -> tuple[Run, TrainState]:
    """The run in its folder, found or begun, and the state that it goes on from. The log says that it does."""
    world, total = task.world, prepared.description.total_steps
    environment = describe_environment(task.device)
    run = _open(task, prepared.description, environment)
    state = TrainState.before_first_step(moved(prepared.model, task.device).train(), task.experiment)
    if checkpoint := prepared.checkpoint:
        with fitting_weights(run):
            state.restore(checkpoint.tensors, checkpoint.step)
        if state.step < total:
            task.watcher.noted(f"{task.folder} goes on from step {state.step:,} of {total:,}")
    run.trim_log(state.step)
    if world.is_first:
        sweep_checkpoints(task.folder, state.step)
    warn_of_draws(state.model, task.experiment, world, task.watcher)
    if state.step < total:  # a finished run trains no further part
        more: dict[str, Any] = {} if world.is_alone else {"processes": world.size}
        if not state.step:  # some networks start with scales of 0 in their last BatchNorms: those will not be lost
            more["health"] = asdict(measure_health(state.model))
        run.append_log(event="started", step=state.step, engine=task.engine, **more, environment=environment)
    return run, state


def _open(task: Task, description: Description, environment: dict[str, Any]) -> Run:
    """The run in its folder. Of several processes the first writes it."""
    folder, experiment, seed, data = task.folder, task.experiment, task.seed, task.data
    if not task.world.is_first:
        return follow_run(folder, experiment, seed=seed, description=description)
    sources: dict[str, Any] = {}  # where the user's own images are, and the run whose weights are taken
    if isinstance(data, UserImages):
        sources["images"] = {"source": str(data.source), "skip_bad": data.skip_bad}
    if task.start is not None:
        sources["from"] = str(task.start.folder.absolute())
    run = open_run(folder, experiment, seed=seed, options=task.options, environment=environment, sources=sources)
    run = keep_description(run, description)
    if isinstance(data, UserImages) and not (folder / SPLIT).exists():
        write_split(folder, data.split)
    return run


@torch.no_grad()
def start_alike(state: TrainState, world: World) -> None:
    """Let all processes start from the state of the first, which has read the checkpoint that counts."""
    if world.is_alone:
        return
    tensors = state.tensors() if world.is_first else {}
    step, kinds = from_first(world, (state.step, {name: (t.shape, t.dtype) for name, t in tensors.items()}))
    device = state.sums.device
    copies = {
        name: tensors[name].detach().contiguous() if world.is_first else torch.empty(shape, dtype=dtype, device=device)
        for name, (shape, dtype) in kinds.items()
    }
    copy_from_first(world, list(copies.values()))
    if not world.is_first:
        state.restore(copies, step)


def warn_of_draws(model: Ensemble, experiment: Experiment, world: World, watcher: Watcher) -> None:
    """Say so if the number of processes changes the result, because layers such as dropout draw for each of them."""
    if has_draws(model) and not world.is_alone and not is_own(experiment.model):
        watcher.warned(
            f"{experiment.model} has layers that draw random numbers in training (dropout), and each process draws its "
            f"own; another number of processes than {world.size} gives other numbers"
        )


def to_validate_on(parts: Parts, wanted: bool) -> LabelledImages | None:
    """The images to validate on after each epoch, if that is wanted."""
    if wanted and parts.validation is None:
        raise InputError(
            f"there are no images of {parts.name} to validate on, because all are trained on; leave validate "
            "(--validate) out, or train with train_on=split"
        )
    return parts.validation if wanted else None
