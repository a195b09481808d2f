import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from counterpoint.corrupt import SEVERITIES, corrupt
from counterpoint.corrupt.constants import read_table
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import zoom
from counterpoint.corrupt.frost import frost_pictures
from counterpoint.corrupt.pixels import Floats, Images, Scale
from counterpoint.corrupt.weather import _plasma


def slow_plasma(draws: Draws, decay: float) -> Floats:
    """Point by point on a 32×32 map that wraps around."""
    field = np.zeros((draws.count, 32, 32))
    wibble, step = 100.0, 32
    while step >= 2:
        half = step // 2
        noise = draws.uniform(f"wibble {step}", 3, 32 // step, 32 // step, low=-wibble, high=wibble) * wibble
        for kind, (down, right) in enumerate([(half, half), (0, half), (half, 0)]):
            reach = [(-half, -half), (-half, half), (half, -half), (half, half)]
            if kind > 0:
                reach = [(-half, 0), (half, 0), (0, -half), (0, half)]
            for i in range(32 // step):
                for j in range(32 // step):
                    row, column = i * step + down, j * step + right
                    around = [field[:, (row + y) % 32, (column + x) % 32] for y, x in reach]
                    field[:, row, column] = np.mean(around, axis=0) + noise[:, kind, i, j]
        wibble, step = wibble / decay, half
    low, high = (extreme(field, axis=(1, 2), keepdims=True) for extreme in (np.min, np.max))
    return (field - low) / (high - low)


@pytest.mark.parametrize(("severity", "amplitude", "decay"), [(1, 0.2, 3.0), (3, 0.75, 2.5), (5, 1.5, 1.75)])
def test_fog(severity: int, amplitude: float, decay: float, made_up: Images) -> None:
    plasma = slow_plasma(Draws(0, "fog", severity, 0, len(made_up)), decay)
    highest = (made_up / 255).max(axis=(1, 2, 3), keepdims=True)
    slow = (made_up / 255 + amplitude * plasma[..., None]) * highest / (highest + amplitude)
    difference = corrupt(made_up, "fog", severity) - np.floor(np.clip(slow, 0, 1) * 255)
    assert np.abs(difference).max() <= 1


@pytest.mark.parametrize(("decay", "spread"), [(3.0, 0.147), (2.5, 0.151), (2.0, 0.161), (1.75, 0.171)])
def test_fog_has_the_originals_mean_and_spread(decay: float, spread: float) -> None:
    # Private, because in a fogged image the plasma cannot be told from the image.
    plasma = _plasma(Draws(0, "fog", 1, 0, 2000), 32, decay)
    assert plasma.mean() == pytest.approx(0.502, abs=0.01)
    assert plasma.std(axis=(1, 2)).mean() == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(
    ("mean", "sd", "factor", "threshold", "share"),
    [
        (0.1, 0.2, 1, 0.6, 0.0061),
        (0.1, 0.2, 1, 0.5, 0.0225),
        (0.15, 0.3, 1.75, 0.55, 0.0249),
        (0.25, 0.3, 2.25, 0.6, 0.0371),
        (0.3, 0.3, 1.25, 0.65, 0.0422),
    ],
)
def test_snow_has_the_originals_share_of_flakes(
    mean: float, sd: float, factor: float, threshold: float, share: float
) -> None:
    noise = Draws(0, "snow", 1, 0, 2000).normal("flakes", 32, 32, 1, mean=mean, sd=sd)
    assert np.mean(zoom(noise, factor) >= threshold) == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_snow_is_the_same_turned_by_180_degrees(severity: int) -> None:
    black = np.zeros((4, 32, 32, 3), np.uint8)
    snowed = corrupt(black, "snow", severity)
    assert np.array_equal(snowed, snowed[:, ::-1, ::-1])
    blend = [0.95, 0.9, 0.9, 0.85, 0.8][severity - 1]
    assert snowed.min() == int((1 - blend) * 0.5 * 255 + 1e-9)


def test_frost_is_a_crop_of_a_picture(made_up: Images) -> None:
    dark = made_up[:2] // 4
    pictures = frost_pictures(None, Scale(32, 32, 32), read_table("cifar-c"))
    layers = [sliding_window_view(picture, (32, 32), axis=(0, 1)) for picture in pictures]
    part = (..., slice(0, 8), slice(0, 8))  # enough to tell crops apart
    for clean, frosted in zip(dark.transpose(0, 3, 1, 2), corrupt(dark, "frost", 3).transpose(0, 3, 1, 2), strict=True):
        expected = [np.floor(0.9 * clean[part] + 0.4 * 255 * layer[part]) for layer in layers]
        errors = [np.abs(e - frosted[part]).max(axis=(2, 3, 4)) for e in expected]
        assert min(error.min() for error in errors) <= 1
        assert np.mean([np.mean(error > 1) for error in errors]) > 0.99
