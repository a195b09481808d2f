"""The report as one self-contained page."""

from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoint import __version__
from counterpoint.report.run import ReportedRun, label_runs, page_title
from counterpoint.report.sections.comparison import comparisons
from counterpoint.report.sections.headlines import run_headlines
from counterpoint.report.sections.health import healths
from counterpoint.report.sections.honesty import honest_panels
from counterpoint.report.sections.member_differences import member_differences
from counterpoint.report.sections.metrics import metrics_tables
from counterpoint.report.sections.paper import beside_paper
from counterpoint.report.sections.provenance import provenances
from counterpoint.report.sections.recalibration import recalibrations
from counterpoint.report.sections.reliability import reliabilities
from counterpoint.report.sections.seeds import seeds_tables
from counterpoint.report.sections.selective import selective
from counterpoint.report.sections.shift import under_shift

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
    ("member_differences", "collapse", "Do the members differ?"),
    ("healths", "health", "Lost channels"),
    ("", "provenance", "What was run"),
)


def render(results: Sequence[dict[str, Any]], title: str | None = None) -> str:
    """The page of one or more loaded results, as HTML that needs no other file."""
    runs = label_runs(results)
    sections = _sections(runs)
    return (
        _environment()
        .get_template("formats/page.html")
        .render(
            title=title or page_title(runs),
            contents=[(place, name) for section, place, name in _CONTENTS if not section or sections[section]],
            headlines=run_headlines(runs),
            metrics=metrics_tables(runs),
            reliabilities=reliabilities(runs),
            provenances=provenances(runs),
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


def _sections(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """What the sections show that not every page has; empty or None where there is nothing."""
    return {
        "paper": beside_paper(runs),
        "comparisons": comparisons(runs),
        "seeds": seeds_tables(runs),
        "honest": honest_panels(runs),
        "shift": under_shift(runs),
        "selective": selective(runs),
        "recalibrations": recalibrations(runs),
        "member_differences": member_differences(runs),
        "healths": healths(runs),
    }
