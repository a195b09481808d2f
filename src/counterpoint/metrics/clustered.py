"""How a plug-in calibration error scatters over samples of images with all their rows, and with another run's.

A row is an image in one cell; an image's rows are not independent, so their sums over each image are what counts. Where
images belong together, it is their sums over each group.

A population is given by its true surplus_B: gap times share of each bin. The surpluses of a sample scatter around it
normally, with the covariance that the images' own sums show; so an image's rows may depend on each other in any way,
and so may the two runs. The error is the mean over the corruptions.

Shapes: N images, or groups of them; C corruptions (1 for a clean set); B bins that hold a row, those of all corruptions
one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import get_args

import numpy as np
from scipy.special import ndtr

from counterpoint.metrics.calibration import Binning, reliability_bins
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.groups import Groups, moved_by, require_enough, tail_of
from counterpoint.metrics.intervals import TAIL, Scatter
from counterpoint.metrics.scores import Grid, ImageScores, groups_of_cells, images_of_cells, join_scores

# A bin without scatter would leave nothing to divide by; this is the scatter of one image that is 1 % off.
_LEAST_SURPLUS = 0.01


@dataclass(frozen=True, eq=False)
class ImageSums:
    """Each image's sums, and their means over images. The rows that an image has in one corruption weigh 1 together.

    So the mean surplus of a bin is its gap times its share of the rows: a corruption's plug-in ECE is the sum of
    |surplus_B| over its bins, and its squared ECE-rms the sum of surplus_B² / share_B.
    """

    surplus_B: Floats  # of correct − confidence
    share_B: Floats  # of rows
    confidence_B: Floats
    corruption_BC: Floats  # 1 where the bin is the corruption's, else 0
    noise_ND: Floats
    """D = 2 · B: what each image, or group, moves the means of surplus and share by. For an image these are its own,
    less the means, over √(N · (N − 1))."""
    images: int
    draws: float
    """How many independent images tell as much about errors as these do."""
    groups: Groups | None

    @property
    def tail(self) -> float:
        """What an interval leaves out on each side of a normal variable. Few groups do not show the scatter well."""
        return TAIL if self.groups is None else tail_of(len(self.groups))

    @property
    def corruptions(self) -> int:
        return self.corruption_BC.shape[1]

    @cached_property
    def own_covariance(self) -> Floats:
        return self.covariance(self)

    def covariance(self, other: "ImageSums") -> Floats:
        """The covariance of (surplus_B, share_B) with the other run's, over samples of images with all their rows."""
        return self.noise_ND.T @ other.noise_ND


def image_sums(grid: Grid, bins: int, binning: Binning) -> ImageSums:
    """The severities of a corruption share their bins, those of `reliability_bins` on all of them."""
    images, groups = images_of_cells(grid), groups_of_cells(grid)
    require_enough(groups)
    parts = [_of_corruption(severities, bins, binning) for severities in grid.values()]
    surplus_NB, share_NB, confidence_NB = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    corruption = np.repeat(np.arange(len(parts)), [part[0].shape[1] for part in parts])
    sums_ND = np.concatenate((surplus_NB, share_NB), axis=1)
    if groups is None:
        noise_ND, draws = (sums_ND - sums_ND.mean(axis=0)) / np.sqrt(images * max(images - 1, 1)), float(images)
    else:
        wrong_N = np.mean([~cell.correct for severities in grid.values() for cell in severities], axis=0)
        noise_ND = moved_by(groups.sums(sums_ND), groups.sizes_G)
        draws = images / groups.images_per_draw_of_errors(wrong_N)
    return ImageSums(
        surplus_B=surplus_NB.mean(axis=0),
        share_B=share_NB.mean(axis=0),
        confidence_B=confidence_NB.mean(axis=0),
        corruption_BC=np.eye(len(parts))[corruption],
        noise_ND=noise_ND,
        images=images,
        draws=draws,
        groups=groups,
    )


