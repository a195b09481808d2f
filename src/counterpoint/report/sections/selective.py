"""What confidence is good for: keeping the images one can be sure of, and noticing images of another kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.curves import risk_coverage_chart
from counterpoint.report.drawing.strokes import ticks_from_zero
from counterpoint.report.run import SEVERITIES, ReportedRun
from counterpoint.report.tables import Column, Entry, Row, Table, decimal, percent, with_sign

_KEPT = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)

Curve = dict[str, Any]


@dataclass(frozen=True)
class Selective:
    """Risk–coverage of each run that has it, and how well confidence tells images of another data set."""

    curves: tuple[tuple[str, Chart], ...]
    ood: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for _, chart in self.curves), *([self.ood] if self.ood else []))


def selective(runs: Sequence[ReportedRun]) -> Selective | None:
    """None where no run has any of it."""
    curves = {run.label: _risk_curves(run) for run in runs if run.clean.get("risk_coverage")}
    outside = [run for run in runs if run.results.get("ood")]
    if not curves and not outside:
        return None
    highest = max((max(curve["risk"]) for of_run in curves.values() for curve in of_run.values()), default=0.0)
    ticks = ticks_from_zero(highest)
    return Selective(
        tuple((run.label, _chart(run, curves[run.label], ticks)) for run in runs if run.label in curves),
        _ood_table(outside) if outside else None,
    )


def _risk_curves(run: ReportedRun) -> dict[str, Curve]:
    """The clean set's, then each severity's with the 15 corruptions pooled."""
    by_severity = run.corrupted.get("risk_coverage") if run.is_corrupted else None
    severities = {f"Severity {number}": curve for number, curve in zip(SEVERITIES, by_severity or [], strict=False)}
    return {"Clean": run.clean["risk_coverage"], **severities}


def _chart(run: ReportedRun, curves: dict[str, Curve], ticks: Sequence[float]) -> Chart:
    words = [
        f"{name.lower()}: {with_sign(curve['risk'][-1])} of all, {with_sign(_risk_at(curve, 0.5))} of the surer half"
        for name, curve in curves.items()
    ]
    ends = "; ".join(dict.fromkeys((words[0], words[-1])))
    note = "" if not run.is_corrupted or run.clean_is_severity_0 else f" Clean is of other images: {run.images}."
    table = Table(
        f"{run.label}: error of the images kept, %",
        (Column("Kept"), *(Column(f"{100 * share:g} %") for share in _KEPT)),
        tuple(
            Row(name, tuple(Entry(percent(_risk_at(curve, share))) for share in _KEPT))
            for name, curve in curves.items()
        ),
    )
    alternative = f"Error of {run.label} against the share of images kept, surest first: {'; '.join(words)}."
    return Chart(risk_coverage_chart(curves, ticks, alternative), f"Wrong, {ends}.{note}", table)


def _risk_at(curve: Curve, share: float) -> float:
    """The risk at the point of the curve nearest to the share."""
    nearest = min(range(len(curve["coverage"])), key=lambda i: abs(curve["coverage"][i] - share))
    return curve["risk"][nearest]


def _ood_table(runs: Sequence[ReportedRun]) -> Table:
    rows = []
    for run in runs:
        ood = run.results["ood"]
        images = (Entry(run.images), Entry(f"{ood['dataset']}, {ood['images']:,} images"))
        rows.append(Row(run.label, (Entry(decimal(ood["auroc"]["ensemble"])), *images), "run"))
        if run.is_ensemble:
            of_members = enumerate(ood["auroc"]["members"], start=1)
            rows += [Row(f"member {i}", (Entry(decimal(value)), *images), "member") for i, value in of_members]
    columns = (Column("Model"), Column("AUROC", "0.5 to 1"), Column("Known images"), Column("Images from outside"))
    return Table("Telling known images from images of another data set by confidence", columns, tuple(rows))
