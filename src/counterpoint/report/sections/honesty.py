"""How much of a calibration error is noise: its floor, the excess over it, and the debiased value with its interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.figures import Aggregate, CalibrationError, Honest
from counterpoint.records.images import InGroups
from counterpoint.report.drawing.rows import EstimateRow, estimates_chart
from counterpoint.report.drawing.series import ink_of
from counterpoint.report.metrics import BY_KEY, lines
from counterpoint.report.numbers import or_dash, percent, percent_interval, signed, with_sign
from counterpoint.report.run import (
    AGGREGATES,
    CALIBRATION,
    HEADLINE,
    ReportedRun,
    Scores,
    by_images,
    drawn_over,
    whole_scores,
)
from counterpoint.report.section import Block, Chart, Content, Panel
from counterpoint.report.suites import ShiftedRun, by_cells, papers_suites
from counterpoint.report.tables import Column, Row, Table, plain_row

_COLUMNS = (
    Column("Model"),
    Column("Value", "%"),
    Column("Noise floor", "%"),
    Column("Excess", "points"),
    Column("Debiased", "%"),
)


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
    too_low: tuple[str, ...]  # about floors that an earlier version computed

    @property
    def panels(self) -> Sequence[Panel]:
        return self.errors

    def blocks(self) -> Iterator[Block]:
        tables = tuple(table for panel in self.errors for table in panel.tables)
        yield Block("Calibration errors and their noise floors", (*tables, *self.too_low))


def honesty(runs: Sequence[ReportedRun]) -> Honesty | None:
    """None where no run has estimates on clean images."""
    honest = [run for run in runs if run.clean.honest]
    if not honest:
        return None
    suites = [(one, one.figures.aggregates.ensemble[HEADLINE]) for one in papers_suites(runs)]
    shifted = [one for one, figures in suites if figures.ece_width15_floor is not None]
    return Honesty(tuple(_panel(key, honest, shifted) for key in CALIBRATION), tuple(_too_low(shifted)))


def _too_low(shifted: Sequence[ShiftedRun]) -> Iterator[str]:
    earlier = [one.label for one in shifted if one.figures.aggregates.floors_over == "cells"]
    if earlier:
        yield (
            f"An earlier version of counterpoint computed the noise floors on corrupted images of {listed(earlier)}. "
            "It took the cells of an image as independent, so these floors are too low. If a run's folder still has "
            "the logits, “counterpoint evaluate” with --recompute computes them again."
        )


def _panel(key: CalibrationError, honest: Sequence[ReportedRun], shifted: Sequence[ShiftedRun]) -> HonestPanel:
    column = BY_KEY[key].column
    label = f"{column.label}, {column.unit.removesuffix(', %')}"
    return HonestPanel(
        key=f"honest-{key.replace('_', '-')}",
        label=label,
        clean=tuple(_clean(key, label, images, group) for images, group in by_images(honest)),
        corrupted=tuple(_corrupted(key, f"{label}, on {images}", group) for images, group in by_cells(shifted)),
    )


def _clean(key: CalibrationError, label: str, images: str, runs: Sequence[ReportedRun]) -> Chart:
    rows = [row for run in runs for row in _estimates(key, run)]
    models = [line for run in runs for line in lines(run.label, run.clean)]
    columns = (*_COLUMNS, _interval(runs[0].results.evaluated_on.groups))
    estimated = [_row(key, name, kind, scores) for name, kind, scores in models if f"{key}_floor" in scores]
    table = Table(f"{label}, on {images}", columns, tuple(estimated))
    of_runs = [row for row in rows if not row.is_member]
    words = "; ".join(f"{row.label}: {row.words}" for row in of_runs)
    caption = "; ".join(
        f"{row.label}: {with_sign(row.observed)}, noise alone {with_sign(row.estimate.floor)}" for row in of_runs
    )
    return Chart(estimates_chart(rows, f"{label}, with its noise floor. {words}."), f"{caption}.", table)


def _estimates(key: CalibrationError, run: ReportedRun) -> Iterator[EstimateRow]:
    """Of the ensemble, or the one network, and then of each member that has some."""
    honest, members = run.clean.honest or Honest({}), run.clean.members if run.results.is_ensemble else ()
    if key in honest.ensemble:
        yield EstimateRow(run.label, getattr(run.clean.ensemble, key), honest.ensemble[key], ink_of(run))
    for i, (figures, found) in enumerate(zip(members, honest.members, strict=False), start=1):
        if key in found:
            yield EstimateRow(f"member {i}", getattr(figures, key), found[key], ink_of(run), is_member=True)


def _corrupted(key: str, caption: str, group: Sequence[ShiftedRun]) -> Table:
    rows = tuple(_aggregate_row(key, shifted, aggregate) for shifted in group for aggregate in AGGREGATES)
    return Table(caption, (*_COLUMNS, _interval(group[0].figures.groups)), rows)


def _interval(groups: InGroups | None) -> Column:
    return Column("Interval", f"95 %, {drawn_over(groups)}")


def _aggregate_row(key: str, shifted: ShiftedRun, aggregate: Aggregate) -> Row:
    label, kind = (f"{shifted.label}: {aggregate}", "run") if aggregate == HEADLINE else (aggregate, "member")
    return _row(key, label, kind, whole_scores(shifted.aggregate(aggregate)))


def _row(key: str, label: str, kind: str, scores: Scores) -> Row:
    """Over cells only the headline has an interval, unless an earlier version made the results."""
    value, floor, excess, debiased, low, high = (
        scores.get(f"{key}{part}") for part in ("", "_floor", "_excess", "_debiased", "_low", "_high")
    )
    texts = (or_dash(percent, value), or_dash(percent, floor), or_dash(signed, excess), or_dash(percent, debiased))
    interval = "–" if low is None or high is None else percent_interval(low, high)
    return plain_row(label, *texts, interval, kind=kind)