def _of_corruption(severities: Sequence[ImageScores], bins: int, binning: Binning) -> tuple[Floats, Floats, Floats]:
    rows, images = join_scores(severities), len(severities[0])
    table = reliability_bins(rows.confidence, rows.correct, bins, binning)
    filled, confidence = len(table.count), np.minimum(rows.confidence, 1.0)
    cell = np.tile(np.arange(images), len(severities)) * filled + np.searchsorted(table.high, confidence, side="left")

    def summed(values: Floats) -> Floats:
        return np.bincount(cell, values, minlength=images * filled).reshape(images, filled) / len(severities)

    return summed(rows.correct - confidence), summed(np.ones(len(cell))), summed(confidence)


@dataclass(frozen=True, eq=False)
class _OfRun:
    sums: ImageSums

    @cached_property
    def deviation(self) -> Floats:
        """The standard deviation of each bin's surplus."""
        variance_B = np.diag(self.sums.own_covariance)[: len(self.sums.surplus_B)]
        return np.sqrt(np.maximum(variance_B, (_LEAST_SURPLUS / self.sums.draws) ** 2))

    @cached_property
    def correlation(self) -> Floats:
        """Between the bins' surpluses."""
        bins = len(self.sums.surplus_B)
        return self.sums.own_covariance[:bins, :bins] / np.outer(self.deviation, self.deviation)

    def may_come_from(self, surplus_B: Floats) -> bool:
        """Whether Σ (surplus / deviation)² is within three standard deviations of its mean in this population: the sum
        tells whether the gaps are as uneven."""
        seen, true = self.sums.surplus_B / self.deviation, surplus_B / self.deviation
        variance = 2 * np.sum(self.correlation**2) + 4 * true @ self.correlation @ true
        return bool(abs(seen @ seen - true @ true - len(true)) <= 3 * np.sqrt(variance))

    def by_corruption(self, values_B: Floats) -> Floats:
        return values_B @ self.sums.corruption_BC


class Ece(_OfRun):
    """Σ |surplus| over the bins. Sizes of normal variables are folded normal, and dependent through all their powers:
    by Mehler's formula Cov(|x|, |y|) is Σ a_k · b_k · correlation^k / k!, with a_k and b_k their Hermite coefficients.
    """

    _POWERS = (1, 2, 3, 4)

    @property
    def observed(self) -> float:
        return float(np.abs(self.sums.surplus_B).sum() / self.sums.corruptions)

    def scatter(self, surplus_B: Floats) -> Scatter:
        deviation, t = self.deviation, surplus_B / self.deviation
        mean_B = deviation * (2 * _density(t) + t * (2 * ndtr(t) - 1))
        variance = float(np.maximum(deviation**2 + surplus_B**2 - mean_B**2, 0).sum())  # a bin with itself: exact
        for k, a in zip(self._POWERS, self._coefficients(surplus_B), strict=True):
            variance += float(a @ self._between_bins[k - 1] @ a) / factorial(k)
        truth = np.abs(surplus_B).sum() / self.sums.corruptions
        return Scatter(
            float(truth), float(mean_B.sum() / self.sums.corruptions), max(variance, 0.0) / self.sums.corruptions**2
        )

    def covariance(self, other: "Ece", surplus_B: Floats, other_surplus_B: Floats) -> float:
        """Of the two runs' plug-in values, each at its population."""
        bins, other_bins = len(surplus_B), len(other_surplus_B)
        between = self.sums.covariance(other.sums)[:bins, :other_bins]
        between /= np.outer(self.deviation, other.deviation)
        both = zip(self._coefficients(surplus_B), other._coefficients(other_surplus_B), strict=True)
        terms = (a @ between**k @ b / factorial(k) for k, (a, b) in zip(self._POWERS, both, strict=True))
        return float(sum(terms)) / self.sums.corruptions**2

    def influence(self, surplus_B: Floats) -> Floats:
        """What each image, or group, adds to the plug-in value at this population, to first order. The sum over them of
        one run's times another's is the first term of `covariance`; the terms that are left out cannot be told from one
        run alone."""
        slope_B = 2 * ndtr(surplus_B / self.deviation) - 1
        return self.sums.noise_ND[:, : len(slope_B)] @ slope_B / self.sums.corruptions

    @cached_property
    def _between_bins(self) -> list[Floats]:
        """The powers of the correlations, without those of a bin with itself."""
        correlation = self.correlation.copy()
        np.fill_diagonal(correlation, 0.0)
        return [correlation**k for k in self._POWERS]

    def _coefficients(self, surplus_B: Floats) -> list[Floats]:
        t = surplus_B / self.deviation
        density = 2 * _density(t)
        hermite = (2 * ndtr(t) - 1, density, -t * density, (t**2 - 1) * density)
        return [self.deviation * a for a in hermite]


