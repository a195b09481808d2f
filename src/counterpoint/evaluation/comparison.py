"""The difference between two evaluated runs on the same images, from their results.json and scores.npz alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.evaluation.scores import RunScores, read_scores
from counterpoint.metrics import ImageScores, Interval, calibration_differences, mean_difference, paired_differences
from counterpoint.metrics.over_cells import means_of_images
from counterpoint.metrics.scores import Grid
from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    Compared,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
    ShiftDifferences,
)
from counterpoint.records.files import COMPARED, RESULTS, read_results, results_file, write_record
from counterpoint.records.images import MadeFrom, Source
from counterpoint.records.results import Results
from counterpoint.storage.folders import quoted
from counterpoint.storage.provenance import command_line, now


@dataclass(frozen=True, eq=False)
class Scored:
    """What an evaluation left in a folder."""

    folder: Path
    results: Results
    scores: RunScores


def read_scored(run: Path) -> Scored:
    """The evaluation in a run's folder, checked to be whole. It needs no checkpoint and no logits."""
    folder = results_file(run).parent
    results, scores = read_results(folder / RESULTS), read_scores(folder)
    if scores.made_from != results.made_from:
        raise InputError(
            f"{folder / 'scores.npz'} and results.json come from two evaluations; "
            f"`counterpoint evaluate {quoted(folder)} --recompute` makes both again"
        )
    return Scored(folder, results, scores)


def compare_run(run: Path | str, others: Sequence[Path | str]) -> Compared:
    """Compare an evaluated run with others on the same images, and write compared.json, replacing an earlier one.

    >>> import numpy as np
    >>> from counterpoint import compare_run, evaluate_logits
    >>> labels = np.arange(40) % 2
    >>> for name, share in (("sure", 0.8), ("unsure", 0.2)):
    ...     probs = np.eye(2)[labels] * share + (1 - share) / 2
    ...     _ = evaluate_logits({"dataset": "mine", "probs": probs, "labels": labels}, f"runs/{name}")
    >>> compare_run("runs/sure", ["runs/unsure"]).against[0].experiment
    'unsure'
    """
    if isinstance(others, str | Path):
        raise InputError(f"others is {str(others)!r}; it must be a list, such as [{str(others)!r}]")
    folder = results_file(Path(run)).parent.resolve()
    their_folders = [results_file(Path(other)).parent for other in others]
    for number, other in enumerate(their_folders):
        if other.resolve() == folder:
            raise InputError(f"{run} cannot be compared with itself; name another run")
        if other.resolve() in [earlier.resolve() for earlier in their_folders[:number]]:
            raise InputError(f"{others[number]} is given twice; name each run once")
    ours = read_scored(Path(run))
    comparisons = tuple(compare(ours, read_scored(other)) for other in their_folders)
    results = ours.results
    compared = Compared(results.experiment, results.seed, results.made_from, command_line(), now(), comparisons)
    write_record(ours.folder / COMPARED, compared)
    return compared


def compare(ours: Scored, theirs: Scored) -> Comparison:
    """The differences, ours − theirs, with intervals over images: on the clean set, over the cells and on other shifts.

    Either is None where the two runs were not evaluated on the same images.
    """
    our_images, their_images = ours.results.made_from, theirs.results.made_from
    same_clean = our_images.clean == their_images.clean
    same_cells = (
        our_images.corrupted is not None
        and _data_set(our_images) == _data_set(their_images)
        and our_images.corrupted == their_images.corrupted
    )
    shared = [name for name in ours.scores.shifts if _is_same_shift(name, ours, theirs)]
    if not (same_clean or same_cells or shared):
        raise InputError(
            f"{ours.folder} was evaluated on {_images(ours.results)}, and {theirs.folder} on "
            f"{_images(theirs.results)}; give runs evaluated on the same images"
        )
    return Comparison(
        experiment=theirs.results.experiment,
        seed=theirs.results.seed,
        run=theirs.folder.resolve().name,
        made_from=theirs.results.made_from,
        clean=clean_differences(ours.scores.clean, theirs.scores.clean) if same_clean else None,
        corrupted=corrupted_differences(ours.scores.cells, theirs.scores.cells) if same_cells else None,
        shifts={name: _shift_differences(name, ours, theirs) for name in shared},
    )


def _is_same_shift(name: str, ours: Scored, theirs: Scored) -> bool:
    """The key of a user's own shift identifies its images. Of given predictions only the labels are known."""
    if name not in theirs.scores.shifts or ours.scores.shifts[name][0] != theirs.scores.shifts[name][0]:
        return False
    same_data = ours.results.evaluated_on.dataset == theirs.results.evaluated_on.dataset
    return same_data or ours.scores.shifts[name][0].source.kind == "own"


def _shift_differences(name: str, ours: Scored, theirs: Scored) -> ShiftDifferences:
    shift, our_cells = ours.scores.shifts[name]
    _, their_cells = theirs.scores.shifts[name]
    return ShiftDifferences(shift, corrupted_differences({name: [*our_cells]}, {name: [*their_cells]}))


def _data_set(images: MadeFrom) -> tuple[str, str | None]:
    """Two users' images may have the same name, so their key counts too."""
    return images.clean.dataset, images.clean.key


def _images(results: Results) -> str:
    where, cells = results.evaluated_on, results.corrupted
    clean = f"{where.images:,} {where.part} images of {where.dataset}" + (
        f" (key {where.key[:8]})" if where.key else ""
    )
    return f"{clean} and {cells.images:,} images per cell ({_source(cells.source)})" if cells else clean


def _source(source: Source) -> str:
    parts = (source.kind, source.seed, source.version, source.frost, source.constants)
    return " ".join(str(part) for part in parts if part is not None)


def clean_differences(ours: ImageScores, theirs: ImageScores) -> CleanDifferences:
    """On one set of images, ours − theirs. Row i of both is the same image."""
    return CleanDifferences(**_records(paired_differences(ours, theirs)))


def corrupted_differences(ours: Grid, theirs: Grid) -> CorruptedDifferences:
    """Over all cells, ours − theirs."""
    our_cells, their_cells = ([cell for cells in grid.values() for cell in cells] for grid in (ours, theirs))
    return CorruptedDifferences(
        mean=_mean_differences(our_cells, their_cells),
        severities=tuple(_mean_differences(*cells) for cells in _by_severity(ours, theirs)),
        by_corruption=CalibrationDifferences(**_records(calibration_differences(ours, theirs))),
    )


def severity_differences(ours: Grid, theirs: Grid) -> Iterator[CalibrationDifferences]:
    """Of the calibration errors at each severity, with the corruptions pooled. An image counts with all its cells."""
    for our_cells, their_cells in _by_severity(ours, theirs):
        pooled = calibration_differences({"pooled": our_cells}, {"pooled": their_cells})
        yield CalibrationDifferences(**_records(pooled))


def _by_severity(*grids: Grid) -> Iterator[tuple[tuple[ImageScores, ...], ...]]:
    """The cells of each severity, in each of the grids."""
    return zip(*(zip(*grid.values(), strict=True) for grid in grids), strict=True)


def _mean_differences(ours: Sequence[ImageScores], theirs: Sequence[ImageScores]) -> MeanDifferences:
    """Differences of the images' means over cells. An image counts once, because its cells are not independent."""
    our_means, their_means = means_of_images(ours), means_of_images(theirs)
    found = {name: mean_difference(our_means[name], their_means[name]) for name in our_means}
    return MeanDifferences(**_records(found))


def _records(differences: Mapping[str, Interval]) -> dict[str, Difference]:
    return {name: Difference(found.value, found.low, found.high) for name, found in differences.items()}
