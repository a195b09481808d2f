"""Drawings of how the network is built: a BatchEnsemble layer, and stochastic depth."""

import numpy as np
import torch
from numpy.typing import NDArray

from counterpoint.augment.views import branch_factors
from counterpoint.seeding import Stream
from figures.sources import Sources
from figures.svg import Drawing

_CELL = 16
_BELOW = "₁₂"
_ROWS, _COLUMNS = 5, 6
_RATES = (0.0, 0.05, 0.1, 0.15)
_BLOCKS = 9  # of ResNeXt-29

Matrix = NDArray[np.float64]


def batch_ensemble(_: Sources) -> Drawing:
    """The members' weights of one layer: the shared weight times a column and a row of each member's own."""
    drawing = Drawing(620, 330, "Shared weight, times r of a member, times s of a member, gives that member's weight")
    draws = np.random.default_rng(0)
    shared = draws.normal(0, 1, (_ROWS, _COLUMNS))
    drawing.text(156, 28, "shared by all members", "middle strong")
    drawing.text(344, 28, "the member's own", "middle strong")
    drawing.text(540, 28, "the member's weight", "middle strong")
    for row, member in enumerate((1, 2)):
        top = 62 + row * 128
        r, s = draws.normal(1, 0.5, (_ROWS, 1)), draws.normal(1, 0.5, (1, _COLUMNS))
        drawing.text(20, top + 44, f"member {member}")
        _matrix(drawing, shared, 108, top)
        drawing.text(156, top - 8, "W", "middle")
        drawing.text(236, top + 48, "∘", "large middle")
        _matrix(drawing, r, 280, top)
        drawing.text(288, top - 8, f"r{_BELOW[row]}", "middle")
        _matrix(drawing, s, 312, top + 2 * _CELL)
        drawing.text(360, top + 2 * _CELL - 8, f"s{_BELOW[row]}ᵀ", "middle")
        drawing.text(448, top + 48, "=", "large middle")
        _matrix(drawing, shared * (r @ s), 492, top)
        drawing.text(540, top - 8, f"W ∘ r{_BELOW[row]} s{_BELOW[row]}ᵀ", "middle")
    drawing.text(
        20, 308, "Blue is positive, orange negative. W is the same in both rows; only r and s differ.", "small"
    )
    return drawing


def stochastic_depth(_: Sources) -> Drawing:
    """Which of the nine residual blocks one image passes through, for each member, in one step."""
    drawing = Drawing(
        620, 246, "One image passes through nine blocks; members with higher drop rates skip more of them"
    )
    number = torch.tensor([3])
    uniform_ML = torch.cat([Stream(0, "stochastic depth", 0, member).uniform(number, _BLOCKS) for member in range(4)])
    factors_LM = branch_factors(uniform_ML.T[:, :, None], torch.tensor(_RATES)[:, None])[..., 0]
    for row, rate in enumerate(_RATES):
        y = 36 + row * 50
        drawing.text(16, y + 1, f"member {row + 1}", "strong")
        drawing.text(16, y + 17, f"drop rate {rate:g}", "small")
        drawing.arrow(112, y + 4, 604)
        for block in range(_BLOCKS):
            _block(drawing, 130 + block * 51, y, kept=bool(factors_LM[block, row] > 0))
    drawing.text(112, 234, "A filled box is computed. A dashed box is skipped: the image takes the shortcut.", "small")
    return drawing


def _block(drawing: Drawing, left: float, y: float, *, kept: bool) -> None:
    box = drawing.box(left, y - 10, 34, 28, "pale-fill" if kept else "box", rx=4)
    if not kept:
        box.set("stroke-dasharray", "3 3")


def _matrix(drawing: Drawing, values: Matrix, left: float, top: float) -> None:
    """Cells coloured by sign, and more opaque the larger their size."""
    for (i, j), value in np.ndenumerate(values):
        kind = "blue-fill" if value > 0 else "warm-fill"
        cell = drawing.box(left + j * _CELL, top + i * _CELL, _CELL - 1, _CELL - 1, kind)
        cell.set("opacity", f"{min(1.0, 0.08 + abs(value) / 2.2):.2f}")
