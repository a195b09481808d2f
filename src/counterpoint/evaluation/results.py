"""A run's figures, computed from the logits in its folder: results.json, and scores.npz with each image's scores."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

import counterpoint
from counterpoint import config
from counterpoint.errors import InputError
from counterpoint.evaluation.logits import LogitsAbout, map_cells, read_about, read_clean, read_factors
from counterpoint.evaluation.outside_figures import outside_figures
from counterpoint.evaluation.scores import RunScores, write_scores
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import ImageScores, SetScores, aggregate, intervals_over_cells, score_set, summarise
from counterpoint.metrics.collapse import collapse_record
from counterpoint.metrics.groups import are_enough
from counterpoint.metrics.scores import Grid, grids_of, groups_of_cells, join_scores
from counterpoint.metrics.shift import aggregate_with_floors
from counterpoint.metrics.summary import class_figures, equal_bins, reliability, risk_coverage_points
from counterpoint.recalibration.apply import Labelled
from counterpoint.records.figures import Bin, Intervals, Summary, WithInterval
from counterpoint.records.files import RESULTS, read_results, write_record
from counterpoint.records.images import Shift
from counterpoint.records.progress import why_no_results
from counterpoint.records.results import Aggregates, Evaluation, Results, Segment, Shifted, Trained
from counterpoint.runs.folder import Run
from counterpoint.runs.imported import AnyRun, ImportedRun
from counterpoint.storage.folders import quoted
from counterpoint.storage.provenance import command_line, now
from counterpoint.training.health import health_record


@dataclass(frozen=True)
class _Cells:
    """The figures and the scores of a suite's cells."""

    summaries: Mapping[str, Sequence[Summary]]
    grids: Sequence[Grid]
    """The ensemble's, and then each member's."""

    @property
    def ensemble(self) -> Grid:
        return self.grids[0]


def write_results(run: AnyRun, *, environment: dict[str, Any], started: float, command: str | None = None) -> Results:
    """Compute every figure, and write results.json and scores.npz.

    `started` is when the evaluation began, by the monotonic clock. `command` is what did it, if not the command line.
    """
    about = read_about(run)
    images = read_clean(run)
    clean_MNK = np.asarray(softmax(images.logits_MNK, axis=2))
    clean_scores = score_set(clean_MNK, images.labels_N, images.groups_N)
    clean = _clean(clean_scores)
    cells = {name: _read_suite(run, name, shift) for name, shift in about.suites.items()}
    shifted = {name: _shifted(about.suites[name], of_suite) for name, of_suite in cells.items()}
    corrupted = shifted.pop(CORRUPTED.name, None)
    outside, of_outside = outside_figures(run, about, clean_MNK, clean_scores.ensemble.group_N)
    factors = read_factors(run) if len(clean_MNK) > 1 else {}
    results = Results(
        counterpoint=counterpoint.__version__,
        **_of_run(run),
        evaluation=_evaluation(about, environment, time.monotonic() - started, command or command_line()),
        evaluated_on=about.clean,
        validated_on=about.validation,
        clean=clean,
        corrupted=corrupted,
        shifts=shifted,
        classes=tuple(class_figures(clean_MNK.mean(axis=0), images.labels_N, _class_names(run, clean_MNK.shape[2]))),
        outside=outside,
        collapse=collapse_record(factors, clean, corrupted, clean_MNK.shape[2]),
    )
    of_paper = cells[CORRUPTED.name].ensemble if CORRUPTED.name in cells else {}
    others = {
        name: (shift, cells[name].ensemble[shift.corruptions[0]]) for name, shift in results.checked_shifts.items()
    }
    write_scores(run.folder, RunScores(results.made_from, clean_scores.ensemble, of_paper, others, of_outside))
    write_record(run.folder / RESULTS, results)
    return results


def read_current_results(run: AnyRun) -> tuple[LogitsAbout, Results]:
    """What the logits were made with, and the results in results.json, which must have been computed from them."""
    if not (run.folder / RESULTS).exists():
        raise InputError(why_no_results(run.folder))
    about, results = read_about(run), read_results(run.folder / RESULTS)
    shifts = results.checked_shifts
    if results.made_from != about.made_from or any(about.suites.get(name) != shifts[name] for name in shifts):
        raise InputError(
            f"{run.folder / RESULTS} was made from other logits than those in the folder; "
            f"`counterpoint evaluate {quoted(run.folder)} --recompute` makes it again"
        )
    return about, results


def _class_names(run: AnyRun, count: int) -> Sequence[str]:
    """A run that an earlier version began may not say them, and neither may given predictions."""
    if isinstance(run, ImportedRun):
        known = run.imported.classes
    else:
        known = run.description.classes if run.record.get("description") else ()
    return known or [str(k) for k in range(count)]


