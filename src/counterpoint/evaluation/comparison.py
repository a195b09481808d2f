"""The difference between two evaluated runs on the same images, from their results and scores alone."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.evaluation.condensed import CondensedScores, condense
from counterpoint.evaluation.scored import Scored, place_name, read_scored
from counterpoint.evaluation.scores import RunScores
from counterpoint.metrics import (
    ImageScores,
    Interval,
    calibration_differences,
    mean_difference,
    ood_auroc_difference,
    paired_differences,
)
from counterpoint.metrics.checks import Floats, Integers
from counterpoint.metrics.groups import are_enough
from counterpoint.metrics.over_cells import means_of_images
from counterpoint.metrics.paired_calibration import differences_of_parts
from counterpoint.metrics.scores import Grid, groups_of_cells
from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    Compared,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
    OutsideDifference,
    ShiftDifferences,
)
from counterpoint.records.files import COMPARED, RESULTS, check_no_record, results_file, write_record
from counterpoint.records.images import Source
from counterpoint.records.results import Results
from counterpoint.runs.folder import check_several, folder_of
from counterpoint.runs.imported import AnyRun
from counterpoint.storage.files import check_file_path
from counterpoint.storage.provenance import command_line, now


def compared_file(runs: Sequence[Path]) -> Path | None:
    """Where the comparison of the first run with the others is kept. None if one of them has no folder of its own."""
    files = [results_file(run) for run in runs]
    return files[0].with_name(COMPARED) if all(file.name == RESULTS for file in files) else None


def compare_run(
    run: AnyRun | Path | str, others: Sequence[AnyRun | Path | str], out: Path | str | None = None
) -> Compared:
    """Compare an evaluated run with others on the same images, and keep the differences.

    Each is a run, its folder, or a row's result such as results/cifar100/single/paper-0.json. The differences are
    written to `out`. Without it they go to compared.json in the run's folder, replacing an earlier one, if all are
    folders.

    >>> import numpy as np
    >>> from counterpoint import compare_run, evaluate_logits
    >>> labels = np.arange(40) % 2
    >>> for name, share in (("sure", 0.8), ("unsure", 0.2)):
    ...     probs = np.eye(2)[labels] * share + (1 - share) / 2
    ...     _ = evaluate_logits({"dataset": "mine", "probs": probs, "labels": labels}, f"runs/{name}")
    >>> compare_run("runs/sure", ["runs/unsure"]).against[0].experiment
    'unsure'
    """
    check_request(others, out)
    paths = [folder_of(run), *map(folder_of, others)]
    files = [results_file(path).resolve() for path in paths]
    for number, file in enumerate(files[1:], 1):
        if file == files[0]:
            raise InputError(f"{paths[0]} cannot be compared with itself; name another run")
        if file in files[1:number]:
            raise InputError(f"{paths[number]} is given twice; name each run once")
    ours = read_scored(paths[0])
    comparisons = tuple(compare(ours, read_scored(other)) for other in paths[1:])
    results = ours.results
    compared = Compared(results.experiment, results.seed, results.made_from, command_line(), now(), comparisons)
    if kept := compared_file(paths) if out is None else Path(out):
        write_record(kept, compared)
    return compared


def check_request(others: Sequence[object], out: Path | str | None) -> None:
    """Raise unless there is something to compare with, and `out` can be written."""
    check_several("others", others)
    if out is not None:
        check_file_path(Path(out), COMPARED)
        check_no_record(Path(out))


def compare(ours: Scored, theirs: Scored) -> Comparison:
    """The differences, ours − theirs, with intervals over images: on the clean set, over the cells and on other shifts.

    Either is None where the two runs were not evaluated on the same images. Shifted images of too few groups are left
    out.
    """
    same_clean = ours.results.evaluated_on == theirs.results.evaluated_on
    same_cells = ours.results.corrupted is not None and (
        ours.results.images_of("corrupted") == theirs.results.images_of("corrupted")
    )
    shared = [
        name
        for name, (_, cells) in ours.scores.shifts.items()
        if name in theirs.scores.shifts
        and _images_of(name, ours) == _images_of(name, theirs)
        and are_enough(cells[0].groups)
    ]
    outside = _outside_differences(ours, theirs) if same_clean else {}
    if not (same_clean or same_cells or shared):
        raise InputError(
            f"{ours.place} was evaluated on {images_in_words(ours.results)}, and {theirs.place} on "
            f"{images_in_words(theirs.results)}; give runs evaluated on the same images"
        )
    return Comparison(
        experiment=theirs.results.experiment,
        seed=theirs.results.seed,
        run=place_name(theirs.place),
        made_from=theirs.results.made_from,
        clean=clean_differences(ours.scores.clean, theirs.scores.clean) if same_clean else None,
        corrupted=_differences_over_cells(ours.scores, theirs.scores) if same_cells else None,
        shifts={
            name: ShiftDifferences(shift, corrupted_differences({name: cells}, {name: theirs.scores.shifts[name][1]}))
            for name, (shift, cells) in ours.scores.shifts.items()
            if name in shared
        },
        outside=outside,
        scores="whole" if all(isinstance(one.scores, RunScores) for one in (ours, theirs)) else "condensed",
    )


def _images_of(shift: str, scored: Scored) -> Hashable:
    return scored.scores.shifts[shift][0].identity(scored.results.evaluated_on)


def _outside_differences(ours: Scored, theirs: Scored) -> dict[str, OutsideDifference]:
    """The known images are the clean ones, so these must be the same. A key or, of given predictions, a name and a
    number of images say which outside images they are.
    """
    our, their = ours.scores.outside, theirs.scores.outside
    if our is None or their is None:
        return {}
    found = {}
    for name, (images, our_N) in our.sets.items():
        other, their_N = their.sets.get(name, (None, our_N))
        if other == images:
            auroc = ood_auroc_difference(our.known_N, our_N, their.known_N, their_N, ours.scores.clean.group_N)
            found[name] = OutsideDifference(images, **_records({"auroc": auroc}))
    return found


def images_in_words(results: Results) -> str:
    """What a run was evaluated on: its clean images, and the images of its cells."""
    where, cells = results.evaluated_on, results.corrupted
    clean = f"{where.images:,} {where.part} images of {where.dataset}" + (
        f" (key {where.key[:8]})" if where.key else ""
    )
    if where.groups:
        clean += f" in {where.groups.count:,} groups (key {where.groups.key[:8]})"
    return f"{clean} and {cells.images:,} images per cell ({_source(cells.source)})" if cells else clean


def _source(source: Source) -> str:
    parts = {"seed": source.seed, "generator": source.version, "frost": source.frost, "constants": source.constants}
    return ", ".join([source.kind, *(f"{name} {part}" for name, part in parts.items() if part is not None)])


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


def _differences_over_cells(
    ours: RunScores | CondensedScores, theirs: RunScores | CondensedScores
) -> CorruptedDifferences | None:
    if isinstance(ours, RunScores) and isinstance(theirs, RunScores):
        return corrupted_differences(ours.cells, theirs.cells) if are_enough(groups_of_cells(ours.cells)) else None
    our_cells, their_cells = (
        (condense(scores) if isinstance(scores, RunScores) else scores).cells for scores in (ours, theirs)
    )
    assert our_cells is not None  # there is a shift
    assert their_cells is not None
    return CorruptedDifferences(
        mean=_differences_of_means(our_cells.means, their_cells.means),
        severities=(),  # condensed scores know none
        by_corruption=CalibrationDifferences(
            **_records(differences_of_parts(our_cells.calibration, their_cells.calibration))
        ),
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
    return _differences_of_means(means_of_images(ours), means_of_images(theirs), ours[0].group_N)


def _differences_of_means(
    ours: Mapping[str, Floats], theirs: Mapping[str, Floats], group_N: Integers | None = None
) -> MeanDifferences:
    return MeanDifferences(**_records({name: mean_difference(ours[name], theirs[name], group_N) for name in ours}))


def _records(differences: Mapping[str, Interval]) -> dict[str, Difference]:
    return {name: Difference(found.value, found.low, found.high) for name, found in differences.items()}
