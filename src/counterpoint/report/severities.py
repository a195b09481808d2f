"""What becomes of a run's confidence as corruption grows: figures at each severity, over all corruptions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from counterpoint.records.figures import Bin, Figures, Summary
from counterpoint.report.bins import pool_bins, reliability_of
from counterpoint.report.suites import ALL_IMAGES, ShiftedRun
from counterpoint.report.tables import Column, Entry, Row, Table, percent, signed


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
    member_bins: tuple[tuple[Bin, ...], ...] = ()  # empty for one network, and in earlier results
    is_all: bool = False  # whether the shift has no severities

    @property
    def name(self) -> str:
        if self.is_all:
            return ALL_IMAGES
        return f"Severity {self.number}" if self.number else "Clean"


@dataclass(frozen=True)
class RunSeverities:
    """One run on one suite, at each severity."""

    shifted: ShiftedRun
    points: list[Severity]

    @property
    def label(self) -> str:
        return self.shifted.label


def severities(shifted: ShiftedRun) -> list[Severity]:
    """Each severity, after the clean set where that is the same images."""
    figures, of_clean = shifted.figures, shifted.run.clean
    clean = replace(_pool(0, [of_clean]), member_bins=tuple(one.width15 for one in of_clean.member_reliability))
    by_severity = zip(*figures.cells.values(), strict=True)
    shown = [_pool(number, cells) for number, cells in zip(figures.severities, by_severity, strict=True)]
    bins = figures.member_bins or ((),) * len(shown)
    return [clean] * shifted.clean_is_severity_0 + [
        replace(point, is_all=not shifted.has_severities, member_bins=of_members)
        for point, of_members in zip(shown, bins, strict=True)
    ]


def _pool(number: int, summaries: Sequence[Summary]) -> Severity:
    """Each summary is of equally many images, so a mean over summaries is the mean over images."""
    members = len(summaries[0].members)
    return Severity(
        number,
        _rates([summary.ensemble for summary in summaries]),
        tuple(_rates([summary.members[i] for summary in summaries]) for i in range(members)) if members > 1 else (),
        pool_bins([reliability_of(summary).width15 for summary in summaries]),
    )


def _rates(figures: Sequence[Figures]) -> Rates:
    return Rates(
        accuracy=1 - sum(of_cell.error for of_cell in figures) / len(figures),
        confidence=sum(of_cell.mean_confidence for of_cell in figures) / len(figures),
    )


def severity_table(caption: str, points: Sequence[Severity]) -> Table:
    """The numbers behind the severity chart: at each severity the ensemble, then each member."""
    rows = []
    for point in points:
        rows.append(Row(point.name, _entries(point.ensemble), "run" if point.members else ""))
        rows += [Row(f"member {i}", _entries(member), "member") for i, member in enumerate(point.members, start=1)]
    columns = (
        Column("Severity"),
        Column("Accuracy", "%"),
        Column("Mean confidence", "%"),
        Column("Over-confidence", "points"),
    )
    return Table(caption, columns, tuple(rows))


def _entries(rates: Rates) -> tuple[Entry, ...]:
    gap = rates.confidence - rates.accuracy
    return Entry(percent(rates.accuracy)), Entry(percent(rates.confidence)), Entry(signed(gap))
