"""Accuracy, confidence and ECE over the severities, all runs in one plot."""

from collections.abc import Iterator, Sequence

from counterpoint.report.bins import binned_ece
from counterpoint.report.drawing.chart import Plot
from counterpoint.report.drawing.plots import Axes, series_chart
from counterpoint.report.drawing.series import Look, Point, Series, ink_of, legend, reach
from counterpoint.report.drawing.strokes import evenly_placed, ticks_from_zero
from counterpoint.report.severities import Rates, RunSeverities, severity_table
from counterpoint.report.suites import ShiftedRun, counted
from counterpoint.report.tables import Column, Entry, Row, Table, or_dash, percent, signed, with_sign

_LOOKS: dict[Look, str] = {"solid": "accuracy", "dashed": "mean confidence"}


def lowest_rate(runs: Sequence[RunSeverities]) -> float:
    """Of accuracy and confidence, at any severity of any run or member."""
    points = [point for run in runs for point in run.points]
    rates = [rates for point in points for rates in (point.ensemble, *point.members)]
    return min(min(one.accuracy, one.confidence) for one in rates)


def accuracy_plot(runs: Sequence[RunSeverities], ticks: Sequence[int]) -> Plot:
    places = severity_places(runs)
    series = [one for run in runs for one in _rates_series(run, places)]
    axes = Axes(severity_ticks(places), "corruption severity", ticks, "accuracy and confidence, %")
    words = " ".join(f"{run.label}: {_ends(run)}." for run in runs)
    return Plot(
        series_chart("severity", axes, series, f"Accuracy and mean confidence against severity. {words}"),
        legend(
            [run.shifted.run for run in runs],
            _LOOKS,
            members=any(point.members for run in runs for point in run.points),
        ),
        f"{_mean_of(runs[0].shifted)} Where the dashed line of a run is above its solid line, the run is "
        "over-confident.",
        tuple(severity_table(f"{run.label}: accuracy and confidence at each severity", run.points) for run in runs),
    )


def ece_plot(runs: Sequence[RunSeverities]) -> Plot:
    """Of all images of a severity together, as in the small diagrams."""
    places = severity_places(runs)
    errors = {run.label: {point.name: binned_ece(point.bins) for point in run.points} for run in runs}
    series = [
        Series(
            ink_of(run.shifted.run),
            [
                Point(places[name], value, f"{name}\nECE {with_sign(value)}")
                for name, value in errors[run.label].items()
            ],
        )
        for run in runs
    ]
    axes = Axes(severity_ticks(places), "corruption severity", ticks_from_zero(reach(series, max)), "ECE, %")
    words = " ".join(
        f"{label}: {', '.join(f'{name.lower()} {with_sign(value)}' for name, value in of_run.items())}."
        for label, of_run in errors.items()
    )
    return Plot(
        series_chart("ece-severity", axes, series, f"ECE against severity. {words}"),
        legend([run.shifted.run for run in runs]),
        "ECE in 15 equal-width bins. At each severity, the images of all corruptions are together in the bins.",
        (_ece_table(runs[0].shifted.images, list(places), errors),),
    )


def severity_places(runs: Sequence[RunSeverities]) -> dict[str, float]:
    """Where each severity that some run has stands; a run may lack the clean point."""
    longest = max((run.points for run in runs), key=len)
    return dict(zip([point.name for point in longest], evenly_placed(len(longest)), strict=True))


def severity_ticks(places: dict[str, float]) -> dict[float, str]:
    return {place: name.lower().removeprefix("severity ") for name, place in places.items()}


def _rates_series(run: RunSeverities, places: dict[str, float]) -> Iterator[Series]:
    ink, at = ink_of(run.shifted.run), [places[point.name] for point in run.points]
    of_models: dict[int | None, list[Rates]] = {None: [point.ensemble for point in run.points]}
    for i in range(len(run.points[0].members)):
        of_models[i + 1] = [point.members[i] for point in run.points]
    for member, rates in of_models.items():
        words = [f"{point.name}\n{_in_words(one)}" for point, one in zip(run.points, rates, strict=True)]
        looks: dict[Look, list[float]] = {
            "solid": [one.accuracy for one in rates],
            "dashed": [one.confidence for one in rates],
        }
        for look, values in looks.items():
            yield Series(ink, [Point(*one) for one in zip(at, values, words, strict=True)], look, member)


def _in_words(rates: Rates) -> str:
    return (
        f"accuracy {with_sign(rates.accuracy)}\nmean confidence {with_sign(rates.confidence)}\n"
        f"over-confidence {signed(rates.confidence - rates.accuracy)} points"
    )


def _ends(run: RunSeverities) -> str:
    first, last = run.points[0], run.points[-1]
    return (
        f"from {first.name.lower()} to {last.name.lower()} accuracy goes from {with_sign(first.ensemble.accuracy)} to "
        f"{with_sign(last.ensemble.accuracy)} and mean confidence from {with_sign(first.ensemble.confidence)} to "
        f"{with_sign(last.ensemble.confidence)}"
    )


def _mean_of(shifted: ShiftedRun) -> str:
    return "All images." if shifted.is_own else f"Mean of the {counted(len(shifted.figures.cells), 'corruption')}."


def _ece_table(images: str, names: Sequence[str], errors: dict[str, dict[str, float]]) -> Table:
    rows = [Row(name, tuple(Entry(or_dash(percent, of_run.get(name))) for of_run in errors.values())) for name in names]
    return Table(
        f"ECE in 15 equal-width bins at each severity, %: {images}",
        (Column("Severity"), *(Column(label) for label in errors)),
        tuple(rows),
    )
