"""Bins of confidence: pooled, as a table and in words."""

import math
from collections.abc import Sequence

from counterpoint.records.figures import Bin, Reliability, Summary
from counterpoint.report.numbers import percent, signed, with_sign
from counterpoint.report.run import grouped
from counterpoint.report.tables import Column, Row, Table, plain_row


def reliability_of(summary: Summary) -> Reliability:
    """The bins of a summary. Results without any are not loaded."""
    assert summary.reliability is not None
    return summary.reliability


def pool_bins(tables: Sequence[Sequence[Bin]]) -> tuple[Bin, ...]:
    """The bins of all images together; exact, because every table has the same edges."""
    by_edges = grouped((row for table in tables for row in table), lambda row: (row.low, row.high))
    return tuple(_pool_bin(low, high, rows) for (low, high), rows in sorted(by_edges.items()))


def _pool_bin(low: float, high: float, rows: Sequence[Bin]) -> Bin:
    count = sum(row.count for row in rows)
    confidence = sum(row.count * row.confidence for row in rows) / count
    accuracy = sum(row.count * row.accuracy for row in rows) / count
    return Bin(low, high, count, confidence, accuracy)


def binned_ece(bins: Sequence[Bin]) -> float:
    total = sum(row.count for row in bins)
    return sum(row.count * abs(row.accuracy - row.confidence) for row in bins) / total


def bins_table(caption: str, bins: Sequence[Bin], *, intervals: bool) -> Table:
    """The numbers behind a reliability diagram."""
    columns = [
        Column("Bin", "%"),
        Column("Images"),
        Column("Confidence", "mean, %"),
        Column("Accuracy", "%"),
        Column("Over-confidence", "points"),
    ]
    if intervals:
        columns.insert(4, Column("Interval", "95 %"))
    return Table(caption, tuple(columns), tuple(_bin_row(row, intervals) for row in bins))


def _bin_row(row: Bin, with_interval: bool) -> Row:
    interval = accuracy_interval(row)
    return plain_row(
        f"{percent(row.low)}–{percent(row.high)}",
        f"{row.count:,}",
        percent(row.confidence),
        percent(row.accuracy),
        *([f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}" if interval else "–"] if with_interval else []),
        signed(row.confidence - row.accuracy),
    )


def accuracy_interval(row: Bin) -> tuple[float, float] | None:
    """Of a bin's accuracy. Images that belong together tell less than as many independent ones, and too few groups
    tell nothing."""
    draws = row.count if row.draws is None else row.draws
    return wilson_interval(row.accuracy, draws) if draws else None


def wilson_interval(share: float, count: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share seen in `count` independent images; it stays within 0 and 1."""
    z = 1.959964  # the normal distribution's 97.5 % point
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z**2 / count)
    # Where nothing or everything was seen, rounding must not put the share itself outside.
    return 0.0 if share == 0 else max(0.0, centre - half), 1.0 if share == 1 else min(1.0, centre + half)


def bins_in_words(bins: Sequence[Bin]) -> str:
    """A diagram as text: what fills it, and where confidence and accuracy are furthest apart."""
    total = sum(row.count for row in bins)
    over = sum(row.count for row in bins if row.confidence > row.accuracy)
    widest = max(bins, key=lambda row: abs(row.confidence - row.accuracy))
    return (
        f"Bins that hold images: {len(bins)}. {with_sign(over / total)} of the images lie in bins where confidence "
        f"exceeds accuracy. The widest gap (images: {widest.count:,}) is between mean confidence "
        f"{with_sign(widest.confidence)} and accuracy {with_sign(widest.accuracy)}."
    )
