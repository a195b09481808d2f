"""The page and its file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoint import __version__
from counterpoint.errors import InputError
from counterpoint.files import write_atomically
from counterpoint.report.figures import percent_ticks
from counterpoint.report.results import load_results
from counterpoint.report.tables import Run, metrics_tables
from counterpoint.report.views import run_view


def write_report(runs: Sequence[Path], out: Path) -> None:
    """Writes the page of `runs` (folders or results.json files) to `out`, whole or not at all."""
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the page's file name, such as {out / 'report.html'}")
    page = render([load_results(run) for run in runs])
    write_atomically(out, page.encode())


def render(results: Sequence[dict[str, Any]], title: str | None = None) -> str:
    """The page of one or more loaded results, as HTML that needs no other file."""
    if not results:
        raise InputError("there is no run to report; give at least one run folder")
    runs = [Run(label, one) for label, one in zip(_labels(results), results, strict=True)]
    ticks = percent_ticks(_lowest(runs))
    environment = Environment(
        loader=PackageLoader("counterpoint.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html").render(
        title=title or _title(runs),
        runs=[run_view(run, ticks) for run in runs],
        tables=metrics_tables(runs),
        version=__version__,
    )


def _labels(results: Sequence[dict[str, Any]]) -> list[str]:
    """Each run's name, with its seed and then its place added where names are equal."""
    labels = _told_apart([one["experiment"] for one in results], [f"seed {one['run']['seed']}" for one in results])
    return _told_apart(labels, [f"run {place}" for place in range(1, len(labels) + 1)])


def _told_apart(labels: Sequence[str], additions: Sequence[str]) -> list[str]:
    seen = Counter(labels)
    return [f"{label}, {more}" if seen[label] > 1 else label for label, more in zip(labels, additions, strict=True)]


def _title(runs: Sequence[Run]) -> str:
    return f"{len(runs)} runs compared" if len(runs) > 3 else " and ".join(run.label for run in runs)


def _lowest(runs: Sequence[Run]) -> float:
    """The least confidence or accuracy of any equal-mass bin."""
    bins = [row for run in runs for row in run.clean["reliability"]["mass15"]]
    return min(min(row["confidence"], row["accuracy"]) for row in bins)
