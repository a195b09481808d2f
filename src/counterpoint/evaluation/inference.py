"""Run the network of a finished run on groups of images, and keep its members' logits in the run's folder.

A file is either complete or absent, so an interrupted evaluation continues where it stopped. Other weights or another
precision empty the folder. If a group's images changed, only that group is replaced.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from counterpoint.devices import Precision, describe_precision
from counterpoint.errors import InputError, StoppedError
from counterpoint.evaluation.image_groups import ImageGroup
from counterpoint.evaluation.logits import VALIDATION, groups_file, outside_file
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.evaluation.suites import SUITES
from counterpoint.nn import Ensemble
from counterpoint.parallel.group import agreed
from counterpoint.parallel.world import ALONE, World
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array, write_arrays
from counterpoint.storage.files import read_json, write_json
from counterpoint.storage.provenance import command_line
from counterpoint.threads import read_ahead
from counterpoint.watching import SILENT, Watcher, counting

_SPENT, _COMMANDS = "seconds_spent", "commands"


def collect_logits(
    run: Run,
    groups: Sequence[ImageGroup],
    *,
    device: torch.device,
    precision: Precision = "headline",
    trusted_model: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    watcher: Watcher = SILENT,
    world: World = ALONE,
) -> None:
    """Run the network on the groups' images, and save the logits of those that have none yet.

    `trusted_model` is the name of the model, if it is a function of the user's own (see `check_trusted`). Of several
    processes each makes its share of the files. `should_stop` is asked before each file. If it says so, StoppedError is
    raised.
    """
    with agreed(world):
        model, step = load_model(run, device, trusted_model)
        members = fold_members(
            model,
            device,
            precision,
            normalisation=run.description.normalisation,
            most_images=max(group.largest for group in groups),
        )
        made_with = {
            "step": step,
            "weights": fingerprint(model.state_dict()),
            "precision": describe_precision(precision, device),
        }
        folder = run.folder / "logits"
        if world.is_first:
            _begin(folder, made_with, groups, model)
    with agreed(world):  # no process may write before all have seen what is missing
        _check_seen(folder, made_with, world)
        wanted = [(folder / f"{file}.npy", read, group) for group in groups for file, read in group.files.items()]
        missing = [item for item in wanted if not item[0].exists()]
    with agreed(world):
        mine, there = missing[world.rank :: world.size], len(wanted) - len(missing)
        images = read_ahead(lambda item: item[1](), mine)
        counted = counting(images, watcher, f"evaluating {run.experiment.name}", there + len(mine), there)
        for (path, _, group), pixels in counted:
            if should_stop():
                raise StoppedError
            logits_MNK = member_logits(members, pixels)
            _check_finite(logits_MNK, run, path.stem)
            write_array(path, _in_type(logits_MNK, group.dtype))


def _check_finite(logits_MNK: np.ndarray, run: Run, images: str) -> None:
    """Raise if the network itself gives no numbers: no figure can be computed from such logits, today or tomorrow."""
    broken_N = ~np.isfinite(logits_MNK).all(axis=(0, 2))
    if broken_N.any():
        raise InputError(
            f"the network of {run.folder} gives logits that are infinite or no numbers (NaN) for {broken_N.sum():,} of "
            f"{len(broken_N):,} images of {images!r}, first for number {broken_N.argmax():,}; look for what it divides "
            "by or takes the logarithm of, and train it again"
        )


def spent_before(run: Run) -> float:
    """The seconds that earlier calls spent on the evaluation in progress before they were stopped."""
    spent = _read_old(run.folder / "logits" / "about.json").get(_SPENT)
    return float(spent) if isinstance(spent, int | float) and spent > 0 else 0.0


def keep_spent(run: Run, seconds: float | None) -> None:
    """Let the next call know how long the evaluation took so far; None when it is finished."""
    path = run.folder / "logits" / "about.json"
    about = _read_old(path)
    before = about.pop(_SPENT, None)
    if about and (before, seconds) != (None, None):
        write_json(path, about if seconds is None else about | {_SPENT: seconds})


def _in_type(logits_MNK: np.ndarray, dtype: type[np.floating[Any]]) -> np.ndarray:
    """The logits with fewer digits. Where one is too large for float16, all are given less their image's highest.

    That changes no probability: only differences count, and the smallest float16 is far below any that counts.
    """
    most = np.finfo(dtype).max
    if np.abs(logits_MNK).max() > most:
        logits_MNK = np.maximum(logits_MNK - logits_MNK.max(axis=2, keepdims=True), -most)
    return logits_MNK.astype(dtype)


def _begin(folder: Path, made_with: dict[str, Any], groups: Sequence[ImageGroup], model: Ensemble) -> None:
    """The folder with all but the logits."""
    _claim(folder, made_with, groups)
    write_arrays(folder / "factors.npz", _factors(model))
    for group in groups:
        if group.labels is not None:
            file, labels_N = group.labels
            write_array(folder / f"{file}.npy", labels_N.numpy())
            beside = folder / f"{groups_file(file)}.npy"
            if group.together is None:
                beside.unlink(missing_ok=True)
            else:
                write_array(beside, group.together.group_N)


def _check_seen(folder: Path, made_with: Mapping[str, Any], world: World) -> None:
    """Raise if this process sees another folder than the first, on another machine."""
    about = {} if world.is_first else _read_old(folder / "about.json")
    if not world.is_first and any(about.get(key) != value for key, value in made_with.items()):
        raise InputError(
            f"process {world.rank} does not see what process 0 wrote into {folder}; processes on several machines need "
            "a folder that all of them share"
        )


def _claim(folder: Path, made_with: dict[str, Any], groups: Sequence[ImageGroup]) -> None:
    """Remove logits that were made with something else, and let about.json say what is in the folder."""
    path = folder / "about.json"
    about = _read_old(path)
    if any(about.get(key) != value for key, value in made_with.items()):
        shutil.rmtree(folder, ignore_errors=True)
        about = {}
    if VALIDATION not in {group.name for group in groups}:
        about.pop(VALIDATION, None)  # there are no such images any more
    ours = [group for group in groups if group.listed_in is None]
    for group in ours:
        before = about.get(group.name)
        if isinstance(before, dict) and group.name in SUITES:
            before = SUITES[group.name].in_json | before
        if before != group.about:
            for file in group.files:
                (folder / f"{file}.npy").unlink(missing_ok=True)
    own = {key: _claim_own(folder, key, about.get(key), groups) for key in ("suites", "outside")}
    listed = {key: sets for key, sets in own.items() if sets}
    about |= made_with | {group.name: group.about for group in ours} | listed
    earlier = about.get(_COMMANDS)
    others = [one for one in earlier if one != command_line()] if isinstance(earlier, list) else []
    write_json(path, about | {_COMMANDS: [*others, command_line()]})


def _claim_own(folder: Path, listed_in: str, before: Any, groups: Sequence[ImageGroup]) -> dict[str, Any]:
    """What one list in about.json says of the user's own images. Other images replace those of their name, with all
    files.

    Names that differ only in capitals are the same name, because some file systems take them for the same file.
    """
    sets = dict(before) if isinstance(before, dict) else {}
    for group in (group for group in groups if group.listed_in == listed_in):
        if sets.get(group.name) != group.about:
            for name in [name for name in sets if name.casefold() == group.name.casefold()]:
                del sets[name]
                _remove_own(folder, listed_in, name)
            _remove_own(folder, listed_in, group.name)
        sets[group.name] = group.about
    return sets


def _remove_own(folder: Path, listed_in: str, name: str) -> None:
    if listed_in == "suites":
        shutil.rmtree(folder / name, ignore_errors=True)
    else:
        (folder / f"{outside_file(name)}.npy").unlink(missing_ok=True)


def _read_old(path: Path) -> dict[str, Any]:
    """What about.json says; nothing where it is missing or damaged, so that everything is made again."""
    try:
        about = read_json(path)
    except InputError:
        return {}
    return about if isinstance(about, dict) else {}


def _factors(model: Ensemble) -> dict[str, np.ndarray]:
    """Every layer's r and s, by which members can be compared without the network; only a BatchEnsemble has them."""
    named = model.named_parameters()
    return {name: values.detach().cpu().numpy() for name, values in named if name.endswith((".r", ".s"))}