def _of_run(run: AnyRun) -> dict[str, Any]:
    """The facts about a run that was trained here, or about predictions from elsewhere."""
    if isinstance(run, ImportedRun):
        return {"experiment": run.name, "config": {}, "imported": run.imported}
    return {
        "experiment": run.experiment.name,
        "config": config.to_dict(run.experiment),
        "run": _trained(run),
        "health": health_record(run),
    }


def _clean(scores: SetScores) -> Summary:
    return replace(
        summarise(scores),
        member_reliability=tuple(map(reliability, scores.members)) if len(scores.members) > 1 else (),
        risk_coverage=risk_coverage_points(scores.ensemble),
    )


def _read_suite(run: AnyRun, suite: str, shift: Shift) -> _Cells:
    """Each cell is read once."""
    scores: dict[str, list[tuple[ImageScores, ...]]] = {name: [] for name in shift.corruptions}
    summaries: dict[str, list[Summary]] = {name: [] for name in shift.corruptions}
    for name, _, (found, summary) in map_cells(_score_cell, run, suite, shift):
        scores[name].append((found.ensemble, *found.members))
        summaries[name].append(summary)
    return _Cells(summaries, grids_of(scores))


def _score_cell(images: Labelled) -> tuple[SetScores, Summary]:
    scores = score_set(softmax(images.logits_MNK, axis=2), images.labels_N, images.groups_N)
    return scores, summarise(scores, honest_members=False)


def _shifted(shift: Shift, cells: _Cells) -> Shifted:
    """The figures of each cell and over all cells."""
    all_cells = [summary for severities in cells.summaries.values() for summary in severities]
    ensemble, *members = map(_by_severity, cells.grids)
    return Shifted(
        **vars(shift),
        aggregates=Aggregates(
            aggregate_with_floors(cells.ensemble),
            tuple(aggregate(grid) for grid in cells.grids[1:]),
            _mean(summary.disagreement for summary in all_cells),
            _mean(summary.pairwise_kl for summary in all_cells),
            _intervals(cells.ensemble) if shift.images > 1 and are_enough(groups_of_cells(cells.ensemble)) else None,
            floors_over="images",
        ),
        cells={name: tuple(summaries) for name, summaries in cells.summaries.items()},
        risk_coverage=tuple(map(risk_coverage_points, ensemble)),
        member_bins=tuple(map(_width_bins, zip(*members, strict=True))) if len(members) > 1 else (),
    )


def _intervals(grid: Grid) -> Intervals:
    found = intervals_over_cells(grid)
    return Intervals(**{name: WithInterval(one.value, one.low, one.high) for name, one in found.items()})


def _by_severity(grid: Grid) -> list[ImageScores]:
    """The images of all corruptions at each severity."""
    return [join_scores(scores) for scores in zip(*grid.values(), strict=True)]


def _width_bins(members: Iterable[ImageScores]) -> tuple[tuple[Bin, ...], ...]:
    return tuple(equal_bins(scores, "width") for scores in members)


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean. None for a single network, whose cells have no such value."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _evaluation(about: LogitsAbout, environment: dict[str, Any], seconds: float, command: str) -> Evaluation:
    return Evaluation(
        command=command,
        earlier_commands=tuple(earlier for earlier in about.commands if earlier != command),
        finished=now(),
        seconds=round(seconds, 3),
        precision=about.precision,
        weights=about.weights,
        **{key: environment[key] for key in ("device", "commit", "versions")},
    )


def _trained(run: Run) -> Trained:
    log = run.read_log()
    try:
        last = [record for record in log if record["event"] == "epoch"][-1]
        return Trained(
            seed=run.seed,
            segments=tuple(_segment(record) for record in log if record["event"] == "started"),
            command=run.record["command"],
            started=run.record["started"],
            finished=last["time"],
            train_seconds=last["seconds"],
            **{key: run.record["environment"][key] for key in ("device", "commit", "versions")},
        )
    except (KeyError, IndexError, TypeError) as wrong:
        why = "no epoch is logged" if isinstance(wrong, IndexError) else wrong
        raise InputError(
            f"run.json or log.jsonl in {run.folder} does not say how the run was trained ({why}); restore both "
            "from a copy"
        ) from None


def _segment(started: dict[str, Any]) -> Segment:
    environment = started["environment"]
    return Segment(
        step=started["step"],
        engine=started.get("engine") or started.get("path"),  # "path" in earlier logs; the first logs had neither
        device=environment["device"],
        commit=environment["commit"],
    )
