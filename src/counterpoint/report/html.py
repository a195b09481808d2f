"""The page, and the report's file in each format."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoint import __version__
from counterpoint.errors import InputError, unknown
from counterpoint.report.beside_paper import beside_paper
from counterpoint.report.collapse import collapses
from counterpoint.report.comparison import comparisons
from counterpoint.report.drawing import percent_ticks
from counterpoint.report.export import to_csv, to_json
from counterpoint.report.health import healths
from counterpoint.report.honesty import honest_panels
from counterpoint.report.markdown import to_markdown
from counterpoint.report.recalibration import recalibrations
from counterpoint.report.results import load_runs
from counterpoint.report.run import Run, label_runs, page_title
from counterpoint.report.seeds import seeds_tables
from counterpoint.report.selective import selective
from counterpoint.report.shift_views import shift_view
from counterpoint.report.tables import metrics_tables
from counterpoint.report.views import run_view
from counterpoint.storage.files import write_atomically

# The section that must have something to show ("" for those always there), its id, and its name among the contents.
_CONTENTS = (
    ("paper", "paper", "Beside the paper"),
    ("comparisons", "comparison", "One run against another"),
    ("", "metrics", "All metrics"),
    ("seeds", "seeds", "Spread over seeds"),
    ("", "reliability", "Reliability"),
    ("honest", "honesty", "Noise"),
    ("shift", "shift", "Under corruption"),
    ("shift", "severities", "Severity"),
    ("shift", "heat-maps", "Heat maps"),
    ("selective", "selective", "Keeping the surest"),
    ("recalibrations", "recalibration", "With a temperature"),
    ("collapses", "collapse", "Do the members differ?"),
    ("healths", "health", "Lost channels"),
    ("", "provenance", "What was run"),
)


def write_report(runs: Sequence[Path], out: Path, format: str = "html") -> None:
    """Writes the report of `runs` (folders or results.json files) to `out`, whole or not at all."""
    if format not in FORMATS:
        raise unknown("report format", format, FORMATS)
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the report's file name, such as {out / f'report.{format}'}")
    if (ending := out.suffix[1:].lower()) != format and ending in FORMATS:
        raise InputError(
            f"a {format} report cannot be written as {str(out)!r}; give it a name that ends in .{format}, or "
            f"choose the format {ending}"
        )
    report = FORMATS[format](load_runs(runs))
    write_atomically(out, report.encode())


def render(results: Sequence[dict[str, Any]], title: str | None = None) -> str:
    """The page of one or more loaded results, as HTML that needs no other file."""
    runs = label_runs(results)
    ticks = percent_ticks(_lowest(runs))
    sections = _sections(runs)
    return (
        _environment()
        .get_template("template.html")
        .render(
            title=title or page_title(runs),
            contents=[(place, name) for section, place, name in _CONTENTS if not section or sections[section]],
            runs=[run_view(run, ticks) for run in runs],
            tables=metrics_tables(runs),
            version=__version__,
            **sections,
        )
    )


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("counterpoint.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _sections(runs: Sequence[Run]) -> dict[str, Any]:
    """What the sections show that not every page has; empty or None where there is nothing."""
    return {
        "paper": beside_paper(runs),
        "comparisons": comparisons(runs),
        "seeds": seeds_tables(runs),
        "honest": honest_panels(runs),
        "shift": shift_view(runs),
        "selective": selective(runs),
        "recalibrations": recalibrations(runs),
        "collapses": collapses(runs),
        "healths": healths(runs),
    }


def _lowest(runs: Sequence[Run]) -> float:
    """The least confidence or accuracy of any equal-mass bin."""
    bins = [row for run in runs for row in run.clean["reliability"]["mass15"]]
    return min(min(row["confidence"], row["accuracy"]) for row in bins)


FORMATS: dict[str, Callable[[Sequence[dict[str, Any]]], str]] = {
    "html": render,
    "csv": to_csv,
    "md": to_markdown,
    "json": to_json,
}
