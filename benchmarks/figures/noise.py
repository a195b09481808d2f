"""The ECE that a perfectly calibrated model shows, against the number of images it is measured on."""

import numpy as np
from numpy.typing import NDArray

from counterpoint.metrics import ece
from counterpoint.metrics.calibration import Binning
from figures.axes import Axes
from figures.sources import Sources, corrupted_probs
from figures.svg import Drawing

SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
_SIMULATIONS = 100
_EXAMPLES = {450: "450: the digits", 5_000: "5,000: CIFAR's validation images"}

Floats = NDArray[np.float64]


def perfect_eces(
    confidence_N: Floats, images: int, binning: Binning, simulations: int, draws: np.random.Generator
) -> Floats:
    """The ECE of each simulation: confidences drawn from the given ones, each right with exactly that chance."""
    found = []
    for _ in range(simulations):
        drawn_N = draws.choice(confidence_N, images)
        found.append(ece(drawn_N, draws.random(images) < drawn_N, binning=binning))
    return np.array(found)


def noise_floor(sources: Sources) -> Drawing:
    """The mean over simulations as a line, and 95 % of them as a band, for both kinds of bins."""
    confidence_N = corrupted_probs(sources.ensemble).probs_MNK.mean(axis=0).max(axis=1)
    drawing = Drawing(620, 370, "The ECE of a perfectly calibrated model falls with the number of images")
    axes = Axes(52, 50, 470, 260, (SIZES[0], SIZES[-1]), (0, 0.12), log=True)
    marks = {float(size): f"{size:,}" for size in SIZES if str(size)[0] in "15"}
    axes.draw(drawing, marks, {v / 100: str(v) for v in (0, 2, 4, 6, 8, 10, 12)}, "images", "ECE, % (true value: 0)")
    kinds: tuple[tuple[Binning, str, str, str], ...] = (
        ("width", "equal-width bins", "warm", "warm-band"),
        ("mass", "equal-mass bins", "blue", "band"),
    )
    lines = []
    for binning, words, stroke, fill in kinds:
        draws = np.random.default_rng(0)
        eces_SR = np.stack([perfect_eces(confidence_N, size, binning, _SIMULATIONS, draws) for size in SIZES])
        low_S, high_S = np.quantile(eces_SR, (0.025, 0.975), axis=1)
        drawing.path(_points(axes, high_S) + _points(axes, low_S)[::-1], fill, closed=True)
        lines.append((_points(axes, eces_SR.mean(axis=1)), f"{stroke} thick"))
        drawing.text(392, 84 if binning == "width" else 104, words, f"{stroke}-text strong")
    for points, kind in lines:  # above both bands
        drawing.path(points, kind)
    for size, words in _EXAMPLES.items():
        x, top = axes.place(size, 0.058)
        drawing.line(x, top, x, axes.top + axes.height, "dashed")
        drawing.text(x, top - 8, words, "small middle")
    return drawing


def _points(axes: Axes, values_S: Floats) -> list[tuple[float, float]]:
    return [axes.place(size, float(value)) for size, value in zip(SIZES, values_S, strict=True)]
