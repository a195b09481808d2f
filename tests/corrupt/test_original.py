"""Our corruptions against those of the original generator.

original_tiles.png: CIFAR-10 test images 0 and 3 (two columns per severity: clean, 1, … 5), a row per corruption
of `TILES`.
original_statistics.json and original_statistics_224.json say themselves what they hold.
"""

from pathlib import Path

import numpy as np
import pytest
from corruption_statistics import deviations, photograph_crops
from PIL import Image

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, corrupt
from counterpoint.corrupt.filters import blur_along
from counterpoint.corrupt.pixels import Images
from tests.corrupt.images import DETERMINISTIC

HERE = Path(__file__).parent
TILES = (*DETERMINISTIC, "motion_blur")
MOTION = [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)]


def tiles(name: str) -> Images:
    """(clean and 5 severities, 2 images, 32, 32, 3)"""
    sheet = np.asarray(Image.open(HERE / "original_tiles.png")).reshape(len(TILES), 32, 6, 2, 32, 3)
    return sheet[TILES.index(name)].transpose(1, 2, 0, 3, 4)


@pytest.mark.parametrize("name", TILES[:-1])
def test_deterministic_corruptions_agree_pixel_by_pixel(name: str) -> None:
    clean, *corrupted = tiles(name)
    for severity, expected in zip(SEVERITIES, corrupted, strict=True):
        difference = np.abs(corrupt(clean, name, severity).astype(int) - expected)
        assert difference.max() <= 1
        # Brightness and saturation compute HSV differently from the original; the others are exact.
        assert np.mean(difference) < (0.03 if name in ("brightness", "saturate") else 1e-9)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_motion_blur_agrees_for_the_angle_that_was_drawn(severity: int) -> None:
    angles = np.arange(-45, 45, 0.25)
    for clean, expected in zip(*tiles("motion_blur")[[0, severity]], strict=True):
        candidates = blur_along(np.tile(clean, (len(angles), 1, 1, 1)), angles, *MOTION[severity - 1])
        assert np.any(np.all(candidates == expected, axis=(1, 2, 3)))


@pytest.mark.parametrize("name", CORRUPTIONS + EXTRA_CORRUPTIONS)
def test_statistics_agree(name: str, cifar: Images, photographs: Path) -> None:
    for severity in SEVERITIES:
        for deviation in deviations(cifar, name, severity, seeds=1, frost_dir=photographs):
            assert deviation.of_tolerance <= 1, deviation


@pytest.fixture(scope="module")
def crops() -> Images:
    return photograph_crops()


@pytest.mark.parametrize("name", CORRUPTIONS + EXTRA_CORRUPTIONS)
def test_statistics_agree_for_photographs(name: str, crops: Images, request: pytest.FixtureRequest) -> None:
    frost_dir = request.getfixturevalue("photographs") if name == "frost" else None
    for severity in SEVERITIES:
        for deviation in deviations(crops, name, severity, seeds=1, frost_dir=frost_dir):
            assert deviation.of_tolerance <= 1, deviation
