"""The members' logits in the folder of a run, read and checked. Every metric can be computed from them again.

logits/about.json says what they were made with: the weights, the precision, and for each group of images what it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np

from counterpoint.errors import InputError, shown
from counterpoint.evaluation.suites import CORRUPTED, SUITES
from counterpoint.recalibration.apply import Labelled
from counterpoint.records.codec import FieldError, decode
from counterpoint.records.figures import Count
from counterpoint.records.images import Images, MadeFrom, OutsideImages, Shift
from counterpoint.records.progress import why_not_trained
from counterpoint.runs.imported import AnyRun
from counterpoint.storage.arrays import read_array, read_arrays, read_shape
from counterpoint.storage.files import read_json
from counterpoint.threads import in_threads

Result = TypeVar("Result")

VALIDATION, VALIDATION_LABELS = "validation", "validation-labels"
"""The group of validation images, and its files, in a run whose clean images are test images."""
OOD = "ood"
"""The group of the other CIFAR's test images, and its file: outside images of a run on CIFAR."""
_MOST_LOGITS = 1 << 26
"""Of the cells that are in memory at the same time. In float64, with what is computed from them, they take about 3 GiB.
"""
_FILE_NAME = re.compile(r"\w[^/\\\x00]*")


@dataclass(frozen=True)
class OtherSet:
    """The test images of a data set that has a name."""

    dataset: str
    images: Count


@dataclass(frozen=True, kw_only=True)
class LogitsAbout:
    """about.json: what all logits were made with, and what images they are of.

    In the file a suite of ours stands beside the others under its name. `read_about` gives the suites that are
    complete, ours among them, and the outside images that have logits, the other CIFAR's among them.
    """

    weights: str | None = None
    """A hash; None for given predictions."""
    given: str | None = None
    """For given predictions: their hash."""
    precision: str
    clean: Images
    validation: Images | None = None
    """The validation images, where the clean ones are test images; None where there are none."""
    suites: Mapping[str, Shift] = field(default_factory=dict)
    """Of given predictions, and a user's own shifts, by name."""
    outside: Mapping[str, OutsideImages] = field(default_factory=dict)
    """Of given predictions, and a user's own: images of none of the classes, by name."""
    ood: OtherSet | None = None
    """Those of the other CIFAR."""
    commands: tuple[str, ...] = ()
    """What made the logits, the latest last. An earlier one may have made sets that are still there."""
    missing_files: Mapping[str, int] = field(default_factory=dict)
    """How many files the other suites lack. The file does not say it."""

    def problem(self) -> str:
        if self.weights is None and self.given is None:
            return "weights is missing"
        # The names become those of files. A stranger's must not lead outside the folder.
        shifts = [(name, *shift.corruptions) for name, shift in self.suites.items()]
        for place, names in (("suites", chain.from_iterable(shifts)), ("outside", self.outside)):
            foreign = next((name for name in names if not _FILE_NAME.fullmatch(name)), None)
            if foreign is not None:
                return f"{place} has {shown(foreign)!r}, which cannot be part of a file's name"
        return ""

    @property
    def made_from(self) -> MadeFrom:
        corrupted = self.suites.get(CORRUPTED.name)
        return MadeFrom(self.weights, self.precision, self.clean, corrupted, self.validation, self.given)

    @property
    def held_out(self) -> Images | None:
        """The images that temperatures and thresholds may be chosen on, clean or not."""
        return self.clean if self.clean.part == "validation" else self.validation


def read_about(run: AnyRun) -> LogitsAbout:
    """What the logits were made with."""
    path = run.folder / "logits" / "about.json"
    if not path.exists():
        make = f"`{run.evaluate_command}`, without --recompute, makes them"
        raise InputError(why_not_trained(run.folder) or f"{run.folder} holds no logits; {make}")
    about = read_json(path)
    try:
        written = decode(LogitsAbout, about)
        # Logits of earlier versions are of the paper's suite, and do not name its cells.
        ours = {name: decode(Shift, SUITES[name].in_json | about[name]) for name in SUITES if name in about}
    except (FieldError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); remove {path.parent}, and evaluate the run again") from None
    _check_groups(run, written)
    suites = ours | {name: shift for name, shift in written.suites.items() if _is_kept(run, name, shift)}
    missing = {name: len(_missing_files(run, name, shift)) for name, shift in suites.items()}
    return replace(
        written,
        validation=written.validation if has_logits(run, VALIDATION) else None,
        suites={name: shift for name, shift in suites.items() if not missing[name]},
        outside=_outside(run, written),
        missing_files={name: count for name, count in missing.items() if count},
    )


def _check_groups(run: AnyRun, written: LogitsAbout) -> None:
    """Raise where it is not known any more which images belong together: without that, intervals would be too short."""
    for images, labels in ((written.clean, "labels"), (written.validation, VALIDATION_LABELS)):
        if images is not None and images.groups is not None and not has_logits(run, groups_file(labels)):
            raise InputError(f"{_file(run, groups_file(labels))} is missing; {_remedy(run)}")


def _is_kept(run: AnyRun, name: str, shift: Shift) -> bool:
    """A user's own shift whose folder was removed is not wanted any more."""
    return shift.source.kind != "own" or (run.folder / "logits" / name).is_dir()


def _outside(run: AnyRun, written: LogitsAbout) -> dict[str, OutsideImages]:
    """The sets of outside images whose file is there. One whose file was removed is not wanted any more."""
    found = {name: about for name, about in written.outside.items() if has_logits(run, outside_file(name))}
    if written.ood is not None and has_logits(run, OOD):
        return {written.ood.dataset: OutsideImages(written.ood.images)} | found
    return found


