"""The members' logits of a finished run, kept in its folder. Every metric can be computed from them again.

logits/about.json says what they were made with: the weights, the precision, and for each group of images what it is. A
file is either complete or absent, so an interrupted evaluation continues where it stopped. Other weights or another
precision empty the folder. If a group's images changed, only that group is replaced.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from counterpoint.data.reading import read_ahead
from counterpoint.devices import Precision, describe_precision
from counterpoint.errors import InputError, shown
from counterpoint.evaluation.image_groups import VALIDATION, ImageGroup, cell_file, labels_file
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.evaluation.suites import CORRUPTED, SUITES
from counterpoint.nn import Ensemble
from counterpoint.parallel.group import agreed
from counterpoint.parallel.world import ALONE, World
from counterpoint.records.codec import FieldError, decode
from counterpoint.records.results import Images, MadeFrom, Shift
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run
from counterpoint.runs.imported import AnyRun
from counterpoint.storage.arrays import read_array, read_arrays, read_shape, write_array, write_arrays
from counterpoint.storage.files import read_json, write_json
from counterpoint.watching import SILENT, Watcher

_FILE_NAME = re.compile(r"\w[^/\\\x00]*")


@dataclass(frozen=True)
class LogitsAbout:
    """What the logits in a folder were made with, the suites that are complete, and how much others lack."""

    weights: str | None
    """A hash; None for given predictions."""
    given: str | None
    """For given predictions: their hash."""
    precision: str
    clean: Images
    validation: Images | None
    """The validation images, where the clean ones are test images; None where there are none."""
    suites: Mapping[str, Shift]
    missing_files: Mapping[str, int]

    @property
    def made_from(self) -> MadeFrom:
        corrupted = self.suites.get(CORRUPTED.name)
        return MadeFrom(self.weights, self.precision, self.clean, corrupted, self.validation, self.given)

    @property
    def held_out(self) -> Images | None:
        """The images that temperatures and thresholds may be chosen on, clean or not."""
        return self.clean if self.clean.part == "validation" else self.validation


@dataclass(frozen=True, kw_only=True)
class MadeWith:
    """What about.json says of all logits, and of the clean ones."""

    weights: str | None = None
    given: str | None = None
    precision: str
    clean: Images
    validation: Images | None = None
    suites: Mapping[str, Shift] | None = None
    """Of given predictions, and a user's own shifts, by name. A suite of ours stands beside the others under its name.
    """

    def problem(self) -> str:
        if self.weights is None and self.given is None:
            return "weights is missing"
        # The names become those of files. A stranger's must not lead outside the folder.
        named = [(name, *shift.corruptions) for name, shift in (self.suites or {}).items()]
        foreign = next((name for name in chain.from_iterable(named) if not _FILE_NAME.fullmatch(name)), None)
        return "" if foreign is None else f"suites has {shown(foreign)!r}, which cannot be part of a file's name"


def collect_logits(
    run: Run,
    groups: Sequence[ImageGroup],
    *,
    device: torch.device,
    precision: Precision = "headline",
    said: str | None = None,
    watcher: Watcher = SILENT,
    world: World = ALONE,
) -> None:
    """Run the network on the groups' images, and save the logits of those that have none yet.

    `said` is the model's name as the user typed it, which a function of the user's own needs. Each of several processes
    makes its share of the files.
    """
    with agreed(world):
        model, step = load_model(run, device, said)
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
        work = f"evaluating {run.experiment.name}"
        images = read_ahead(lambda item: item[1](), mine)
        for done, ((path, _, group), pixels) in enumerate(images, start=there):
            watcher.counted(work, done, there + len(mine))
            write_array(path, _in_type(member_logits(members, pixels), group.dtype))
        watcher.counted(work, there + len(mine), there + len(mine))


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


def _check_seen(folder: Path, made_with: Mapping[str, Any], world: World) -> None:
    """Raise if this process sees another folder than the first, on another machine."""
    about = {} if world.is_first else _read_old(folder / "about.json")
    if not world.is_first and any(about.get(key) != value for key, value in made_with.items()):
        raise InputError(
            f"process {world.rank} does not see what process 0 wrote into {folder}; processes on several machines need "
            "a folder that all of them share"
        )


def read_about(run: AnyRun) -> LogitsAbout:
    """What the logits were made with."""
    path = run.folder / "logits" / "about.json"
    if not path.exists():
        raise InputError(f"{run.folder} holds no logits; run `{run.evaluate_command}` without --recompute")
    about = read_json(path)
    try:
        made_with = decode(MadeWith, about)
        # Logits of earlier versions are of the paper's suite, and do not name its cells.
        ours = {name: decode(Shift, _of_suite(name) | about[name]) for name in SUITES if name in about}
    except (FieldError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); remove {path.parent}, and evaluate the run again") from None
    suites = ours | {name: shift for name, shift in (made_with.suites or {}).items() if _is_kept(run, name, shift)}
    missing = {name: len(_missing_files(run, name, shift)) for name, shift in suites.items()}
    return LogitsAbout(
        made_with.weights,
        made_with.given,
        made_with.precision,
        made_with.clean,
        made_with.validation if has_logits(run, VALIDATION) else None,
        {name: shift for name, shift in suites.items() if not missing[name]},
        {name: count for name, count in missing.items() if count},
    )


def _is_kept(run: AnyRun, name: str, shift: Shift) -> bool:
    """A user's own shift whose folder was removed is not wanted any more."""
    return shift.source.kind != "own" or (run.folder / "logits" / name).is_dir()


