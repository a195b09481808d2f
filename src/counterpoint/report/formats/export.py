"""The report's figures for programs: fractions, all digits."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from counterpoint import __version__
from counterpoint.experiments.paper import PAPER
from counterpoint.report.formats.records import Record, names, records
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.provenance import facts
from counterpoint.report.severities import severities
from counterpoint.reproduction.beside_paper import stands_for_row


def to_csv(results: Sequence[dict[str, Any]]) -> str:
    """A line for each record of each run."""
    lines = [names(run) | record for run in label_runs(results) for record in records(run)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def to_json(results: Sequence[dict[str, Any]]) -> str:
    """The lines of the CSV by run, what does not fit into lines, the paper's row, and what was run."""
    runs = [
        {
            **names(run),
            "facts": dict(facts(run)),
            "commands": run.commands,
            "figures": list(records(run)),
            "reliability": _reliability(run),
            "risk_coverage": _risk_coverage(run),
            **{key: run.results.get(key) for key in ("ood", "collapse", "health", "recalibrated", "against")},
            "paper": _paper_row(run),
        }
        for run in label_runs(results)
    ]
    return json.dumps({"counterpoint": __version__, "runs": runs}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _reliability(run: ReportedRun) -> Record:
    by_severity = {str(point.number): point.bins for point in severities(run)} if run.is_corrupted else {}
    return {"clean": run.clean["reliability"], "severities": by_severity}


def _risk_coverage(run: ReportedRun) -> Record:
    by_severity = run.corrupted.get("risk_coverage") if run.is_corrupted else None
    return {"clean": run.clean.get("risk_coverage"), "severities": by_severity}


def _paper_row(run: ReportedRun) -> Record | None:
    row = PAPER.get(run.results["experiment"])
    return None if row is None else {**asdict(row), "same_configuration": stands_for_row(run.results)}