def _missing_files(run: AnyRun, suite: str, shift: Shift) -> list[str]:
    """The files of a suite that are not there."""
    cells = [cell_file(suite, name, severity) for name, severity in shift.named_cells]
    groups = [] if shift.groups is None else [groups_file(labels_file(suite))]
    return [file for file in (labels_file(suite), *groups, *cells) if not has_logits(run, file)]


def read_logits(run: AnyRun, name: str) -> np.ndarray:
    """Saved logits (M, N, K), all finite, of the clean images or of any others. M and K are those of the clean ones."""
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
    is_plain = images and labels_N.shape == (images,) and labels_N.dtype.kind in "iu"
    if not is_plain or labels_N.min() < 0 or labels_N.max() >= clean[-1]:
        raise InputError(
            f"{path} holds {labels_N.dtype} {labels_N.shape}, and must hold {images:,} whole numbers from 0 to "
            f"{clean[-1] - 1}; {_remedy(run)}"
        )
    return labels_N


def read_groups(run: AnyRun, labels: str, images: int) -> np.ndarray | None:
    """Which of so many images belong together, whose labels are in this file; None if none do."""
    path = _file(run, groups_file(labels))
    if not path.exists():
        return None
    group_N = read_array(path, _remedy(run))
    if group_N.shape != (images,) or group_N.dtype.kind not in "iu":
        raise InputError(
            f"{path} holds {group_N.dtype} {group_N.shape}, and must hold {images:,} whole numbers; {_remedy(run)}"
        )
    return group_N


def read_labelled(run: AnyRun, name: str, labels: str) -> Labelled:
    """Saved logits in float64, with the labels in another file, and perhaps groups."""
    logits_MNK = read_logits(run, name)
    images = logits_MNK.shape[1]
    return Labelled(logits_MNK.astype(np.float64), read_labels(run, labels, images), read_groups(run, labels, images))


def read_clean(run: AnyRun) -> Labelled:
    """The clean images that the run was evaluated on."""
    return read_labelled(run, "clean", "labels")


def read_test(run: AnyRun, about: LogitsAbout) -> Labelled | None:
    """The clean test images, if those are what the run was evaluated on."""
    return read_clean(run) if about.clean.part == "test" else None


def read_outside_logits(run: AnyRun, about: LogitsAbout, name: str) -> np.ndarray:
    """The logits (M, N, K) in float64 of a set of outside images."""
    is_other_cifar = about.ood is not None and about.ood.dataset == name
    return _read_all(run, OOD if is_other_cifar else outside_file(name), about.outside[name].images).astype(np.float64)


def map_cells(
    work: Callable[[Labelled], Result], run: AnyRun, suite: str, shift: Shift, most: int | None = None
) -> Iterator[tuple[str, int, Result]]:
    """What `work` makes of each cell of a suite, with its corruption and severity. It gets the first `most` images.

    Corruptions and severities are in the order of the shift, and the severities of a corruption come together. Several
    cells are read and worked on at the same time, in threads.
    """
    labels_N = read_labels(run, labels_file(suite), shift.images)[:most]
    groups_N = read_groups(run, labels_file(suite), shift.images)
    groups_N = None if groups_N is None else groups_N[:most]
    members, _, classes = read_shape(_file(run, "clean"), _remedy(run))

    def read_and_work(cell: tuple[str, int]) -> tuple[str, int, Result]:
        logits_MNK = _read_all(run, cell_file(suite, *cell), shift.images)[:, :most]
        return *cell, work(Labelled(logits_MNK.astype(np.float64), labels_N, groups_N))

    at_once = max(1, _MOST_LOGITS // (members * len(labels_N) * classes))
    return in_threads(read_and_work, shift.named_cells, at_once)


def _read_all(run: AnyRun, file: str, images: int) -> np.ndarray:
    """Saved logits of a set of so many images."""
    logits_MNK = read_logits(run, file)
    if logits_MNK.shape[1] != images:
        raise InputError(
            f"{_file(run, file)} has {logits_MNK.shape[1]:,} images, and its set has {images:,}; {_remedy(run)}"
        )
    return logits_MNK


def read_factors(run: AnyRun) -> dict[str, list[np.ndarray]]:
    """The members' "r" and "s": one array (M, C) per layer."""
    factors = read_arrays(run.folder / "logits" / "factors.npz", _remedy(run))
    return {kind: [value for key, value in factors.items() if key.endswith(f".{kind}")] for kind in ("r", "s")}


def cell_file(suite: str, name: str, severity: int) -> str:
    """The file of a cell's logits. Those of the paper's suite lie beside the clean ones, others in their own folder."""
    cell = f"{name}-{severity}"
    return cell if suite == CORRUPTED.name else f"{suite}/{cell}"


def labels_file(suite: str) -> str:
    return "cell-labels" if suite == CORRUPTED.name else f"{suite}/labels"


def groups_file(labels: str) -> str:
    """The file beside one of labels that says which images belong together. It is there if some do."""
    return f"{labels.removesuffix('labels')}groups"


def outside_file(name: str) -> str:
    """The file of the logits of outside images that have a name in about.json."""
    return f"outside/{name}"


def has_logits(run: AnyRun, name: str) -> bool:
    return _file(run, name).exists()


def _file(run: AnyRun, name: str) -> Path:
    return run.folder / "logits" / f"{name}.npy"


def _remedy(run: AnyRun) -> str:
    return f"remove it if it is there: `{run.evaluate_command}` makes what is missing"
