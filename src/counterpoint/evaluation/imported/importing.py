"""From given predictions to a folder with results, which every command without a network takes like a run."""

import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.devices import choose_device
from counterpoint.errors import InputError
from counterpoint.evaluation.imported.checks import GivenSet, read_classes, read_set, read_text, read_unlabelled
from counterpoint.evaluation.imported.given import Given, given_arrays, given_file
from counterpoint.evaluation.imported.layout import CLEAN, Layout, SetNames, SuiteNames, find_layout
from counterpoint.evaluation.logits import (
    VALIDATION,
    VALIDATION_LABELS,
    LogitsAbout,
    cell_file,
    groups_file,
    labels_file,
    outside_file,
)
from counterpoint.evaluation.results import write_results
from counterpoint.metrics.groups import recorded
from counterpoint.records.codec import encode
from counterpoint.records.files import stale_notes
from counterpoint.records.images import Images, OutsideImages, Part, Shift, Source
from counterpoint.records.results import Imported, Results
from counterpoint.runs.folder import folder_of
from counterpoint.runs.imported import ImportedRun, check_import_folder, write_import
from counterpoint.storage.arrays import write_array, write_arrays
from counterpoint.storage.files import write_json
from counterpoint.storage.locks import locked
from counterpoint.storage.provenance import command_line, describe_environment, now
from counterpoint.watching import SILENT, Watcher, counting

UNNAMED = "unnamed data"


def evaluate_logits(
    predictions: Path | str | Mapping[str, ArrayLike], out: Path | str, *, watcher: Watcher = SILENT
) -> Results:
    """Compute the figures of predictions that were made elsewhere, and write them to `out`, a folder used like a run's.

    `predictions` are named arrays, or an .npz file that holds them: `logits` or `probs` (images, classes) or (members,
    images, classes), `labels`, and what docs/predictions.md lists. They replace the predictions that are in the folder
    already. A folder that holds anything else is refused. If an array is wrong, nothing is written.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> labels = np.arange(40) % 2
    >>> results = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> results.clean.ensemble.error, round(results.clean.ensemble.ece_width15, 3)
    (0.0, 0.1)
    """
    if not isinstance(predictions, Mapping | Path | str):
        raise InputError(
            f"predictions are a {type(predictions).__name__}; they must be named arrays, such as "
            '{"probs": probs, "labels": labels}, or the path of an .npz file'
        )
    started, folder = time.monotonic(), folder_of(out)
    check_import_folder(folder)
    given = given_arrays(predictions) if isinstance(predictions, Mapping) else given_file(Path(predictions))
    layout = find_layout(given)
    about, classes = _check(given, layout, watcher)
    name = read_text(given, "name", folder.resolve().name)
    run = ImportedRun(folder, name, _imported(given, classes))
    with locked(folder, f"another process is writing to {folder}; wait for it, or choose another folder (--out)"):
        _write(run, given, layout, about)
        environment = describe_environment(choose_device("cpu"))
        results = write_results(run, environment=environment, started=started, command=run.imported.command)
    for note in stale_notes(folder, results):
        watcher.noted(note)
    return results


def _check(given: Given, layout: Layout, watcher: Watcher) -> tuple[LogitsAbout, tuple[str, ...]]:
    """What about.json says of the predictions, and the classes' names. Every array is read, and none is kept."""
    clean = read_set(given, layout.clean)
    validation = read_set(given, layout.validation, clean.size) if layout.validation else None
    if validation and np.array_equal(validation.logits_MNK, clean.logits_MNK):
        raise given.wrong(
            "the validation images are the same as the clean images; temperatures and thresholds "
            "must be fitted on other images than the figures are measured on"
        )
    dataset = read_text(given, "dataset", UNNAMED)
    about = LogitsAbout(
        given=given.sha256,
        precision=clean.precision,
        clean=_images(dataset, "test", clean),
        validation=_images(dataset, "validation", validation) if validation else None,
        suites=_check_suites(given, layout, clean.size, watcher),
        outside={
            name: OutsideImages(read_unlabelled(given, array, clean.size).shape[1])
            for name, array in layout.outside.items()
        },
    )
    return about, read_classes(given, clean.size[1])


def _images(dataset: str, part: Part, one: GivenSet) -> Images:
    return Images(dataset, part, len(one.labels_N), one.key, recorded(one.together))


def _check_suites(given: Given, layout: Layout, size: tuple[int, int], watcher: Watcher) -> dict[str, Shift]:
    cells = [(name, suite, array) for name, suite in layout.suites.items() for array in suite.cells.values()]
    return {
        name: _shift(suite, read_set(given, SetNames(array, suite.labels), size))
        for name, suite, array in counting(cells, watcher, "checking the predictions under shift", len(cells))
    }


def _shift(suite: SuiteNames, cell: GivenSet) -> Shift:
    """The suite that a cell is of: all cells have the same labels."""
    source = Source("given", key=None if suite.labels == CLEAN else cell.key)
    return Shift(source, len(cell.labels_N), "test", suite.shifts, suite.severities, recorded(cell.together))


def _imported(given: Given, classes: tuple[str, ...]) -> Imported:
    return Imported(
        file=given.file.name if given.file else None,
        sha256=given.sha256,
        classes=classes,
        command=command_line(given.file),
        finished=now(),
    )


def _write(run: ImportedRun, given: Given, layout: Layout, about: LogitsAbout) -> None:
    """The old logits are removed first, and about.json, which describes the new ones, is written last. So a folder
    never holds a mixture of both.
    """
    folder = run.folder / "logits"
    if folder.exists():
        shutil.rmtree(folder)
    write_import(run)
    for logits, labels, names in _files(layout):
        one = read_set(given, names)
        write_array(folder / f"{logits}.npy", one.logits_MNK)
        if not (folder / f"{labels}.npy").exists():
            write_array(folder / f"{labels}.npy", one.labels_N)
            if one.together:
                write_array(folder / f"{groups_file(labels)}.npy", one.together.group_N)
    for name, array in layout.outside.items():
        write_array(folder / f"{outside_file(name)}.npy", read_unlabelled(given, array))
    write_arrays(folder / "factors.npz", {})  # only a BatchEnsemble of ours has factors
    write_json(folder / "about.json", encode(about))


def _files(layout: Layout) -> Iterator[tuple[str, str, SetNames]]:
    """For each set, the files of its logits and of its labels."""
    yield "clean", "labels", layout.clean
    if layout.validation:
        yield VALIDATION, VALIDATION_LABELS, layout.validation
    for name, suite in layout.suites.items():
        for cell, array in suite.cells.items():
            yield cell_file(name, *cell), labels_file(name), SetNames(array, suite.labels)
