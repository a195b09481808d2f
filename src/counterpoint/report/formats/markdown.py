"""The report as Markdown: the page's tables, its sentences and what was run."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from counterpoint.report.drawing.heatmaps import heat_maps
from counterpoint.report.run import ReportedRun, label_runs, page_title
from counterpoint.report.sections.comparison import comparisons
from counterpoint.report.sections.health import healths
from counterpoint.report.sections.honesty import honest_panels
from counterpoint.report.sections.member_differences import member_differences
from counterpoint.report.sections.metrics import metrics_tables
from counterpoint.report.sections.paper import beside_paper
from counterpoint.report.sections.provenance import facts
from counterpoint.report.sections.recalibration import recalibrations
from counterpoint.report.sections.seeds import seeds_tables
from counterpoint.report.sections.selective import selective
from counterpoint.report.sections.shift import shift_tables
from counterpoint.report.severities import severities, severity_table
from counterpoint.report.tables import Table


def to_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The page's tables of figures, and what was run."""
    runs = label_runs(results)
    kept = selective(runs)
    parts = [
        f"# {_plain(page_title(runs))}",
        *_section("Beside the paper", tables=(table for part in beside_paper(runs) for table in part.tables)),
        *(
            part
            for comparison in comparisons(runs)
            for part in _section(comparison.label, comparison.words, comparison.tables)
        ),
        *_section("All metrics", tables=metrics_tables(runs)),
        *_section("Spread over seeds, not over images", tables=seeds_tables(runs)),
        *_section(
            "Calibration errors and their noise floors",
            tables=(table for panel in honest_panels(runs) for table in panel.tables),
        ),
        *_under_corruption([run for run in runs if run.is_corrupted]),
        *_section("Keeping the surest", tables=kept.tables if kept else ()),
        *(
            part
            for run in recalibrations(runs)
            for part in _section(f"With a temperature: {run.label}", run.words, run.tables)
        ),
        *(
            part
            for run in member_differences(runs)
            for part in _section(f"Do the members differ? {run.label}", (run.verdict,), run.tables)
        ),
        *(
            part
            for run in healths(runs)
            for part in _section(f"Lost channels: {run.label}", (run.sentence, *run.warnings), (run.table,))
        ),
        "## What was run",
        *map(_provenance, runs),
    ]
    return "\n\n".join(parts) + "\n"


def _under_corruption(runs: Sequence[ReportedRun]) -> list[str]:
    if not runs:
        return []
    aggregates = [table for tables in shift_tables(runs).values() for table in tables]
    curves = [severity_table(f"{run.label}: mean of the 15 corruptions", severities(run)) for run in runs]
    grids = [table for heat_map in heat_maps(runs) for table in heat_map.tables]
    return [
        *_section("Under corruption", tables=aggregates + curves),
        *_section("Corruption by corruption", tables=grids),
    ]


def _section(title: str, words: Iterable[str] = (), tables: Iterable[Table] = ()) -> list[str]:
    """Nothing where there is nothing to say."""
    content = [*map(_plain, words), *map(_table, tables)]
    return [f"## {_plain(title)}", *content] if content else []


def _table(table: Table) -> str:
    heads = [_plain(f"{column.label} ({column.unit})" if column.unit else column.label) for column in table.columns]
    lines = [heads, ["---", *("---:" for _ in heads[1:])]]
    lines += [
        [_plain(row.label), *(_strong(_plain(entry.text), entry.best) for entry in row.entries)] for row in table.rows
    ]
    return "\n".join([f"**{_plain(table.caption)}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _strong(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def _provenance(run: ReportedRun) -> str:
    listed = "\n".join(f"- {name}: {_plain(value)}" for name, value in facts(run))
    commands = "\n".join(f"    {line}" for command in run.commands for line in command.splitlines())
    return f"### {_plain(run.label)}\n\n{listed}\n\nTo do it again:\n\n{commands}"


def _plain(text: str) -> str:
    """Text that Markdown takes for nothing else."""
    return re.sub(r"([\\`*_<>|\[\]#&])", r"\\\1", " ".join(text.split()))
