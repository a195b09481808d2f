"""Two charts of recalibrations: the ECE of all runs on one axis, and how temperatures move with the images."""

from collections.abc import Iterator, Mapping, Sequence

from counterpoint.records.recalibrated import Moved, Recalibrated
from counterpoint.report.drawing.plots import Line, Scale, lines_chart
from counterpoint.report.drawing.series import legend
from counterpoint.report.numbers import or_dash, percent, with_sign
from counterpoint.report.recalibrations import Topic
from counterpoint.report.recalibrations.words import LINES, compared_ways, is_ensemble, label_of, quoted
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Chart, Plot
from counterpoint.report.severities import EceLine, RunSeverities, ece_chart, ece_table, severities, severity_names
from counterpoint.report.suites import by_cells, papers_suites
from counterpoint.report.tables import Column, Table, plain_row

_WITHOUT = "without recalibration"
_Moves = dict[str, dict[str, Moved]]
"""Of each recalibration: its temperature and the signals on each set of images."""


def recalibrations_together(runs: Sequence[ReportedRun]) -> tuple[Plot, ...]:
    """A plot for each set of images on which several runs were evaluated, one of them recalibrated."""
    plots = []
    for images, group in by_cells(one for one in papers_suites(runs) if one.has_severities):
        of_runs = [RunSeverities(one, severities(one)) for one in group]
        lines = [line for run in of_runs for line in _lines(run)]
        if len(of_runs) > 1 and len(lines) > len(of_runs):
            plots.append(_together_plot(images, of_runs, lines))
    return tuple(plots)


def _lines(of_run: RunSeverities) -> Iterator[EceLine]:
    """Without recalibration, and with the one that `predict` uses."""
    run, plain = of_run.shifted.run, of_run.eces
    yield EceLine(run.label, run, plain, _WITHOUT, "dashed")
    found = run.evaluated.recalibrated
    way = compared_ways(found)[-1] if found else ""
    if found and (corrupted := found.ways[way].corrupted):
        eces = [figures.ece_width15 for figures in corrupted.severities]
        clean = [found.ways[way].clean.ensemble.ece_width15] if len(plain) > len(eces) else []
        named = dict(zip(plain, [*clean, *eces], strict=True))
        yield EceLine(run.label, run, named, f"with {quoted(way, is_ensemble(found))}")


def _together_plot(images: str, runs: Sequence[RunSeverities], lines: Sequence[EceLine]) -> Plot:
    names = severity_names(runs)
    words = "; ".join(f"{line.label}, {line.way}: {_first_and_last(line)}" for line in lines)
    how = [f"{line.label} {line.way}" for line in lines if line.look == "solid"]
    alternative = f"ECE against severity, with and without recalibration. {words}."
    return Plot(
        ece_chart("recalibrated", names, lines, alternative),
        legend([run.shifted.run for run in runs], {"dashed": _WITHOUT, "solid": "recalibrated"}),
        f"ECE in 15 equal-width bins, {images}. Recalibrated means: {', '.join(how)}.",
        (ece_table(f"ECE with and without recalibration: {images}", names, lines),),
    )


def _first_and_last(line: EceLine) -> str:
    said = [f"{name.lower()} {with_sign(ece)}" for name, ece in line.eces.items()]
    return ", ".join(dict.fromkeys((said[0], said[-1])))


def moves_topic(label: str, found: Recalibrated) -> Topic | None:
    """None where no temperature depends on the image."""
    moves = {name: {one.images: one for one in scaled.moves} for name, scaled in found.ways.items() if scaled.moves}
    if not moves:
        return None
    words = (
        "Here each image has its own temperature. It is lower where the members are surer and more alike. The table "
        "shows means over images: of the temperature, and of the entropy and the disagreement that it follows. "
        "Entropy and disagreement are in % of the largest possible entropy."
        if is_ensemble(found)
        else "Here each image has its own temperature. It is lower where the network is surer. The table shows means "
        "over images: of the temperature, and of the entropy that it follows, in % of the largest possible entropy."
    )
    images = list(next(iter(moves.values())))
    drawn = dict(zip([name for name, moved in moves.items() if list(moved) == images], LINES, strict=False))
    return Topic(
        "Temperatures of the images",
        words=(words,),
        chart=_moves_chart(label, found, moves, drawn),
        legend=tuple((kind, label_of(name, found)) for name, kind in drawn.items()),
    )


def _moves_chart(label: str, found: Recalibrated, moves: _Moves, drawn: Mapping[str, str]) -> Chart:
    lines = [
        Line(label_of(name, found), kind, [one.temperature for one in moves[name].values()])
        for name, kind in drawn.items()
    ]
    ends = "; ".join(
        f"{line.label}: {' to '.join(dict.fromkeys(f'{line.values[i]:.2f}' for i in (0, -1)))}" for line in lines
    )
    return Chart(
        lines_chart(
            "temperatures",
            [images.capitalize() for images in next(iter(moves.values()))],
            lines,
            Scale("mean temperature", False, lambda value: f"{value:.2f}"),
            f"Mean temperature of {label} against severity. {ends}.",
        ),
        f"Mean temperature, {ends}.",
        _moves_table(label, found, moves),
    )


def _moves_table(label: str, found: Recalibrated, moves: _Moves) -> Table:
    several = is_ensemble(found)
    columns = [Column("Images"), Column("Entropy", "%"), *([Column("Disagreement", "%")] if several else [])]
    rows = []
    for images, first in next(iter(moves.values())).items():
        signals = [first.entropy, *([first.disagreement] if several else [])]
        temperatures = [moved[images].temperature if images in moved else None for moved in moves.values()]
        texts = [*map(percent, signals), *(or_dash(lambda value: f"{value:.2f}", one) for one in temperatures)]
        rows.append(plain_row(images.capitalize(), *texts))
    columns += [Column("T", label_of(name, found)) for name in moves]
    return Table(f"{label}: mean temperatures of the images", tuple(columns), tuple(rows))
