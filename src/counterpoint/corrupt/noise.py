"""Noise: every value of every channel is changed independently."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtri, pdtr

from counterpoint.corrupt.draws import Draws, unit_uniform
from counterpoint.corrupt.pixels import Floats, Images, Scale, to_bytes, to_unit
from counterpoint.corrupt.quantiles import Quantiles, tabulate

_INTERVALS = 1 << 16
_MARGIN = 2e-6  # more than the rounding errors of single precision


def gaussian_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, sigma: float) -> Images:
    return _with_normal(images_NHWC, draws, 0.0, sigma, np.add)


def speckle_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, sigma: float) -> Images:
    return _with_normal(images_NHWC, draws, 1.0, sigma, np.multiply)


def _with_normal(
    images_NHWC: Images, draws: Draws, mean: float, sd: float, combine: Callable[[Floats, Floats], Floats]
) -> Images:
    """The bytes of combine(x, mean + sd · z), where z is the normal quantile of the word that was drawn.

    Computing the quantile is slow. The word's first bits already say between which two numbers z lies. If both numbers
    give the same byte, z gives it too, because `combine` grows with z. Only for the other words the quantile is
    computed.
    """
    word_NHWC = draws.words("noise", *images_NHWC.shape[1:])
    interval_NHWC = word_NHWC >> np.uint32(16)
    x_NHWC = images_NHWC / np.float32(255)
    low, high = (to_bytes(combine(x_NHWC, end.take(interval_NHWC))) for end in _interval_ends(mean, sd))
    open_ = np.nonzero(low != high)
    exact = mean + sd * ndtri(unit_uniform(word_NHWC[open_]))
    low[open_] = to_bytes(combine(to_unit(images_NHWC[open_]), exact))
    return low


@lru_cache(maxsize=8)
def _interval_ends(mean: float, sd: float) -> tuple[Floats, Floats]:
    """Between which numbers mean + sd · z lies for each beginning of a word."""
    uniform = np.clip(np.arange(_INTERVALS + 1) / _INTERVALS, 2.0**-34, 1 - 2.0**-34)
    end = mean + sd * ndtri(uniform)
    return (end[:-1] - _MARGIN).astype(np.float32), (end[1:] + _MARGIN).astype(np.float32)


def shot_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, photons: int) -> Images:
    """Poisson(x · photons) / photons."""
    return _poisson_quantiles(photons).look_up(images_NHWC, draws.words("noise", *images_NHWC.shape[1:]))


@lru_cache(maxsize=8)
def _poisson_quantiles(photons: int) -> Quantiles:
    count_K = np.arange(photons + 10 * math.isqrt(photons) + 20)
    cumulative_LK = pdtr(count_K, np.arange(256)[:, None] / 255 * photons)
    return tabulate(cumulative_LK, to_bytes(count_K / photons))


def impulse_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, amount: float) -> Images:
    """Half of the hit values become 0, half 255."""
    word_NHWC = draws.words("noise", *images_NHWC.shape[1:])
    half, whole = (np.uint32(math.ceil(share * 2**32 - 0.5)) for share in (amount / 2, amount))
    salted = np.where(word_NHWC < whole, np.uint8(255), images_NHWC)
    return np.where(word_NHWC < half, np.uint8(0), salted)
