"""What becomes of a run's confidence as corruption grows: figures at each severity, over all corruptions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from counterpoint.records.figures import Bin, Figures, Summary
from counterpoint.report.bins import binned_ece, pool_bins, reliability_of
from counterpoint.report.drawing.axes import evenly_placed, severity_ticks, ticks_from_zero
from counterpoint.report.drawing.plots import Axes, series_chart
from counterpoint.report.drawing.series import Look, Point, Series, ink_of, legend, reach
from counterpoint.report.numbers import or_dash, percent, signed, with_sign
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Plot
from counterpoint.report.suites import ShiftedRun, counted, named_severities
from counterpoint.report.tables import Column, Row, Table, plain_row

_AXIS = "corruption severity"
_LOOKS: dict[Look, str] = {"solid": "accuracy", "dashed": "mean confidence"}


@dataclass(frozen=True)
class Rates:
    accuracy: float
    confidence: float

    @property
    def gap(self) -> str:
        return signed(self.confidence - self.accuracy)


@dataclass(frozen=True)
class Severity:
    """All images of one severity; 0 is the clean set."""

    number: int
    name: str
    ensemble: Rates
    members: tuple[Rates, ...]  # empty for one network
    bins: tuple[Bin, ...]  # equal-width
    member_bins: tuple[tuple[Bin, ...], ...]  # empty for one network, and in earlier results


@dataclass(frozen=True)
class RunSeverities:
    """One run on one suite, at each severity."""

    shifted: ShiftedRun
    points: list[Severity]

    @property
    def label(self) -> str:
        return self.shifted.label

    @property
    def eces(self) -> dict[str, float]:
        """Of all images of a severity together, as in the small diagrams."""
        return {point.name: binned_ece(point.bins) for point in self.points}


@dataclass(frozen=True)
class EceLine:
    """The ECE of a run at each severity, perhaps with a recalibration."""

    label: str
    run: ReportedRun
    eces: Mapping[str, float]
    way: str = ""
    look: Look = "solid"


def severities(shifted: ShiftedRun) -> list[Severity]:
    """Each severity, after the clean set where that is the same images."""
    figures, of_clean = shifted.figures, shifted.run.clean
    clean = _pool(0, "Clean", [of_clean], tuple(one.width15 for one in of_clean.member_reliability))
    by_severity = zip(*figures.cells.values(), strict=True)
    bins = figures.member_bins or ((),) * len(figures.severities)
    each = zip(figures.severities, named_severities(shifted), by_severity, bins, strict=True)
    return [*([clean] if shifted.clean_is_severity_0 else []), *(_pool(*one) for one in each)]


def _pool(number: int, name: str, summaries: Sequence[Summary], member_bins: tuple[tuple[Bin, ...], ...]) -> Severity:
    """Each summary is of equally many images, so a mean over summaries is the mean over images."""
    members = len(summaries[0].members)
    return Severity(
        number,
        name,
        _rates([summary.ensemble for summary in summaries]),
        tuple(_rates([summary.members[i] for summary in summaries]) for i in range(members)) if members > 1 else (),
        pool_bins([reliability_of(summary).width15 for summary in summaries]),
        member_bins,
    )


def _rates(figures: Sequence[Figures]) -> Rates:
    return Rates(
        accuracy=1 - sum(of_cell.error for of_cell in figures) / len(figures),
        confidence=sum(of_cell.mean_confidence for of_cell in figures) / len(figures),
    )


def severity_names(runs: Sequence[RunSeverities]) -> list[str]:
    """Of all severities that some run has; a run may lack the clean point."""
    return [point.name for point in max((run.points for run in runs), key=len)]


def lowest_rate(runs: Sequence[RunSeverities]) -> float:
    """Of accuracy and confidence, at any severity of any run or member."""
    points = [point for run in runs for point in run.points]
    rates = [rates for point in points for rates in (point.ensemble, *point.members)]
    return min(min(one.accuracy, one.confidence) for one in rates)


def accuracy_plot(runs: Sequence[RunSeverities], ticks: Sequence[int]) -> Plot:
    places = evenly_placed(severity_names(runs))
    axes = Axes(severity_ticks(places), _AXIS, ticks, "accuracy and confidence, %")
    series = [one for run in runs for one in _rates_series(run, places)]
    words = " ".join(f"{run.label}: {_ends(run)}." for run in runs)
    shifted = runs[0].shifted
    mean = "All images." if shifted.is_own else f"Mean of the {counted(len(shifted.figures.cells), 'corruption')}."
    has_members = any(point.members for run in runs for point in run.points)
    return Plot(
        series_chart("severity", axes, series, f"Accuracy and mean confidence against severity. {words}"),
        legend([run.shifted.run for run in runs], _LOOKS, members=has_members),
        f"{mean} Where the dashed line of a run is above its solid line, the run is over-confident.",
        tuple(severity_table(f"{run.label}: accuracy and confidence at each severity", run.points) for run in runs),
    )


def _rates_series(run: RunSeverities, places: Mapping[str, float]) -> Iterator[Series]:
    of_models: dict[int | None, list[Rates]] = {None: [point.ensemble for point in run.points]}
    for i in range(len(run.points[0].members)):
        of_models[i + 1] = [point.members[i] for point in run.points]
    for member, rates in of_models.items():
        named = list(zip([point.name for point in run.points], rates, strict=True))
        accuracy = [Point(places[name], one.accuracy, _in_words(name, one)) for name, one in named]
        confidence = [Point(places[name], one.confidence, _in_words(name, one)) for name, one in named]
        yield Series(ink_of(run.shifted.run), accuracy, "solid", member)
        yield Series(ink_of(run.shifted.run), confidence, "dashed", member)


def _in_words(name: str, rates: Rates) -> str:
    return (
        f"{name}\naccuracy {with_sign(rates.accuracy)}\nmean confidence {with_sign(rates.confidence)}\n"
        f"over-confidence {rates.gap} points"
    )


def _ends(run: RunSeverities) -> str:
    first, last = run.points[0], run.points[-1]
    return (
        f"from {first.name.lower()} to {last.name.lower()} accuracy goes from {with_sign(first.ensemble.accuracy)} to "
        f"{with_sign(last.ensemble.accuracy)} and mean confidence from {with_sign(first.ensemble.confidence)} to "
        f"{with_sign(last.ensemble.confidence)}"
    )


def severity_table(caption: str, points: Sequence[Severity]) -> Table:
    """The numbers behind the severity chart: at each severity the ensemble, then each member."""
    rows = []
    for point in points:
        rows.append(_rates_row(point.name, point.ensemble, "run" if point.members else ""))
        rows += [_rates_row(f"member {i}", member, "member") for i, member in enumerate(point.members, start=1)]
    columns = (
        Column("Severity"),
        Column("Accuracy", "%"),
        Column("Mean confidence", "%"),
        Column("Over-confidence", "points"),
    )
    return Table(caption, columns, tuple(rows))


def _rates_row(label: str, rates: Rates, kind: str) -> Row:
    return plain_row(label, percent(rates.accuracy), percent(rates.confidence), rates.gap, kind=kind)


def ece_plot(runs: Sequence[RunSeverities]) -> Plot:
    names, lines = severity_names(runs), [EceLine(run.label, run.shifted.run, run.eces) for run in runs]
    words = " ".join(
        f"{line.label}: {', '.join(f'{name.lower()} {with_sign(ece)}' for name, ece in line.eces.items())}."
        for line in lines
    )
    caption = f"ECE in 15 equal-width bins at each severity, %: {runs[0].shifted.images}"
    return Plot(
        ece_chart("ece-severity", names, lines, f"ECE against severity. {words}"),
        legend([run.shifted.run for run in runs]),
        "ECE in 15 equal-width bins. At each severity, the images of all corruptions are together in the bins.",
        (ece_table(caption, names, lines),),
    )


def ece_chart(kind: str, names: Sequence[str], lines: Sequence[EceLine], alternative: str) -> Markup:
    places = evenly_placed(names)
    series = []
    for line in lines:
        way = f"\n{line.way}" if line.way else ""
        points = [Point(places[name], ece, f"{name}{way}\nECE {with_sign(ece)}") for name, ece in line.eces.items()]
        series.append(Series(ink_of(line.run), points, line.look))
    axes = Axes(severity_ticks(places), _AXIS, ticks_from_zero(reach(series, max)), "ECE, %")
    return series_chart(kind, axes, series, alternative)


def ece_table(caption: str, names: Sequence[str], lines: Sequence[EceLine]) -> Table:
    columns = [Column(line.label, f"{line.way}, %" if line.way else "") for line in lines]
    rows = [plain_row(name, *(or_dash(percent, line.eces.get(name)) for line in lines)) for name in names]
    return Table(caption, (Column("Severity"), *columns), tuple(rows))
