"""How much of a calibration error is noise: its floor, the excess over it, and the debiased value with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.rows import Estimate, estimates_chart
from counterpoint.report.run import AGGREGATES, CALIBRATION, ReportedRun, Scores, models
from counterpoint.report.tables import (
    BY_KEY,
    Column,
    Entry,
    Row,
    Table,
    by_corrupted_images,
    by_images,
    lines,
    percent,
    signed,
    with_sign,
)

_COLUMNS = (Column("Model"), Column("Value", "%"), Column("Noise floor", "%"), Column("Excess", "points"))
_ESTIMATE_COLUMNS = (*_COLUMNS, Column("Debiased", "%"), Column("Interval", "95 %, over images"))


@dataclass(frozen=True)
class HonestPanel:
    """One calibration error of all runs that have a noise floor for it."""

    key: str
    label: str
    clean: tuple[Chart, ...]  # one for each set of images
    corrupted: tuple[Table, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for chart in self.clean), *self.corrupted)


def honest_panels(runs: Sequence[ReportedRun]) -> tuple[HonestPanel, ...]:
    """Empty where no run has estimates on clean images."""
    honest = [run for run in runs if run.clean.get("honest")]
    shifted = [
        run for run in runs if run.is_corrupted and f"{CALIBRATION[0]}_floor" in run.aggregate("pooled")["ensemble"]
    ]
    return tuple(_panel(key, honest, shifted) for key in CALIBRATION) if honest else ()


def _panel(key: str, honest: Sequence[ReportedRun], shifted: Sequence[ReportedRun]) -> HonestPanel:
    column = BY_KEY[key].column
    label = f"{column.label}, {column.unit.removesuffix(', %')}"
    return HonestPanel(
        key=f"honest-{key.replace('_', '-')}",
        label=label,
        clean=tuple(_clean(key, label, images, group) for images, group in by_images(honest).items()),
        corrupted=tuple(
            _corrupted(key, f"{label}, on {images}", group) for images, group in by_corrupted_images(shifted).items()
        ),
    )


def _clean(key: str, label: str, images: str, runs: Sequence[ReportedRun]) -> Chart:
    models_of_runs = [line for run in runs for line in lines(run.label, run.clean)]
    estimates = [_estimate(key, name, scores) for name, _, scores in models_of_runs]
    table = Table(
        f"{label}, on {images}",
        _ESTIMATE_COLUMNS,
        tuple(Row(name, _entries(key, scores) + _debiased(key, scores), kind) for name, kind, scores in models_of_runs),
    )
    of_runs = [estimate for estimate, (_, kind, _) in zip(estimates, models_of_runs, strict=True) if kind == "run"]
    words = "; ".join(f"{estimate.label}: {estimate.words}" for estimate in of_runs)
    caption = "; ".join(
        f"{estimate.label}: {with_sign(estimate.observed)}, noise alone {with_sign(estimate.floor)}"
        for estimate in of_runs
    )
    return Chart(estimates_chart(estimates, f"{label}, with its noise floor. {words}."), f"{caption}.", table)


def _corrupted(key: str, caption: str, runs: Sequence[ReportedRun]) -> Table:
    return Table(
        caption, _COLUMNS, tuple(_aggregate_row(key, run, aggregate) for run in runs for aggregate in AGGREGATES)
    )


def _aggregate_row(key: str, run: ReportedRun, aggregate: str) -> Row:
    _, scores = next(models(run.aggregate(aggregate)))
    label, kind = (f"{run.label}: {aggregate}", "run") if aggregate == AGGREGATES[0] else (aggregate, "member")
    return Row(label, _entries(key, scores), kind)


def _entries(key: str, scores: Scores) -> tuple[Entry, ...]:
    value, floor, excess = (_known(scores, key, part) for part in ("", "_floor", "_excess"))
    return Entry(percent(value)), Entry(percent(floor)), Entry(signed(excess))


def _debiased(key: str, scores: Scores) -> tuple[Entry, ...]:
    debiased, low, high = (_known(scores, key, part) for part in ("_debiased", "_low", "_high"))
    return Entry(percent(debiased)), Entry(f"{percent(low)} to {percent(high)}")


def _estimate(key: str, label: str, scores: Scores) -> Estimate:
    observed, floor, debiased, low, high = (
        _known(scores, key, part) for part in ("", "_floor", "_debiased", "_low", "_high")
    )
    words = (
        f"observed {with_sign(observed)}, noise floor {with_sign(floor)}, debiased {with_sign(debiased)}, "
        f"95 % interval {percent(low)} to {with_sign(high)}"
    )
    return Estimate(label, observed, floor, debiased, low, high, words)


def _known(scores: Scores, key: str, part: str) -> float:
    value = scores[f"{key}{part}"]
    assert value is not None
    return value
