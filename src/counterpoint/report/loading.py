"""The runs of a report, read from their files."""

from collections.abc import Sequence
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.records.files import Evaluated, read_evaluated, results_file
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
    evaluated = read_evaluated(path)
    cells = [cell for suite in evaluated.results.suites.values() for cell in suite.all_cells()]
    if evaluated.results.clean.reliability is None or not all(cell.reliability and cell.members for cell in cells):
        raise InputError(
            f"{results_file(path)} is a result as `counterpoint reproduce` keeps it, without the bins that a report "
            "shows; give the run's folder, or see `counterpoint reproduce all`"
        )
    return evaluated
