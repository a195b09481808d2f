"""The parts of the water's shading beside slow ones; the whole is compared with the original's statistics elsewhere.

They are private; each is one of OpenCV's algorithms, whose errors could not be traced in the shading made of them.
"""

from collections import deque

import numpy as np
import pytest
from numpy.typing import NDArray

from counterpoint.corrupt import corrupt
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import blur
from counterpoint.corrupt.pixels import Images, to_bytes
from counterpoint.corrupt.spatter import _canny, _chamfer_distance, _equalize

Mask = NDArray[np.bool_]


@pytest.fixture(scope="module")
def drops() -> Images:
    """Four layers of liquid at severity 3, and an empty one."""
    liquid = blur(Draws(0, "spatter", 3, 0, 5).normal("liquid", 32, 32, 1, mean=0.65, sd=0.3), 1.0)
    liquid[liquid < 0.69] = 0
    liquid[4] = 0
    return to_bytes(liquid)[..., 0]


def slow_canny(image: Images) -> Mask:
    padded = np.pad(image.astype(int), 1, mode="edge")
    strength, direction = np.zeros((34, 34), int), np.empty((34, 34), object)
    for row in range(1, 33):
        for column in range(1, 33):
            block = padded[row - 1 : row + 2, column - 1 : column + 2]
            dx = int((block[:, 2] - block[:, 0]) @ [1, 2, 1])
            dy = int((block[2] - block[0]) @ [1, 2, 1])
            strength[row, column] = abs(dx) + abs(dy)
            angle = np.degrees(np.arctan2(abs(dy), abs(dx)))
            if angle < 22.5:
                direction[row, column] = (0, 1)
            elif angle > 67.5:
                direction[row, column] = (1, 0)
            else:
                direction[row, column] = (1, 1) if (dx < 0) == (dy < 0) else (1, -1)
    edge = np.zeros((34, 34), bool)
    for row in range(1, 33):
        for column in range(1, 33):
            down, right = direction[row, column]
            here, before, after = (strength[row + s * down, column + s * right] for s in (0, -1, 1))
            diagonal = down != 0 and right != 0
            edge[row, column] = here > 50 and here > before and (here > after or (here == after and not diagonal))
    strong = edge & (strength > 150)
    waiting = deque(zip(*np.nonzero(strong), strict=True))
    while waiting:
        row, column = waiting.popleft()
        for r in (row - 1, row, row + 1):
            for c in (column - 1, column, column + 1):
                if edge[r, c] and not strong[r, c]:
                    strong[r, c] = True
                    waiting.append((r, c))
    return strong[1:33, 1:33]


def test_canny(drops: Images) -> None:
    edges = _canny(drops)
    assert 0.05 < edges[:4].mean() < 0.5
    assert np.array_equal(edges, np.stack([slow_canny(image) for image in drops]))


def test_chamfer_distance(drops: Images) -> None:
    """The shortest path of straight, diagonal and knight's steps, to whichever edge is nearest."""
    edges = _canny(drops)
    fast = _chamfer_distance(~edges)
    assert np.all(np.isinf(fast[4]))
    steps = [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.4), (1, 2, 2.1969), (2, 1, 2.1969)]
    slow = np.where(edges[:4], 0, np.inf)
    for _ in range(32):
        padded = np.pad(slow, ((0, 0), (2, 2), (2, 2)), constant_values=np.inf)
        for down, right, length in steps:
            for y, x in ((down, right), (down, -right), (-down, right), (-down, -right)):
                slow = np.minimum(slow, padded[:, 2 + y : 34 + y, 2 + x : 34 + x] + length)
    # The fast one measures to the nearest edge in the Euclidean sense, a little farther now and then.
    assert np.all(fast[:4] >= slow - 1e-9)
    assert np.mean(fast[:4] > slow + 1e-9) < 0.02
    assert np.max(fast[:4] - slow) < 0.1


def test_chamfer_distance_without_any_edge() -> None:
    assert np.all(np.isinf(_chamfer_distance(np.ones((2, 8, 8), bool))))


def test_equalize() -> None:
    images = np.random.default_rng(0).integers(3, 9, (3, 10, 10)).astype(np.uint8)
    images[2] = 7
    for image, fast in zip(images, _equalize(images), strict=True):
        lowest = np.sum(image == image.min())
        for level in np.unique(image):
            above = np.sum(image <= level) - lowest
            expected = level if lowest == 100 else round(above * 255 / (100 - lowest))
            assert set(fast[image == level]) == {expected}


@pytest.mark.parametrize(("severity", "coverage"), list(enumerate([0.026, 0.066, 0.186, 0.041, 0.069], start=1)))
def test_the_originals_share_of_pixels_is_covered(severity: int, coverage: float) -> None:
    grey = np.full((800, 32, 32, 1), 100, np.uint8)
    assert np.mean(corrupt(grey, "spatter", severity) != grey) == pytest.approx(coverage, rel=0.05)


def test_mud_is_brown_and_water_pale() -> None:
    grey = np.full((20, 32, 32, 3), 100, np.uint8)
    mud = corrupt(grey, "spatter", 5)
    assert mud.reshape(-1, 3).min(axis=0).tolist() == pytest.approx([63, 42, 20], abs=3)
    water = corrupt(grey, "spatter", 3)
    assert water.min() == 100
    assert (water.reshape(-1, 3).max(axis=0) - 100).tolist() == pytest.approx([87, 119, 119], abs=2)
