import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from counterpoint.corrupt import corrupt
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.noise import shot_noise
from counterpoint.corrupt.pixels import Scale

LEVELS = np.broadcast_to(np.arange(256, dtype=np.uint8)[None, :, None, None], (4, 256, 64, 1)).copy()
SCALE = Scale(256, 64, 32)


@pytest.mark.parametrize(("severity", "photons"), list(enumerate([500, 250, 100, 75, 50], start=1)))
def test_shot_noise_is_the_poisson_quantile_of_the_draw(severity: int, photons: int) -> None:
    draws = Draws(0, "shot_noise", severity, 0, 4)
    u = draws.uniform("noise", 256, 64, 1)
    slow = np.clip(stats.poisson.ppf(u, LEVELS / 255 * photons) / photons, 0, 1) * 255
    fast = shot_noise(LEVELS, draws, SCALE, photons=photons)
    assert np.mean(fast != slow.astype(np.uint8)) < 1e-4  # ppf itself rounds where u falls onto a step


def test_shot_noise_at_the_ends_of_the_uniform_numbers() -> None:
    class Ends(Draws):
        def words(self, purpose: str, *shape: int) -> NDArray[np.uint32]:
            assert purpose == "noise"
            ends = np.where(np.arange(64)[:, None] % 2 == 0, 0, 2**32 - 1).astype(np.uint32)
            return np.broadcast_to(ends, (self.count, *shape))

    noisy = shot_noise(LEVELS, Ends(0, "shot_noise", 5, 0, 4), SCALE, photons=50)[..., 0] / 255
    spread = np.sqrt(LEVELS[..., 0] / 255 / 50)
    level = LEVELS[..., 0] / 255
    assert np.all(noisy[:, 1:, 0::2] < level[:, 1:, 0::2])
    assert np.all(noisy[:, 1:, 1::2] >= np.minimum(1, level + 3 * spread)[:, 1:, 1::2] - 0.02)
    assert np.all(noisy[:, 0] == 0)


@pytest.mark.parametrize(("severity", "sigma"), list(enumerate([0.04, 0.06, 0.08, 0.09, 0.10], start=1)))
def test_gaussian_noise_is_normal(severity: int, sigma: float) -> None:
    grey = np.full((8, 32, 32, 3), 128, np.uint8)
    noise = (corrupt(grey, "gaussian_noise", severity) + 0.5 - 128) / 255
    assert noise.std() == pytest.approx(sigma, rel=0.02)
    assert stats.kstest((noise / sigma).ravel(), "norm").statistic < 0.06  # 8 bits: steps of 0.04 to 0.1 σ


@pytest.mark.parametrize(("severity", "sigma"), list(enumerate([0.06, 0.1, 0.12, 0.16, 0.2], start=1)))
def test_speckle_noise_grows_with_the_value(severity: int, sigma: float) -> None:
    noisy = corrupt(LEVELS[:, 40:120], "speckle_noise", severity) / 255
    spread = noisy.std(axis=(0, 2, 3)) / (np.arange(40, 120) / 255)
    assert spread.mean() == pytest.approx(sigma, rel=0.02)
    assert abs(np.polyfit(np.arange(40, 120), spread, 1)[0]) * 80 < 0.1 * sigma


@pytest.mark.parametrize(("severity", "amount"), list(enumerate([0.01, 0.02, 0.03, 0.05, 0.07], start=1)))
def test_impulse_noise_hits_the_given_share_half_black_half_white(severity: int, amount: float) -> None:
    grey = np.full((60, 32, 32, 3), 128, np.uint8)
    noisy = corrupt(grey, "impulse_noise", severity)
    assert np.mean(noisy == 0) == pytest.approx(amount / 2, rel=0.1)
    assert np.mean(noisy == 255) == pytest.approx(amount / 2, rel=0.1)
    assert set(np.unique(noisy)) == {0, 128, 255}
