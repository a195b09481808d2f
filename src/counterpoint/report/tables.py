"""The report's tables as plain values: what a cell says and which value is best, not how it looks."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.run import AGGREGATES, Run, Scores, Summary, models


@dataclass(frozen=True)
class Cell:
    text: str
    best: bool = False
    heat: int | None = None  # percent of a heat map's deepest colour; below zero, of the other colour


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]
    kind: str = ""


@dataclass(frozen=True)
class Column:
    label: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[Column, ...]  # the first is the row headings'
    rows: tuple[Row, ...]


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def with_sign(fraction: float) -> str:
    return f"{percent(fraction)}\N{NO-BREAK SPACE}%"


def decimal(value: float) -> str:
    return f"{value:.3f}"


def signed_number(value: float, digits: int) -> str:
    """A number with its sign, and none for zero as shown."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text.lstrip("+−") if float(text.lstrip("+−")) == 0 else text


def signed(fraction: float, digits: int = 2) -> str:
    """Percentage points with their sign."""
    return signed_number(100 * fraction, digits)


def signed_decimal(value: float) -> str:
    return signed_number(value, 3)


Line = tuple[str, str, Scores]
"""A row's label and kind, and what it shows."""


@dataclass(frozen=True)
class Metric:
    key: str
    column: Column
    show: Callable[[float], str]
    lower_is_better: bool = True


METRICS = (
    Metric("error", Column("Error", "%"), percent),
    Metric("nll", Column("NLL", "nats"), decimal),
    Metric("brier", Column("Brier", "0 to 2"), decimal),
    Metric("ece_width15", Column("ECE", "equal-width 15, %"), percent),
    Metric("ece_rms_width15", Column("ECE-rms", "equal-width 15, %"), percent),
    Metric("ece_mass15", Column("ECE", "equal-mass 15, %"), percent),
    Metric("ece_rms_mass15", Column("ECE-rms", "equal-mass 15, %"), percent),
    Metric("mean_confidence", Column("Mean confidence", "%"), percent, lower_is_better=False),
    Metric("overconfidence", Column("Over-confidence", "points"), signed, lower_is_better=False),
    Metric("aurc", Column("AURC", "%"), percent),
    Metric("disagreement", Column("Members disagree", "%"), percent, lower_is_better=False),
    Metric("pairwise_kl", Column("Members’ KL", "nats"), decimal, lower_is_better=False),
)
BY_KEY = {metric.key: metric for metric in METRICS}


def metrics_tables(runs: Sequence[Run]) -> list[Table]:
    """One table for each set of clean images: figures of different images are not compared."""
    return [
        _metrics_table(f"All metrics on {images}", [(run, run.clean) for run in group])
        for images, group in by_images(runs).items()
    ]


def shift_tables(runs: Sequence[Run]) -> dict[str, list[Table]]:
    """For each aggregate over the cells, one table for each corrupted set."""
    return {
        way: [
            _metrics_table(f"All metrics on {images}: {way}", [(run, run.aggregate(way)) for run in group])
            for images, group in by_corrupted_images(runs).items()
        ]
        for way in AGGREGATES
    }


def by_images(runs: Iterable[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.images, []).append(run)
    return groups


def by_corrupted_images(runs: Iterable[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.corrupted_images, []).append(run)
    return groups


def _metrics_table(caption: str, summaries: Sequence[tuple[Run, Summary]]) -> Table:
    return scores_table(caption, "Model", [line for run, summary in summaries for line in lines(run.label, summary)])


def lines(label: str, summary: Summary) -> list[Line]:
    """The ensemble under `label`, and below it each member."""
    (_, scores), *members = models(summary)
    return [(label, "run", scores), *((name, "member", of_member) for name, of_member in members)]


def scores_table(caption: str, heading: str, lines: Sequence[Line]) -> Table:
    """A row for each line, and a column for each metric that one of them has."""
    known = [metric for metric in METRICS if any(scores.get(metric.key) is not None for _, _, scores in lines)]
    columns = [_column_cells(metric, [scores for _, _, scores in lines]) for metric in known]
    return Table(
        caption=caption,
        columns=(Column(heading), *(metric.column for metric in known)),
        rows=tuple(
            Row(label, cells, kind) for (label, kind, _), cells in zip(lines, zip(*columns, strict=True), strict=True)
        ),
    )


def _column_cells(metric: Metric, scores: Sequence[Scores]) -> list[Cell]:
    values = [one.get(metric.key) for one in scores]
    shown = [None if value is None else metric.show(value) for value in values]
    known = [value for value in values if value is not None]
    # Compared as shown, so that two equal numbers on the page are never marked differently.
    best = metric.show(min(known)) if metric.lower_is_better and len(known) > 1 else None
    return [Cell("–") if text is None else Cell(text, best=text == best) for text in shown]


def bins_table(caption: str, bins: Sequence[dict[str, Any]], *, intervals: bool) -> Table:
    """The numbers behind a reliability diagram."""
    columns = [
        Column("Bin", "%"),
        Column("Images"),
        Column("Confidence", "mean, %"),
        Column("Accuracy", "%"),
        Column("Gap", "points"),
    ]
    if intervals:
        columns.insert(4, Column("Interval", "95 %"))
    return Table(caption, tuple(columns), tuple(_bin_row(row, intervals) for row in bins))


def _bin_row(row: dict[str, Any], with_interval: bool) -> Row:
    low, high = wilson_interval(row["accuracy"], row["count"])
    return Row(
        f"{percent(row['low'])}–{percent(row['high'])}",
        (
            Cell(f"{row['count']:,}"),
            Cell(percent(row["confidence"])),
            Cell(percent(row["accuracy"])),
            *([Cell(f"{100 * low:.1f}–{100 * high:.1f}")] if with_interval else []),
            Cell(signed(row["accuracy"] - row["confidence"])),
        ),
    )


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in `count` independent images; it stays within 0 and 1."""
    z = 1.959964  # the normal distribution's 97.5 % point
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z**2 / count)
    return max(0.0, centre - half), min(1.0, centre + half)
