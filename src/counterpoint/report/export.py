"""The report's figures as files: CSV and JSON for programs (fractions, all digits), Markdown as on the page."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from counterpoint import __version__
from counterpoint.report.heatmaps import heat_maps
from counterpoint.report.run import AGGREGATES, CORRUPTIONS, SEVERITIES, Run, Summary, label_runs, models, page_title
from counterpoint.report.shift import severities, severity_table
from counterpoint.report.tables import METRICS, Table, metrics_tables, shift_tables
from counterpoint.report.views import facts

Record = dict[str, Any]


def to_csv(results: Sequence[dict[str, Any]]) -> str:
    """A line for each run, set of images and model: the clean set, the aggregates over -C, then each cell."""
    records = [_names(run) | record for run in label_runs(results) for record in _records(run)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def to_json(results: Sequence[dict[str, Any]]) -> str:
    """The lines of the CSV by run, the reliability bins of each severity, and what was run."""
    runs = [
        {
            **_names(run),
            "facts": dict(facts(run)),
            "commands": run.commands,
            "figures": list(_records(run)),
            "reliability": _reliability(run),
        }
        for run in label_runs(results)
    ]
    return json.dumps({"counterpoint": __version__, "runs": runs}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def to_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The page's tables of figures, and what was run."""
    runs = label_runs(results)
    shifted = [run for run in runs if run.is_corrupted]
    parts = [f"# {_plain(page_title(runs))}", "## All metrics", *map(_table, metrics_tables(runs))]
    if shifted:
        aggregates = [table for tables in shift_tables(shifted).values() for table in tables]
        curves = [severity_table(f"{run.label}: mean of the 15 corruptions", severities(run)) for run in shifted]
        grids = [table for heat_map in heat_maps(shifted) for table in heat_map.tables]
        parts += ["## Under corruption", *map(_table, aggregates + curves)]
        parts += ["## Corruption by corruption", *map(_table, grids)]
    parts += ["## What was run", *map(_provenance, runs)]
    return "\n\n".join(parts) + "\n"


def _names(run: Run) -> Record:
    return {"run": run.label, "experiment": run.results["experiment"], "seed": run.results["run"]["seed"]}


def _records(run: Run) -> Iterator[Record]:
    on = run.results["evaluated_on"]
    clean = {"dataset": on["dataset"], "part": on["part"], "images": on["images"], "source": None}
    yield from _of_summary({**clean, "aggregate": None, "corruption": None, "severity": None}, run.clean)
    if not run.is_corrupted:
        return
    source = json.dumps(run.corrupted["source"])
    place = {"dataset": f"{on['dataset']}-C", "part": "test", "images": run.corrupted["images"], "source": source}
    for way in AGGREGATES:
        yield from _of_summary({**place, "aggregate": way, "corruption": None, "severity": None}, run.aggregate(way))
    for name in CORRUPTIONS:
        for severity, cell in zip(SEVERITIES, run.corrupted["cells"][name], strict=True):
            yield from _of_summary({**place, "aggregate": None, "corruption": name, "severity": severity}, cell)


def _of_summary(place: Record, summary: Summary) -> Iterator[Record]:
    for model, scores in models(summary):
        yield {**place, "model": model, **{metric.key: scores.get(metric.key) for metric in METRICS}}


def _reliability(run: Run) -> Record:
    by_severity = {str(point.number): point.bins for point in severities(run)} if run.is_corrupted else {}
    return {"clean": run.clean["reliability"], "severities": by_severity}


def _table(table: Table) -> str:
    heads = [_plain(f"{column.label} ({column.unit})" if column.unit else column.label) for column in table.columns]
    lines = [heads, ["---", *("---:" for _ in heads[1:])]]
    lines += [[_plain(row.label), *(_strong(cell.text, cell.best) for cell in row.cells)] for row in table.rows]
    return "\n".join([f"**{_plain(table.caption)}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _strong(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def _provenance(run: Run) -> str:
    listed = "\n".join(f"- {name}: {_plain(value)}" for name, value in facts(run))
    commands = "\n".join(f"    {line}" for command in run.commands for line in command.splitlines())
    return f"### {_plain(run.label)}\n\n{listed}\n\nTo do it again:\n\n{commands}"


def _plain(text: str) -> str:
    """Text that Markdown takes for nothing else."""
    return re.sub(r"([\\`*_<>|\[\]#&])", r"\\\1", " ".join(text.split()))
