"""Bins of confidence as points of a plot."""

import math
from collections.abc import Sequence

from counterpoint.records.figures import Bin
from counterpoint.report.bins import wilson_interval
from counterpoint.report.drawing.series import Ink, Point, Series
from counterpoint.report.tables import percent, signed, with_sign


def reliability_series(ink: Ink, bins: Sequence[Bin], *, intervals: bool, member: int | None = None) -> Series:
    """Accuracy over mean confidence. A bin with few images has a small marker, as it says little."""
    most = max(row.count for row in bins)
    points = [
        Point(
            row.confidence,
            row.accuracy,
            bin_in_words(row, interval=intervals),
            wilson_interval(row.accuracy, row.count) if intervals else None,
            weight=math.sqrt(row.count / most),
        )
        for row in bins
    ]
    return Series(ink, points, member=member)


def member_series(ink: Ink, members: Sequence[Sequence[Bin]]) -> list[Series]:
    """Each member as a thin line, without intervals, which would hide the ensemble."""
    return [reliability_series(ink, bins, intervals=False, member=i) for i, bins in enumerate(members, start=1)]


def bin_in_words(row: Bin, *, interval: bool) -> str:
    """One fact on each line."""
    low, high = wilson_interval(row.accuracy, row.count)
    lines = [
        f"bin: confidence {percent(row.low)} to {with_sign(row.high)}",
        f"mean confidence {with_sign(row.confidence)}",
        f"accuracy {with_sign(row.accuracy)}"
        + (f" (95 % interval {100 * low:.1f} to {100 * high:.1f}\N{NO-BREAK SPACE}%)" if interval else ""),
        f"over-confidence {signed(row.confidence - row.accuracy)} points",
        f"images: {row.count:,}",
    ]
    return "\n".join(lines)
