"""Every cell of ImageNet-C on a photograph, beside a slow twin with the same draws (benchmarks/corruption_twins.py)."""

from collections.abc import Iterator

import numpy as np
import pytest
from corruption_statistics import photograph_crops
from corruption_twins import SIDE, TWINS, Pair, twin, twin_arguments
from scipy import stats

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, corrupt
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.pixels import Floats, Images

# Where sums are taken in another order, a value next to a whole level is truncated to one or the other. skimage's HSV
# rounds in more places than ours. All other corruptions are equal.
SHARE_ONE_LEVEL_OFF = {
    "defocus_blur": 1e-3,
    "elastic_transform": 1e-3,
    "spatter": 1e-3,
    "brightness": 0.05,
    "saturate": 0.05,
}


class SameDraws(Draws):
    """Our draws, in the forms that the twins ask for."""

    def shifts(self, purpose: str, inner: int, largest: int) -> Iterator[Pair]:
        """From the last pixel to the first."""
        offset_2P = self.integers(purpose, 2, inner, inner, low=-largest, high=largest).reshape(2, -1)
        return iter(offset_2P.T[::-1])

    def poisson(self, purpose: str, expected: Floats) -> Floats:
        return np.asarray(stats.poisson.ppf(self.uniform(purpose, *expected.shape), expected))


@pytest.fixture(scope="module")
def photograph() -> Images:
    return photograph_crops()[5]


def test_every_corruption_has_a_twin() -> None:
    assert tuple(TWINS) == CORRUPTIONS + EXTRA_CORRUPTIONS


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", TWINS)
def test_a_corruption_equals_its_twin(name: str, severity: int, photograph: Images) -> None:
    ours = corrupt(photograph[None], name, severity, seed=2, start=5, frost_dir="texture")[0]
    numbers = SameDraws(seed=2, corruption=name, severity=severity, start=5, count=1)
    slow = twin(photograph, name, numbers, **twin_arguments(name, severity, "texture"))
    difference = np.abs(ours.astype(int) - slow)
    assert difference.max() <= 1
    assert np.mean(difference) <= SHARE_ONE_LEVEL_OFF.get(name, 0)
    assert ours.shape == (SIDE, SIDE, 3)
    assert not np.array_equal(ours, photograph)
