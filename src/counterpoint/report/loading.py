"""The runs of a report, read from their files."""

from collections.abc import Sequence
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.records.compared import Compared
from counterpoint.records.files import COMPARED, RECALIBRATED, Evaluated, read_evaluated, results_file
from counterpoint.records.recalibrated import Recalibrated, ScaledCorrupted
from counterpoint.records.results import Results, Shifted
from counterpoint.runs.folder import check_several, folder_of
from counterpoint.runs.imported import AnyRun


def load_runs(paths: Sequence[AnyRun | Path | str]) -> list[Evaluated]:
    """What is known of several runs, each of which must be given once: itself, or its folder or results.json.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> load_runs(["runs/theirs"])[0].results.clean.ensemble.error
    0.0
    """
    check_several("runs", paths)
    folders = [folder_of(path) for path in paths]
    files = [results_file(folder).resolve() for folder in folders]
    for number, file in enumerate(files):
        if file in files[:number]:
            raise InputError(f"{folders[number]} is given twice; name each run once")
    return [_load_run(folder) for folder in folders]


def _load_run(path: Path) -> Evaluated:
    evaluated, file = read_evaluated(path), results_file(path)
    cells = [cell for suite in evaluated.results.suites.values() for cell in suite.all_cells()]
    if evaluated.results.clean.reliability is None or not all(cell.reliability and cell.members for cell in cells):
        raise InputError(
            f"{file} is a result as `counterpoint reproduce` keeps it, without the bins that a report shows; "
            "give the run's folder, or see `counterpoint reproduce all`"
        )
    found = {
        RECALIBRATED: evaluated.recalibrated and _misfit_of_ways(evaluated.recalibrated, evaluated.results),
        COMPARED: evaluated.compared and _misfit_of_severities(evaluated.compared, evaluated.results),
    }
    for name, misfit in found.items():
        if misfit:
            raise InputError(f"{file.with_name(name)} does not fit results.json: {misfit}; remove it, or make it again")
    return evaluated


def _misfit_of_ways(recalibrated: Recalibrated, results: Results) -> str:
    expected = len(results.clean.members)
    for name, scaled in recalibrated.ways.items():
        if (count := len(scaled.clean.members)) != expected:
            return f"ways.{name}.clean.members has {count} values, and the run has {expected}"
        if scaled.corrupted and (misfit := _misfit_of_cells(scaled.corrupted, results.corrupted)):
            return f"ways.{name}.corrupted.{misfit}"
    return ""


def _misfit_of_cells(scaled: ScaledCorrupted, shifted: Shifted | None) -> str:
    severities, names = (len(shifted.severities), set(shifted.cells)) if shifted else (0, set())
    counts = {"severities": len(scaled.severities)}
    if scaled.differences:
        counts["differences.severities"] = len(scaled.differences.severities)
    if scaled.calibration_differences:
        counts["calibration_differences"] = len(scaled.calibration_differences)
    for place, count in counts.items():
        if count != severities:
            return f"{place} has {count} values, and the run has {severities}"
    if odd := names ^ set(scaled.corruptions):
        lacks = "has no" if min(odd) in names else "has"
        return f"corruptions {lacks} {min(odd)}, unlike the run"
    return ""


def _misfit_of_severities(compared: Compared, results: Results) -> str:
    expected = len(results.corrupted.severities) if results.corrupted else 0
    for number, other in enumerate(compared.against):
        if other.corrupted and (count := len(other.corrupted.severities)) != expected:
            return f"against[{number}].corrupted.severities has {count} values, and the run has {expected}"
    return ""
