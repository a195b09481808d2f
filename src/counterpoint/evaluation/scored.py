"""What a comparison reads: a run's results.json and scores.npz, or the result of a row and its condensed scores.

`counterpoint reproduce` keeps the latter two, so that a row can be compared when its run is gone.
"""

from dataclasses import dataclass
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.evaluation.condensed import CondensedScores, condensed_file, read_condensed
from counterpoint.evaluation.scores import RunScores, read_scores
from counterpoint.records.files import RESULTS, read_results, results_file
from counterpoint.records.results import Results
from counterpoint.storage.folders import quoted


@dataclass(frozen=True, eq=False)
class Scored:
    """What an evaluation left: in a run's folder, or beside a row's result."""

    place: Path
    results: Results
    scores: RunScores | CondensedScores


def read_scored(run: Path) -> Scored:
    """The evaluation in a run's folder, or a row's result, checked to be whole. It needs no checkpoint, no logits."""
    file = results_file(run)
    results = read_results(file)
    if file.name != RESULTS:
        return Scored(file, results, _read_beside(file, results))
    scores = read_scores(file.parent)
    if scores.made_from != results.made_from:
        raise InputError(
            f"{file.parent / 'scores.npz'} and results.json come from two evaluations; "
            f"`counterpoint evaluate {quoted(file.parent)} --recompute` makes both again"
        )
    return Scored(file.parent, results, scores)


def _read_beside(file: Path, results: Results) -> CondensedScores:
    condensed = condensed_file(file)
    if not condensed.exists():
        raise InputError(
            f"{file} has no {condensed.name} beside it with each image's scores, so it cannot be compared image by "
            "image: results from before such files were kept have their figures alone. Give a result that has one, "
            "or a run's folder"
        )
    scores = read_condensed(condensed)
    if scores.made_from != results.made_from:
        raise InputError(f"{condensed} and {file.name} come from two evaluations; restore both from the same copy")
    return scores


def place_name(run: Path) -> str:
    """The name of a run's folder, or of a row's result without .json."""
    file = results_file(run).resolve()
    return file.parent.name if file.name == RESULTS else file.stem
