"""The report as Markdown: the page's tables, its sentences and what was run."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from counterpoint.report.beside_paper import beside_paper
from counterpoint.report.collapse import collapses
from counterpoint.report.comparison import comparisons
from counterpoint.report.health import healths
from counterpoint.report.heatmaps import heat_maps
from counterpoint.report.honesty import honest_panels
from counterpoint.report.recalibration import recalibrations
from counterpoint.report.run import Run, label_runs, page_title
from counterpoint.report.seeds import seeds_tables
from counterpoint.report.selective import selective
from counterpoint.report.shift import severities, severity_table
from counterpoint.report.tables import Table, metrics_tables, shift_tables
from counterpoint.report.views import facts


def to_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The page's tables of figures, and what was run."""
    runs = label_runs(results)
    kept = selective(runs)
    parts = [
        f"# {_plain(page_title(runs))}",
        *_section("Beside the paper", tables=(table for one in beside_paper(runs) for table in one.tables)),
        *(part for one in comparisons(runs) for part in _section(one.label, one.words, one.tables)),
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
            for one in recalibrations(runs)
            for part in _section(f"With a temperature: {one.label}", one.words, one.tables)
        ),
        *(
            part
            for one in collapses(runs)
            for part in _section(f"Do the members differ? {one.label}", (one.verdict,), one.tables)
        ),
        *(
            part
            for one in healths(runs)
            for part in _section(f"Lost channels: {one.label}", (one.sentence, *one.warnings), (one.table,))
        ),
        "## What was run",
        *map(_provenance, runs),
    ]
    return "\n\n".join(parts) + "\n"


def _under_corruption(runs: Sequence[Run]) -> list[str]:
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
    lines += [[_plain(row.label), *(_strong(_plain(cell.text), cell.best) for cell in row.cells)] for row in table.rows]
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
