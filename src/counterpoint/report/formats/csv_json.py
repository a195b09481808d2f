"""The report's figures for programs: fractions, all digits."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from counterpoint import __version__
from counterpoint.experiments.paper import PAPER
from counterpoint.records.codec import encode
from counterpoint.records.files import Evaluated
from counterpoint.report.formats.flat_records import names, records
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.provenance import facts
from counterpoint.report.severities import severities
from counterpoint.report.suites import PAPERS, ShiftedRun, suites_of
from counterpoint.reproduction.beside_paper import stands_for_row

Json = dict[str, object]


def to_csv(evaluated: Sequence[Evaluated]) -> str:
    """A line for each record of each run.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, to_csv
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> to_csv(load_runs(["runs/theirs"])).splitlines()[0].split(",")[:3]
    ['run', 'experiment', 'seed']
    """
    lines = [names(run) | record for run in label_runs(evaluated) for record in records(run)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def to_json(evaluated: Sequence[Evaluated]) -> str:
    """The lines of the CSV by run, what does not fit into lines, the paper's row, and what was run.

    >>> import json
    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, to_json
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> sorted(json.loads(to_json(load_runs(["runs/theirs"]))))
    ['counterpoint', 'runs']
    """
    runs = [_run(run) for run in label_runs(evaluated)]
    return json.dumps({"counterpoint": __version__, "runs": runs}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _run(run: ReportedRun) -> Json:
    results, compared = run.results, run.evaluated.compared
    return {
        **names(run),
        "facts": dict(facts(run)),
        "commands": run.commands,
        "figures": list(records(run)),
        "reliability": _by_suite(run, run.clean.reliability, _bins, {}),
        "risk_coverage": _by_suite(run, run.clean.risk_coverage, _curves, None),
        "outside": encode(results.outside),
        "collapse": encode(results.collapse),
        "health": encode(results.health),
        "recalibrated": encode(run.evaluated.recalibrated),
        "threshold": encode(run.evaluated.thresholded),
        "against": encode(compared.against) if compared else None,
        "paper": _paper_row(run),
    }


def _by_suite(run: ReportedRun, clean: object, of_suite: Callable[[ShiftedRun], object], missing: object) -> Json:
    """What there is on clean images, on -C (as `severities`), and on other suites by their names."""
    found = {shifted.suite: of_suite(shifted) for shifted in suites_of(run)}
    return {"clean": encode(clean), "severities": found.pop(PAPERS, missing), "shifts": found}


def _bins(shifted: ShiftedRun) -> Json:
    return {str(point.number): encode(point.bins) for point in severities(shifted)}


def _curves(shifted: ShiftedRun) -> object:
    return encode(shifted.figures.risk_coverage) or None


def _paper_row(run: ReportedRun) -> Json | None:
    row = PAPER.get(run.results.experiment) if run.results.run else None
    return None if row is None else {**asdict(row), "same_configuration": stands_for_row(run.results)}
