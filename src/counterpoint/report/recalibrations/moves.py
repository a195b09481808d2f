"""How temperatures that depend on the image move with the images."""

from collections.abc import Mapping

from counterpoint.records.recalibrated import Moved, Recalibrated
from counterpoint.report.drawing.plots import Line, Scale, lines_chart
from counterpoint.report.recalibrations import Topic
from counterpoint.report.recalibrations.words import LINES, is_ensemble, label_of
from counterpoint.report.section import Chart
from counterpoint.report.tables import Column, Table, or_dash, percent, plain_row

_Moves = dict[str, dict[str, Moved]]
"""Of each recalibration: its temperature and the signals on each set of images."""


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
        chart=_chart(label, found, moves, drawn),
        legend=tuple((kind, label_of(name, found)) for name, kind in drawn.items()),
    )


def _chart(label: str, found: Recalibrated, moves: _Moves, drawn: Mapping[str, str]) -> Chart:
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
        _table(label, found, moves),
    )


def _table(label: str, found: Recalibrated, moves: _Moves) -> Table:
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
