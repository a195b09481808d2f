"""The ECE of some of the paper's rows under each corruption, from the committed results on CIFAR-100-C.

`seeds` shows how far two seeds of one network differ, `ensembles` what each part of an ensemble adds.
"""

from collections.abc import Sequence

import numpy as np

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.rows import RowRun, read_result
from figures.axes import Axes
from figures.sources import Sources
from figures.svg import Drawing

_PANELS = {"cifar100/single": "without AugMix", "cifar100/single-am-bern-0.875": "with AugMix"}
_RING = "ring"
_SEEDS = {0: ("blue-fill", "seed 0"), 1: ("warm-fill", "seed 1")}
_ENSEMBLES = {
    "cifar100/single": ((0, 1), "pale-fill", "single network, two seeds"),
    "cifar100/batch-ensemble": ((0,), "blue-fill", "BatchEnsemble"),
    "cifar100/be+sd": ((0,), _RING, "with diverse stochastic depth"),
    "cifar100/be+sd-not-diverse": ((0,), "warm-fill", "with one drop rate"),
}
"""The seeds of each row, the colour of its dots, and what it is called."""
_ROW = 20


def seeds(sources: Sources) -> Drawing:
    """A dot for the ECE of each seed, and a line between the two: the mean over the five severities."""
    drawing = Drawing(680, 400, "ECE of two seeds of a single network under each corruption, with and without AugMix")
    for left, (row, words) in zip((150, 420), _PANELS.items(), strict=True):
        axes = _axes(drawing, left, 240, most=50)
        drawing.text(left, 34, words, "strong")
        eces_SC = np.array([corruption_eces(sources, row, seed) for seed in _SEEDS])
        _dots(drawing, axes, eces_SC, [kind for kind, _ in _SEEDS.values()])
    _name_rows(drawing)
    for x, (kind, words) in zip((540, 610), _SEEDS.values(), strict=True):
        drawing.dot(x, 30, 5, kind)
        drawing.text(x + 10, 34, words, "small")
    return drawing


def ensembles(sources: Sources) -> Drawing:
    """A dot for the ECE of each run, and a line from the lowest to the highest: the mean over the five severities."""
    drawing = Drawing(680, 400, "ECE of a single network and of three BatchEnsembles under each corruption")
    axes = _axes(drawing, 150, 510, most=65)
    runs = [(row, seed, kind) for row, (row_seeds, kind, _) in _ENSEMBLES.items() for seed in row_seeds]
    eces_SC = np.array([corruption_eces(sources, row, seed) for row, seed, _ in runs])
    _dots(drawing, axes, eces_SC, [kind for _, _, kind in runs])
    _name_rows(drawing)
    for x, (_, kind, words) in zip((36, 216, 338, 542), _ENSEMBLES.values(), strict=True):
        _dot(drawing, x, 26, kind)
        drawing.text(x + 10, 30, words, "small")
    return drawing


def corruption_eces(sources: Sources, row: str, seed: int) -> Sequence[float]:
    """A run's ECE under each corruption: the mean of its five cells."""
    result = read_result(sources.results, RowRun(row, find_schedule("paper"), seed))
    if result is None or result.corrupted is None:
        raise ValueError(f"there is no result of {row}, seed {seed}, on corrupted images in {sources.results}")
    cells = result.corrupted.cells
    return [float(np.mean([cell.ensemble.ece_width15 for cell in cells[name]])) for name in CORRUPTIONS]


def _axes(drawing: Drawing, left: float, width: float, most: int) -> Axes:
    axes = Axes(left, 54, width, _ROW * len(CORRUPTIONS), (0, most / 100), (0, len(CORRUPTIONS)))
    axes.draw(drawing, {value / 100: str(value) for value in range(0, most + 1, 10)}, {}, "ECE, %", "")
    return axes


def _dots(drawing: Drawing, axes: Axes, eces_SC: np.ndarray, kinds: Sequence[str]) -> None:
    """Of each corruption, a dot per run on a line through them."""
    for place, eces_S in enumerate(eces_SC.T):
        _, y = axes.place(0, len(CORRUPTIONS) - place - 0.5)
        drawing.line(axes.left, y, axes.left + axes.width, y)
        xs = [axes.place(ece, 0)[0] for ece in eces_S]
        drawing.line(min(xs), y, max(xs), y, "quiet")
        for x, kind in zip(xs, kinds, strict=True):
            _dot(drawing, x, y, kind)


def _dot(drawing: Drawing, x: float, y: float, kind: str) -> None:
    drawing.dot(x, y, 5, "warm-fill" if kind == _RING else kind)
    if kind == _RING:
        drawing.dot(x, y, 3, "page")


def _name_rows(drawing: Drawing) -> None:
    for place, name in enumerate(CORRUPTIONS):
        drawing.text(140, 54 + _ROW * (place + 0.5) + 4, _in_words(name), "small end")


def _in_words(corruption: str) -> str:
    return corruption.replace("_", " ").replace("jpeg", "JPEG").replace("gaussian", "Gaussian")
