"""Accuracy, confidence and ECE at each severity: all runs on the same images in one plot."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.report.bins import binned_ece, bins_in_words, bins_table
from counterpoint.report.drawing.axes import percent_ticks
from counterpoint.report.drawing.calibration import RunBins, reliability_chart
from counterpoint.report.drawing.series import ink_of, legend
from counterpoint.report.numbers import with_sign
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Plot
from counterpoint.report.severities import (
    RunSeverities,
    accuracy_plot,
    ece_plot,
    lowest_rate,
    severities,
    severity_names,
)
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, is_folded
from counterpoint.report.tables import Table


@dataclass(frozen=True)
class SuiteSeverities:
    """All runs on one suite, at each severity."""

    title: str
    images: str
    notes: tuple[str, ...]  # whether there is a clean point
    lines: tuple[Plot, ...]  # over severities; empty where there is one severity and nothing to set beside it
    reliability: tuple[Plot, ...]
    is_folded: bool

    @property
    def bins(self) -> tuple[Table, ...]:
        return tuple(table for plot in self.reliability for table in plot.tables)


@dataclass(frozen=True)
class Severities(Content):
    suites: tuple[SuiteSeverities, ...]

    def blocks(self) -> Iterator[Block]:
        plots = tuple(plot for suite in self.suites for plot in suite.lines)
        if plots:
            yield Block("Accuracy, confidence and ECE against severity", plots)


def against_severity(runs: Sequence[ReportedRun]) -> Severities | None:
    """None where no run was evaluated under shift. The axis of accuracy is the same in all plots of a page."""
    suites = [
        (images, [RunSeverities(one, severities(one)) for one in same])
        for group in by_suite(runs).values()
        for images, same in by_cells(group)
    ]
    if not suites:
        return None
    shifted = [of_runs[0].shifted for _, of_runs in suites]
    ticks = percent_ticks(min(lowest_rate(of_runs) for _, of_runs in suites))
    kinds = Counter(one.kind for one in shifted)
    found = []
    for images, of_runs in suites:
        kind, names = of_runs[0].shifted.kind, severity_names(of_runs)
        found.append(
            SuiteSeverities(
                title=kind if kinds[kind] == 1 else f"{kind}: {listed([run.label for run in of_runs])}",
                images=images,
                notes=tuple(dict.fromkeys(_note(run.shifted) for run in of_runs)),
                lines=(accuracy_plot(of_runs, ticks), ece_plot(of_runs)) if len(names) > 1 else (),
                reliability=tuple(_reliability(name, of_runs) for name in names),
                is_folded=is_folded(of_runs[0].shifted, shifted),
            )
        )
    return Severities(tuple(found))


def _note(shifted: ShiftedRun) -> str:
    on, images = shifted.run.results.evaluated_on, shifted.figures.images
    if shifted.clean_is_severity_0:
        return f"Clean is the same {images:,} images without corruption."
    if not shifted.is_ours:
        return "There is no clean point: how sure the model is of these images without the shift is not known."
    return (
        f"There is no clean point: the clean figures are of {on.images:,} {on.part} images, and the corrupted "
        f"ones of {images:,} {shifted.figures.part} images."
    )


def _reliability(name: str, runs: Sequence[RunSeverities]) -> Plot:
    """All runs at one severity. Bins have no intervals: an image is in them once for each corruption."""
    points = [(run, point) for run in runs for point in run.points if point.name == name]
    words = " ".join(f"{run.label}: {bins_in_words(point.bins)}" for run, point in points)
    errors = ", ".join(with_sign(binned_ece(point.bins)) for _, point in points)
    return Plot(
        reliability_chart(
            [RunBins(ink_of(run.shifted.run), point.bins, point.member_bins) for run, point in points],
            f"Reliability diagram, {name.lower()}, with equal-width bins. {words}",
            small=True,
        ),
        legend([]),
        f"{name}: ECE {errors}" if len(points) == 1 else name,
        tuple(
            bins_table(f"{run.label}, {name.lower()}: the 15 equal-width bins", point.bins, intervals=False)
            for run, point in points
        ),
    )