class EceRms(_OfRun):
    """The root of Σ surplus² / share of each corruption. The sum's mean and variance are exact but for the shares'
    part in the noise term; its root is taken as smooth."""

    @property
    def observed(self) -> float:
        sums = self.sums
        return float(np.sqrt(self.by_corruption(sums.surplus_B**2 / sums.share_B)).mean())

    def scatter(self, surplus_B: Floats) -> Scatter:
        truth_C, mean_C = self._squares(surplus_B)
        linear_DC = self._linear(surplus_B)
        covariance_CC = linear_DC.T @ self.sums.own_covariance @ linear_DC + self._own_noise
        # The mean of a root is the root of the mean square less the variance.
        root_C = np.sqrt(np.maximum(mean_C - np.diag(covariance_CC) / (4 * mean_C), truth_C))
        slope_C = self._slope(mean_C)
        return Scatter(float(np.sqrt(truth_C).mean()), float(root_C.mean()), float(slope_C @ covariance_CC @ slope_C))

    def covariance(self, other: "EceRms", surplus_B: Floats, other_surplus_B: Floats) -> float:
        """Of the two runs' plug-in values, each at its population."""
        between = self.sums.covariance(other.sums)
        covariance_CC = self._linear(surplus_B).T @ between @ other._linear(other_surplus_B)
        covariance_CC += self._of_noise(other, between)
        slopes = (run._slope(run._squares(at)[1]) for run, at in ((self, surplus_B), (other, other_surplus_B)))
        one_C, other_C = slopes
        return float(one_C @ covariance_CC @ other_C)

    def influence(self, surplus_B: Floats) -> Floats:
        """As for `Ece`: `covariance` without its noise term."""
        _, mean_C = self._squares(surplus_B)
        return self.sums.noise_ND @ (self._linear(surplus_B) @ self._slope(mean_C))

    @cached_property
    def _own_noise(self) -> Floats:
        return self._of_noise(self, self.sums.own_covariance)

    def _of_noise(self, other: "EceRms", between: Floats) -> Floats:
        """The covariance of the squares of two normal variables of mean 0 is twice their squared covariance."""
        share, other_share = self.sums.share_B, other.sums.share_B
        noise = 2 * between[: len(share), : len(other_share)] ** 2 / np.outer(share, other_share)
        return self.sums.corruption_BC.T @ noise @ other.sums.corruption_BC

    def _squares(self, surplus_B: Floats) -> tuple[Floats, Floats]:
        """Each corruption's true squared error, and the mean of the plug-in value."""
        share = self.sums.share_B
        truth_C = self.by_corruption(surplus_B**2 / share)
        return truth_C, truth_C + self.by_corruption(self.deviation**2 / share)

    def _linear(self, surplus_B: Floats) -> Floats:
        """What a little more surplus and a little more share in a bin add to its corruption's squared error."""
        gap = (surplus_B / self.sums.share_B)[:, None]
        return np.concatenate((2 * gap * self.sums.corruption_BC, -(gap**2) * self.sums.corruption_BC))

    def _slope(self, mean_C: Floats) -> Floats:
        return 1 / (2 * np.sqrt(mean_C) * self.sums.corruptions)


def calibration_errors(grid: Grid, bins: int) -> dict[str, Ece | EceRms]:
    """The calibration errors of a grid, by the names of their debiased values."""
    errors: dict[str, Ece | EceRms] = {}
    for binning in get_args(Binning):
        sums = image_sums(grid, bins, binning)
        errors |= {f"ece_{binning}{bins}_debiased": Ece(sums), f"ece_rms_{binning}{bins}_debiased": EceRms(sums)}
    return errors


def _density(t: Floats) -> Floats:
    return np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
