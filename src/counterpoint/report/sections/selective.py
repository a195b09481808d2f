"""What confidence is good for: keeping the images one can be sure of, and noticing images of another kind."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Curve
from counterpoint.records.results import Outside
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.curves import risk_coverage_chart
from counterpoint.report.drawing.strokes import ticks_from_zero
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import named_severities, papers_suite
from counterpoint.report.tables import Column, Entry, Row, Table, decimal, percent, with_sign

_TITLE = "Keeping the surest"
_KEPT = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Selective(Content):
    """Risk–coverage of each run that has it, and how well confidence tells images of another data set."""

    curves: tuple[tuple[str, Chart], ...]
    ood: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for _, chart in self.curves), *([self.ood] if self.ood else []))

    def blocks(self) -> Iterator[Block]:
        yield Block(_TITLE, self.tables)


@dataclass(frozen=True)
class _Curves:
    """A run's curve on clean images, and at each severity with all corruptions pooled."""

    run: ReportedRun
    clean: Curve
    by_severity: dict[str, Curve]

    @property
    def all(self) -> dict[str, Curve]:
        return {"Clean": self.clean, **self.by_severity}


def selective(runs: Sequence[ReportedRun]) -> Selective | None:
    """None where no run has any of it."""
    curves = [_curves(run, clean) for run in runs if (clean := run.clean.risk_coverage) is not None]
    outside = [(run, ood) for run in runs if (ood := run.results.ood) is not None]
    if not curves and not outside:
        return None
    highest = max((max(curve.risk) for of_run in curves for curve in of_run.all.values()), default=0.0)
    ticks = ticks_from_zero(highest)
    return Selective(
        tuple((of_run.run.label, _chart(of_run, ticks)) for of_run in curves),
        _ood_table(outside) if outside else None,
    )


def _curves(run: ReportedRun, clean: Curve) -> _Curves:
    shifted = papers_suite(run)
    by_severity = dict(zip(named_severities(shifted), shifted.figures.risk_coverage, strict=False)) if shifted else {}
    return _Curves(run, clean, by_severity)


def _chart(curves: _Curves, ticks: Sequence[float]) -> Chart:
    run, shifted = curves.run, papers_suite(curves.run)
    words = [
        f"{name.lower()}: {with_sign(curve.risk[-1])} of all, {with_sign(_risk_at(curve, 0.5))} of the surer half"
        for name, curve in curves.all.items()
    ]
    ends = "; ".join(dict.fromkeys((words[0], words[-1])))
    note = f" Clean is of other images: {run.images}." if shifted and not shifted.clean_is_severity_0 else ""
    table = Table(
        f"{run.label}: error of the images kept, %",
        (Column("Kept"), *(Column(f"{100 * share:g} %") for share in _KEPT)),
        tuple(
            Row(name, tuple(Entry(percent(_risk_at(curve, share))) for share in _KEPT))
            for name, curve in curves.all.items()
        ),
    )
    alternative = f"Error of {run.label} against the share of images kept, surest first: {'; '.join(words)}."
    svg = risk_coverage_chart(curves.clean, curves.by_severity, ticks, alternative)
    return Chart(svg, f"Wrong, {ends}.{note}", table)


def _risk_at(curve: Curve, share: float) -> float:
    """The risk at the point of the curve nearest to the share."""
    nearest = min(range(len(curve.coverage)), key=lambda i: abs(curve.coverage[i] - share))
    return curve.risk[nearest]


def _ood_table(outside: Sequence[tuple[ReportedRun, Outside]]) -> Table:
    rows = []
    for run, ood in outside:
        images = (Entry(run.images), Entry(f"{ood.dataset}, {ood.images:,} images"))
        rows.append(Row(run.label, (Entry(decimal(ood.auroc.ensemble)), *images), "run"))
        if run.results.is_ensemble:
            of_members = enumerate(ood.auroc.members, start=1)
            rows += [Row(f"member {i}", (Entry(decimal(value)), *images), "member") for i, value in of_members]
    columns = (Column("Model"), Column("AUROC", "0.5 to 1"), Column("Known images"), Column("Images from outside"))
    return Table("Telling known images from images of another data set by confidence", columns, tuple(rows))


SECTION = Section("selective", _TITLE, selective, "sections/selective.html")
