"""Noise: every value of every channel is changed independently."""

import math
from functools import lru_cache

import numpy as np
from scipy.special import pdtr

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.pixels import Floats, Images, Scale, to_bytes, to_unit


def gaussian_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, sigma: float) -> Images:
    return to_bytes(to_unit(images_NHWC) + draws.normal("noise", *images_NHWC.shape[1:], sd=sigma))


def speckle_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, sigma: float) -> Images:
    return to_bytes(to_unit(images_NHWC) * draws.normal("noise", *images_NHWC.shape[1:], mean=1.0, sd=sigma))


def shot_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, photons: int) -> Images:
    """Poisson(x · photons) / photons, by looking up the quantile of a uniform number."""
    steps, values = _poisson_quantiles(photons)
    u_NHWC = draws.uniform("noise", *images_NHWC.shape[1:])
    return values[np.searchsorted(steps, images_NHWC + u_NHWC)]


def impulse_noise(images_NHWC: Images, draws: Draws, _scale: Scale, *, amount: float) -> Images:
    """Half of the hit values become 0, half 255."""
    u_NHWC = draws.uniform("noise", *images_NHWC.shape[1:])
    salted = np.where(u_NHWC < amount, np.uint8(255), images_NHWC)
    return np.where(u_NHWC < amount / 2, np.uint8(0), salted)


@lru_cache(maxsize=8)
def _poisson_quantiles(photons: int) -> tuple[Floats, Images]:
    """The distribution functions of the 256 levels one after the other, and the byte that each count k becomes.

    Level l's function has the values l + P(count ≤ k). Searching for l + u in all of them is then inverse transform
    sampling for all levels at once. Counts that no 32-bit uniform number reaches are left out, so each function ends at
    l + 1.
    """
    finest = 2.0**-33
    level_L1 = np.arange(256)[:, None]
    count_K = np.arange(photons + 10 * math.isqrt(photons) + 20)
    cumulative_LK = pdtr(count_K, level_L1 / 255 * photons)
    cumulative_LK[cumulative_LK >= 1 - finest] = 1
    before_LK = np.pad(cumulative_LK, ((0, 0), (1, 0)))[:, :-1]
    reached = (cumulative_LK >= finest) & (before_LK < 1)
    values_LK = np.broadcast_to(to_bytes(count_K / photons), reached.shape)
    return (level_L1 + cumulative_LK)[reached], values_LK[reached]
