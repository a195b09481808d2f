"""The difference between two evaluated runs on the same images, from their results.json and scores.npz alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.errors import InputError
from counterpoint.evaluation.results import SCHEMA
from counterpoint.evaluation.scores import RunScores, read_scores
from counterpoint.metrics import ImageScores, Interval, calibration_differences, mean_difference, paired_differences
from counterpoint.storage.files import read_json, write_json


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What a whole evaluation left in a folder."""

    folder: Path
    results: dict[str, Any]
    scores: RunScores


def read_evaluated(folder: Path) -> Evaluated:
    """The evaluation in `folder`, checked to be whole. It needs no checkpoint and no logits."""
    remedy = f"`counterpoint evaluate {folder}` makes it"
    try:
        results = read_json(folder / "results.json")
    except InputError as error:
        raise InputError(f"{error} ({remedy})") from None
    if not isinstance(results, dict) or results.get("schema") != SCHEMA:
        raise InputError(f"{folder / 'results.json'} is not a results file of this version (schema {SCHEMA}); {remedy}")
    evaluated = Evaluated(folder, results, read_scores(folder))
    try:
        belong_together = _belong_together(evaluated)
    except (KeyError, TypeError) as missing:
        raise InputError(
            f"{folder / 'results.json'} is not a whole results file ({missing}: missing or of the wrong kind); {remedy}"
        ) from None
    if not belong_together:
        raise InputError(
            f"{folder / 'scores.npz'} and results.json come from two evaluations; "
            f"`counterpoint evaluate {folder} --recompute` makes both again"
        )
    return evaluated


def add_comparisons(folder: Path, others: Sequence[Evaluated]) -> dict[str, Any]:
    """Compare the evaluated run in `folder` with `others`, and return what its results.json then holds.

    The new comparisons take the place of older ones there.
    """
    ours = read_evaluated(folder)
    results = ours.results | {"against": [compare(ours, theirs) for theirs in others]}
    write_json(folder / "results.json", results)
    return results


def compare(ours: Evaluated, theirs: Evaluated) -> dict[str, Any]:
    """The differences, ours − theirs, with intervals over images: on the clean set and over the cells.

    Either is None where the two runs were not evaluated on the same images.
    """
    same_clean = _same(ours, theirs, "evaluated_on")
    same_cells = ours.results["evaluated_on"]["dataset"] == theirs.results["evaluated_on"]["dataset"] and (
        _same(ours, theirs, "corrupted", "source") and _same(ours, theirs, "corrupted", "images")
    )
    if not (same_clean or same_cells):
        raise InputError(
            f"{ours.folder} was evaluated on {_images(ours)}, and {theirs.folder} on {_images(theirs)}; "
            "give runs evaluated on the same images"
        )
    return {
        "experiment": theirs.results["experiment"],
        "seed": theirs.results["run"]["seed"],
        "run": theirs.folder.resolve().name,
        "clean": _as_json(paired_differences(ours.scores.clean, theirs.scores.clean)) if same_clean else None,
        "corrupted": _corrupted_differences(ours.scores.cells, theirs.scores.cells) if same_cells else None,
    }


def _belong_together(evaluated: Evaluated) -> bool:
    """Whether scores.npz and results.json agree. A crash between writing the two can leave them apart."""
    results, corrupted = evaluated.results, evaluated.results["corrupted"]
    expected = [(results["evaluated_on"]["images"], results["clean"]["ensemble"]["nll"])]
    found = [evaluated.scores.clean]
    for name, cells in evaluated.scores.cells.items():
        expected += [(corrupted["images"], cell["ensemble"]["nll"]) for cell in corrupted["cells"][name]]
        found += cells
    return len(found) == len(expected) and all(
        len(scores) == images and np.isclose(scores.nll.mean(), nll, rtol=1e-5)
        for scores, (images, nll) in zip(found, expected, strict=True)
    )


def _same(ours: Evaluated, theirs: Evaluated, *keys: str) -> bool:
    our_value, their_value = ours.results, theirs.results
    for key in keys:
        our_value, their_value = our_value[key], their_value[key]
    return our_value == their_value


def _images(evaluated: Evaluated) -> str:
    where, cells = evaluated.results["evaluated_on"], evaluated.results["corrupted"]
    source = " ".join(str(value) for value in cells["source"].values())
    return (
        f"{where['images']:,} {where['part']} images of {where['dataset']} "
        f"and {cells['images']:,} images per cell ({source})"
    )


def _corrupted_differences(
    ours: Mapping[str, Sequence[ImageScores]], theirs: Mapping[str, Sequence[ImageScores]]
) -> dict[str, Any]:
    by_severity = zip(zip(*ours.values(), strict=True), zip(*theirs.values(), strict=True), strict=True)
    all_cells = [[cell for cells in grid.values() for cell in cells] for grid in (ours, theirs)]
    return {
        "mean": _mean_differences(*all_cells),
        "severities": [_mean_differences(*cells) for cells in by_severity],
        "by_corruption": _as_json(calibration_differences(ours, theirs)),
    }


def _mean_differences(ours: Sequence[ImageScores], theirs: Sequence[ImageScores]) -> dict[str, dict[str, float]]:
    """Differences of the images' means over cells. An image counts once, because its cells are not independent."""
    our_means, their_means = _means_of_images(ours), _means_of_images(theirs)
    return _as_json({name: mean_difference(our_means[name], their_means[name]) for name in our_means})


def _means_of_images(cells: Sequence[ImageScores]) -> dict[str, np.ndarray]:
    return {
        "error": np.mean([~cell.correct for cell in cells], axis=0),
        "nll": np.mean([cell.nll for cell in cells], axis=0),
        "brier": np.mean([cell.brier for cell in cells], axis=0),
    }


def _as_json(differences: Mapping[str, Interval]) -> dict[str, dict[str, float]]:
    return {
        name: {"difference": interval.value, "low": interval.low, "high": interval.high}
        for name, interval in differences.items()
    }
