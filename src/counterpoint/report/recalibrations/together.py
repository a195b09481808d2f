"""All runs on one axis: the ECE at each severity, with and without recalibration."""

from collections.abc import Iterator, Sequence

from counterpoint.report.drawing.series import legend
from counterpoint.report.recalibrations.words import compared_ways, is_ensemble, quoted
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Plot
from counterpoint.report.severities import EceLine, RunSeverities, ece_chart, ece_table, severities, severity_names
from counterpoint.report.suites import by_cells, papers_suites
from counterpoint.report.tables import with_sign

_WITHOUT = "without recalibration"


def recalibrations_together(runs: Sequence[ReportedRun]) -> tuple[Plot, ...]:
    """A plot for each set of images on which several runs were evaluated, one of them recalibrated."""
    plots = []
    for images, group in by_cells(one for one in papers_suites(runs) if one.has_severities):
        of_runs = [RunSeverities(one, severities(one)) for one in group]
        lines = [line for run in of_runs for line in _lines(run)]
        if len(of_runs) > 1 and len(lines) > len(of_runs):
            plots.append(_plot(images, of_runs, lines))
    return tuple(plots)


def _lines(severities: RunSeverities) -> Iterator[EceLine]:
    """Without recalibration, and with the chosen one, or without a choice with a temperature of clean images."""
    run, plain = severities.shifted.run, severities.eces
    yield EceLine(run.label, run, plain, _WITHOUT, "dashed")
    found = run.evaluated.recalibrated
    way = compared_ways(found)[-1] if found else ""
    if found and (corrupted := found.ways[way].corrupted):
        eces = [figures.ece_width15 for figures in corrupted.severities]
        clean = [found.ways[way].clean.ensemble.ece_width15] if len(plain) > len(eces) else []
        named = dict(zip(plain, [*clean, *eces], strict=True))
        yield EceLine(run.label, run, named, f"with {quoted(way, is_ensemble(found))}")


def _plot(images: str, runs: Sequence[RunSeverities], lines: Sequence[EceLine]) -> Plot:
    names = severity_names(runs)
    words = "; ".join(f"{line.label}, {line.way}: {_ends(line)}" for line in lines)
    how = [f"{line.label} {line.way}" for line in lines if line.look == "solid"]
    alternative = f"ECE against severity, with and without recalibration. {words}."
    return Plot(
        ece_chart("recalibrated", names, lines, alternative),
        legend([run.shifted.run for run in runs], {"dashed": _WITHOUT, "solid": "recalibrated"}),
        f"ECE in 15 equal-width bins, {images}. Recalibrated means: {', '.join(how)}.",
        (ece_table(f"ECE with and without recalibration: {images}", names, lines),),
    )


def _ends(line: EceLine) -> str:
    said = [f"{name.lower()} {with_sign(ece)}" for name, ece in line.eces.items()]
    return ", ".join(dict.fromkeys((said[0], said[-1])))
