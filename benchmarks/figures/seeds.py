"""How far two seeds of one network differ under each corruption, from the committed results on CIFAR-100-C."""

from collections.abc import Sequence

import numpy as np

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.rows import RowRun, read_result
from figures.axes import Axes
from figures.sources import Sources
from figures.svg import Drawing

_PANELS = {"cifar100/single": "without AugMix", "cifar100/single-am-bern-0.875": "with AugMix"}
_SEEDS = {0: ("blue-fill", "seed 0"), 1: ("warm-fill", "seed 1")}
_ROW = 20


def seeds(sources: Sources) -> Drawing:
    """A dot for the ECE of each seed, and a line between the two: the mean over the five severities."""
    drawing = Drawing(680, 400, "ECE of two seeds of a single network under each corruption, with and without AugMix")
    height = _ROW * len(CORRUPTIONS)
    for left, (row, words) in zip((150, 420), _PANELS.items(), strict=True):
        axes = Axes(left, 54, 240, height, (0, 0.5), (0, len(CORRUPTIONS)))
        axes.draw(drawing, {value / 100: str(value) for value in range(0, 51, 10)}, {}, "ECE, %", "")
        drawing.text(left, 34, words, "strong")
        eces_SC = np.array([corruption_eces(sources, row, seed) for seed in _SEEDS])
        for place, eces_S in enumerate(eces_SC.T):
            _pair(drawing, axes, place, eces_S)
    for place, name in enumerate(CORRUPTIONS):
        drawing.text(140, 54 + _ROW * (place + 0.5) + 4, _in_words(name), "small end")
    for x, (kind, words) in zip((540, 610), _SEEDS.values(), strict=True):
        drawing.dot(x, 30, 5, kind)
        drawing.text(x + 10, 34, words, "small")
    return drawing


def corruption_eces(sources: Sources, row: str, seed: int) -> Sequence[float]:
    """A run's ECE under each corruption: the mean of its five cells."""
    result = read_result(sources.results, RowRun(row, find_schedule("paper"), seed))
    if result is None or result.corrupted is None:
        raise ValueError(f"there is no result of {row}, seed {seed}, on corrupted images in {sources.results}")
    cells = result.corrupted.cells
    return [float(np.mean([cell.ensemble.ece_width15 for cell in cells[name]])) for name in CORRUPTIONS]


def _pair(drawing: Drawing, axes: Axes, place: int, eces_S: Sequence[float]) -> None:
    _, y = axes.place(0, len(CORRUPTIONS) - place - 0.5)
    drawing.line(axes.left, y, axes.left + axes.width, y)
    xs = [axes.place(ece, 0)[0] for ece in eces_S]
    drawing.line(xs[0], y, xs[1], y, "quiet")
    for x, (kind, _) in zip(xs, _SEEDS.values(), strict=True):
        drawing.dot(x, y, 5, kind)


def _in_words(corruption: str) -> str:
    return corruption.replace("_", " ").replace("jpeg", "JPEG").replace("gaussian", "Gaussian")
