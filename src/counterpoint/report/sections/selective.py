"""What confidence is good for: keeping the images that the model is surest of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from counterpoint.records.figures import Curve
from counterpoint.report.drawing.axes import FIFTHS, HALVES, ticks_from_zero
from counterpoint.report.drawing.plots import Axes, series_chart
from counterpoint.report.drawing.series import Point, Series, ink_of, legend, reach
from counterpoint.report.numbers import percent, with_sign
from counterpoint.report.run import ReportedRun, by_images
from counterpoint.report.section import Block, Content, Plot
from counterpoint.report.suites import ShiftedRun, by_cells, named_severities, papers_suite, papers_suites
from counterpoint.report.tables import Column, Table, plain_row

TITLE = "Selective prediction"
_CLEAN = "Clean"
_KEPT_AXIS = "share of images kept, surest first, %"
_KEPT = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Kept:
    """All runs on one set of images: one large plot, or a small one for each severity."""

    label: str
    images: str
    plots: tuple[Plot, ...]
    legend: Markup


@dataclass(frozen=True)
class Selective(Content):
    """Error against the share kept."""

    clean: tuple[Kept, ...]
    corrupted: tuple[Kept, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, tuple(plot for kept in self.clean for plot in kept.plots))


def selective(runs: Sequence[ReportedRun]) -> Selective | None:
    """None where no run has any of it."""
    having = [run for run in runs if run.clean.risk_coverage]
    if not having:
        return None
    shifted = [one for one in papers_suites(having) if one.figures.risk_coverage]
    return Selective(
        tuple(_clean(images, group) for images, group in by_images(having)),
        tuple(_corrupted(images, group) for images, group in by_cells(shifted)),
    )


def _curves(run: ReportedRun) -> dict[str, Curve]:
    """On clean images, and at each severity with all corruptions together."""
    shifted = papers_suite(run)
    by_severity = zip(named_severities(shifted), shifted.figures.risk_coverage, strict=False) if shifted else ()
    return {**({_CLEAN: run.clean.risk_coverage} if run.clean.risk_coverage else {}), **dict(by_severity)}


def _clean(images: str, runs: Sequence[ReportedRun]) -> Kept:
    series = [_series(run, _CLEAN) for run in runs]
    axes = Axes(FIFTHS, _KEPT_AXIS, ticks_from_zero(reach(series, max)), "wrong among those kept, %")
    ends = "; ".join(f"{run.label}: {_ends(_curves(run)[_CLEAN])}" for run in runs)
    alternative = f"Error on clean images against the share of images kept, surest first. {ends}."
    plot = Plot(
        series_chart("risk-coverage", axes, series, alternative),
        legend(runs),
        f"Wrong predictions, {ends}.",
        tuple(map(_table, runs)),
    )
    return Kept("Clean images", images, (plot,), plot.legend)


def _corrupted(images: str, group: Sequence[ShiftedRun]) -> Kept:
    """The severities share one scale."""
    names, runs = named_severities(group[0]), [one.run for one in group]
    series = {name: [_series(run, name) for run in runs] for name in names}
    ticks = ticks_from_zero(max(reach(of_severity, max) for of_severity in series.values()))
    axes = Axes(HALVES, "", ticks, "")
    return Kept(
        group[0].kind,
        images,
        tuple(_at_severity(name, axes, of_severity, runs) for name, of_severity in series.items()),
        legend(runs),
    )


def _at_severity(name: str, axes: Axes, series: Sequence[Series], runs: Sequence[ReportedRun]) -> Plot:
    ends = "; ".join(f"{run.label}: {_ends(_curves(run)[name])}" for run in runs)
    alternative = f"Error at {name.lower()} against the share of images kept, surest first. {ends}."
    return Plot(series_chart("risk-coverage", axes, series, alternative, small=True), legend([]), name, ())


def _series(run: ReportedRun, name: str) -> Series:
    """A line through all points of the curve; about 20 of them answer to the pointer."""
    curve = _curves(run)[name]
    last, step = len(curve.risk) - 1, max(1, len(curve.risk) // 20)
    points = [
        Point(
            curve.coverage[i],
            curve.risk[i],
            f"{name}\nkept: the surest {100 * curve.coverage[i]:.3g}\N{NO-BREAK SPACE}% of the images\n"
            f"wrong among those kept: {with_sign(curve.risk[i])}",
        )
        for i in range(last % step, last + 1, step)
    ]
    outline = list(zip(curve.coverage, curve.risk, strict=True))
    return Series(ink_of(run), points, outline=outline, marked_every=5)


def _ends(curve: Curve) -> str:
    return f"{with_sign(curve.risk[-1])} of all, {with_sign(_risk_at(curve, 0.5))} of the surer half"


def _table(run: ReportedRun) -> Table:
    return Table(
        f"{run.label}: error of the images kept, %",
        (Column("Kept"), *(Column(f"{100 * share:g} %") for share in _KEPT)),
        tuple(
            plain_row(name, *(percent(_risk_at(curve, share)) for share in _KEPT))
            for name, curve in _curves(run).items()
        ),
    )


def _risk_at(curve: Curve, share: float) -> float:
    """The risk at the point of the curve nearest to the share."""
    nearest = min(range(len(curve.coverage)), key=lambda i: abs(curve.coverage[i] - share))
    return curve.risk[nearest]
