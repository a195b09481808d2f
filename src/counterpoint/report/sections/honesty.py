"""How much of a calibration error is noise: its floor, the excess over it, and the debiased value with its interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Aggregate, CalibrationError
from counterpoint.report.drawing.rows import EstimateRow, estimates_chart
from counterpoint.report.drawing.series import Ink, ink_of
from counterpoint.report.run import AGGREGATES, CALIBRATION, HEADLINE, ReportedRun, Scores, whole_scores
from counterpoint.report.section import Block, Chart, Content, Panel, Section
from counterpoint.report.suites import ShiftedRun, by_cells, papers_suites
from counterpoint.report.tables import (
    BY_KEY,
    Column,
    Entry,
    Line,
    Row,
    Table,
    by_images,
    lines,
    or_dash,
    percent,
    percent_interval,
    signed,
    with_sign,
)

_COLUMNS = (Column("Model"), Column("Value", "%"), Column("Noise floor", "%"), Column("Excess", "points"))
_ESTIMATE_COLUMNS = (*_COLUMNS, Column("Debiased", "%"), Column("Interval", "95 %, over images"))


@dataclass(frozen=True)
class HonestPanel(Panel):
    """One calibration error of all runs that have a noise floor for it."""

    clean: tuple[Chart, ...]  # one for each set of images
    corrupted: tuple[Table, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for chart in self.clean), *self.corrupted)


@dataclass(frozen=True)
class Honesty(Content):
    errors: tuple[HonestPanel, ...]

    @property
    def panels(self) -> Sequence[Panel]:
        return self.errors

    def blocks(self) -> Iterator[Block]:
        tables = tuple(table for panel in self.errors for table in panel.tables)
        yield Block("Calibration errors and their noise floors", tables)


def honesty(runs: Sequence[ReportedRun]) -> Honesty | None:
    """None where no run has estimates on clean images."""
    honest = [run for run in runs if run.clean.honest]
    shifted = [one for one in papers_suites(runs) if _has_floors(one)]
    return Honesty(tuple(_panel(key, honest, shifted) for key in CALIBRATION)) if honest else None


def _has_floors(shifted: ShiftedRun) -> bool:
    return shifted.figures.aggregates.ensemble[HEADLINE].ece_width15_floor is not None


def _panel(key: CalibrationError, honest: Sequence[ReportedRun], shifted: Sequence[ShiftedRun]) -> HonestPanel:
    column = BY_KEY[key].column
    label = f"{column.label}, {column.unit.removesuffix(', %')}"
    return HonestPanel(
        key=f"honest-{key.replace('_', '-')}",
        label=label,
        clean=tuple(_clean(key, label, images, group) for images, group in by_images(honest)),
        corrupted=tuple(_corrupted(key, f"{label}, on {images}", group) for images, group in by_cells(shifted)),
    )


def _clean(key: str, label: str, images: str, runs: Sequence[ReportedRun]) -> Chart:
    every_line = [(ink_of(run), line) for run in runs for line in lines(run.label, run.clean)]
    drawn = [(ink, line) for ink, line in every_line if f"{key}_debiased" in line[2]]
    models_of_runs = [line for _, line in drawn]
    estimates = [_estimate(key, line, ink) for ink, line in drawn]
    table = Table(
        f"{label}, on {images}",
        _ESTIMATE_COLUMNS,
        tuple(
            Row(name, _entries(key, scores) + _debiased(estimate), kind)
            for estimate, (name, kind, scores) in zip(estimates, models_of_runs, strict=True)
        ),
    )
    of_runs = [estimate for estimate, (_, kind, _) in zip(estimates, models_of_runs, strict=True) if kind == "run"]
    words = "; ".join(f"{estimate.label}: {estimate.words}" for estimate in of_runs)
    caption = "; ".join(
        f"{estimate.label}: {with_sign(estimate.observed)}, noise alone {with_sign(estimate.floor)}"
        for estimate in of_runs
    )
    return Chart(estimates_chart(estimates, f"{label}, with its noise floor. {words}."), f"{caption}.", table)


def _corrupted(key: str, caption: str, group: Sequence[ShiftedRun]) -> Table:
    rows = tuple(_aggregate_row(key, shifted, aggregate) for shifted in group for aggregate in AGGREGATES)
    return Table(caption, _COLUMNS, rows)


def _aggregate_row(key: str, shifted: ShiftedRun, aggregate: Aggregate) -> Row:
    label, kind = (f"{shifted.label}: {aggregate}", "run") if aggregate == HEADLINE else (aggregate, "member")
    return Row(label, _entries(key, whole_scores(shifted.aggregate(aggregate))), kind)


def _entries(key: str, scores: Scores) -> tuple[Entry, ...]:
    return (
        Entry(or_dash(percent, scores[key])),
        Entry(or_dash(percent, scores.get(f"{key}_floor"))),
        Entry(or_dash(signed, scores.get(f"{key}_excess"))),
    )


def _debiased(estimate: EstimateRow) -> tuple[Entry, ...]:
    return Entry(percent(estimate.debiased)), Entry(percent_interval(estimate.low, estimate.high))


def _estimate(key: str, line: Line, ink: Ink) -> EstimateRow:
    label, kind, scores = line
    observed, floor, debiased, low, high = (
        _known(scores, key, part) for part in ("", "_floor", "_debiased", "_low", "_high")
    )
    words = (
        f"observed {with_sign(observed)}, noise floor {with_sign(floor)}, debiased {with_sign(debiased)}, "
        f"95 % interval {percent_interval(low, high)} %"
    )
    return EstimateRow(label, observed, floor, debiased, low, high, words, ink, is_member=kind == "member")


def _known(scores: Scores, key: str, part: str) -> float:
    value = scores[f"{key}{part}"]
    assert value is not None
    return value


SECTION = Section("honesty", "Noise floors", honesty, "sections/honesty.html")