def _missing_files(run: AnyRun, suite: str, shift: Shift) -> list[str]:
    """The files of a suite that are not there."""
    cells = [cell_file(suite, name, severity) for name in shift.corruptions for severity in shift.severities]
    return [file for file in (labels_file(suite), *cells) if not has_logits(run, file)]


def read_logits(run: AnyRun, name: str) -> np.ndarray:
    """Saved logits (M, N, K), all finite: "clean", "ood", or a cell's file. M and K are those of the clean ones."""
    path = _file(run, name)
    array = read_array(path, _remedy(run))
    if array.ndim != 3 or array.dtype.kind != "f" or not array.size or not np.isfinite(array).all():
        raise InputError(
            f"{path} holds {array.dtype} {array.shape}, and must hold finite numbers of the shape (members, images, "
            f"classes); {_remedy(run)}"
        )
    clean = read_shape(_file(run, "clean"), _remedy(run))
    if len(clean) != 3 or (array.shape[0], array.shape[2]) != (clean[0], clean[2]):
        raise InputError(
            f"{path} holds logits of the shape {array.shape}, and clean.npy of {clean}; members and classes must be "
            f"the same. {_remedy(run)}"
        )
    return array


def read_labels(run: AnyRun, name: str, images: int) -> np.ndarray:
    """Saved labels, of so many images."""
    path, clean = _file(run, name), read_shape(_file(run, "clean"), _remedy(run))
    labels_N = read_array(path, _remedy(run))
    if labels_N.shape != (images,) or labels_N.dtype.kind not in "iu" or not _within(labels_N, clean[-1]):
        raise InputError(
            f"{path} holds {labels_N.dtype} {labels_N.shape}, and must hold {images:,} whole numbers from 0 to "
            f"{clean[-1] - 1}; {_remedy(run)}"
        )
    return labels_N


def _within(labels_N: np.ndarray, classes: int) -> bool:
    return bool(labels_N.size and labels_N.min() >= 0 and labels_N.max() < classes)


def read_probs(run: AnyRun, name: str) -> np.ndarray:
    """The probabilities (M, N, K) in float64 of saved logits."""
    return np.asarray(softmax(read_logits(run, name).astype(np.float64), axis=2))


def read_cells(run: AnyRun, suite: str, shift: Shift) -> Iterator[tuple[str, np.ndarray]]:
    """Each cell of a suite in order: the corruption's name and the logits (M, N, K). Severities rise within a name."""
    for name in shift.corruptions:
        for severity in shift.severities:
            logits_MNK = read_logits(run, cell_file(suite, name, severity))
            if logits_MNK.shape[1] != shift.images:
                raise InputError(
                    f"{_file(run, cell_file(suite, name, severity))} has {logits_MNK.shape[1]:,} images, and "
                    f"its set has {shift.images:,}; {_remedy(run)}"
                )
            yield name, logits_MNK


def read_factors(run: AnyRun) -> dict[str, list[np.ndarray]]:
    """The members' "r" and "s": one array (M, C) per layer."""
    factors = read_arrays(run.folder / "logits" / "factors.npz", _remedy(run))
    return {kind: [value for key, value in factors.items() if key.endswith(f".{kind}")] for kind in ("r", "s")}


def has_logits(run: AnyRun, name: str) -> bool:
    return (run.folder / "logits" / f"{name}.npy").exists()


def _file(run: AnyRun, name: str) -> Path:
    return run.folder / "logits" / f"{name}.npy"


def _remedy(run: AnyRun) -> str:
    return f"remove it if it is there: `{run.evaluate_command}` makes what is missing"


def _of_suite(name: str) -> dict[str, Any]:
    suite = SUITES[name]
    return {"part": suite.part, "corruptions": list(suite.corruptions), "severities": list(suite.severities)}


def _claim(folder: Path, made_with: dict[str, Any], groups: Sequence[ImageGroup]) -> None:
    """Remove logits that were made with something else, and let about.json say what is in the folder."""
    path = folder / "about.json"
    about = _read_old(path)
    if any(about.get(key) != value for key, value in made_with.items()):
        shutil.rmtree(folder, ignore_errors=True)
        about = {}
    if VALIDATION not in {group.name for group in groups}:
        about.pop(VALIDATION, None)  # there are no such images any more
    ours = [group for group in groups if not group.own]
    for group in ours:
        before = about.get(group.name)
        if isinstance(before, dict) and group.name in SUITES:
            before = _of_suite(group.name) | before
        if before != group.about:
            for file in group.files:
                (folder / f"{file}.npy").unlink(missing_ok=True)
    shifts = _claim_shifts(folder, about.get("suites"), [group for group in groups if group.own])
    write_json(path, about | made_with | {group.name: group.about for group in ours} | shifts)


def _claim_shifts(folder: Path, before: Any, groups: Sequence[ImageGroup]) -> dict[str, Any]:
    """What about.json says of the user's own shifts. One of other images replaces that of its name, with all files.

    Names that differ only in capitals are the same name, because some file systems take them for the same folder.
    """
    shifts = dict(before) if isinstance(before, dict) else {}
    for group in groups:
        if shifts.get(group.name) != group.about:
            for name in [name for name in shifts if name.casefold() == group.name.casefold()]:
                del shifts[name]
                shutil.rmtree(folder / name, ignore_errors=True)
            shutil.rmtree(folder / group.name, ignore_errors=True)
        shifts[group.name] = group.about
    return {"suites": shifts} if shifts else {}


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
