"""What becomes of a run's confidence as corruption grows: figures at each severity, over all corruptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.run import CORRUPTIONS, SEVERITIES, Run, Summary
from counterpoint.report.tables import Cell, Column, Row, Table, percent, signed

Bin = dict[str, Any]


@dataclass(frozen=True)
class Rates:
    accuracy: float
    confidence: float


@dataclass(frozen=True)
class Severity:
    """All images of one severity; 0 is the clean set."""

    number: int
    ensemble: Rates
    members: tuple[Rates, ...]  # empty for one network
    bins: tuple[Bin, ...]  # equal-width

    @property
    def name(self) -> str:
        return f"Severity {self.number}" if self.number else "Clean"


def severities(run: Run) -> list[Severity]:
    """The five severities, after the clean set where that is the same images."""
    clean = [_pool(0, [run.clean])] if run.clean_is_severity_0 else []
    cells = run.corrupted["cells"]
    return clean + [_pool(number, [cells[name][number - 1] for name in CORRUPTIONS]) for number in SEVERITIES]


def _pool(number: int, summaries: Sequence[Summary]) -> Severity:
    """Each summary is of equally many images, so a mean over summaries is the mean over images."""
    members = len(summaries[0]["members"])
    return Severity(
        number,
        _rates([one["ensemble"] for one in summaries]),
        tuple(_rates([one["members"][i] for one in summaries]) for i in range(members)) if members > 1 else (),
        pool_bins([one["reliability"]["width15"] for one in summaries]),
    )


def _rates(scores: Sequence[dict[str, float]]) -> Rates:
    return Rates(
        accuracy=1 - sum(one["error"] for one in scores) / len(scores),
        confidence=sum(one["mean_confidence"] for one in scores) / len(scores),
    )


def pool_bins(tables: Sequence[Sequence[Bin]]) -> tuple[Bin, ...]:
    """The bins of all images together; exact, because every table has the same edges."""
    by_edges: dict[tuple[float, float], list[Bin]] = {}
    for row in (row for table in tables for row in table):
        by_edges.setdefault((row["low"], row["high"]), []).append(row)
    return tuple(_pool_bin(low, high, rows) for (low, high), rows in sorted(by_edges.items()))


def _pool_bin(low: float, high: float, rows: Sequence[Bin]) -> Bin:
    count = sum(row["count"] for row in rows)
    means = {key: sum(row["count"] * row[key] for row in rows) / count for key in ("confidence", "accuracy")}
    return {"low": low, "high": high, "count": count, **means}


def binned_ece(bins: Sequence[Bin]) -> float:
    total = sum(row["count"] for row in bins)
    return sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in bins) / total


def severity_table(caption: str, points: Sequence[Severity]) -> Table:
    """The numbers behind the severity figure: at each severity the ensemble, then each member."""
    rows = []
    for point in points:
        rows.append(Row(point.name, _cells(point.ensemble), "run" if point.members else ""))
        rows += [Row(f"member {i}", _cells(member), "member") for i, member in enumerate(point.members, start=1)]
    columns = (
        Column("Severity"),
        Column("Accuracy", "%"),
        Column("Mean confidence", "%"),
        Column("Over-confidence", "points"),
    )
    return Table(caption, columns, tuple(rows))


def _cells(rates: Rates) -> tuple[Cell, ...]:
    gap = rates.confidence - rates.accuracy
    return Cell(percent(rates.accuracy)), Cell(percent(rates.confidence)), Cell(signed(gap))
