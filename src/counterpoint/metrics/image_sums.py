"""Sums over each image's rows, bin by bin. A row is an image in one cell; an image's rows are not independent.

Shapes: N images; C corruptions (1 for a clean set); B bins that hold a row, those of all corruptions one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.metrics.calibration import Binning, reliability_bins
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.scores import Grid, ImageScores, images_of_cells, join_scores


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
    noise_ND: Floats  # D = 2 · B: each image's surplus and its share of rows, less their means, over √(N · (N − 1))

    @property
    def images(self) -> int:
        return len(self.noise_ND)

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
    images_of_cells(grid)
    parts = [_of_corruption(severities, bins, binning) for severities in grid.values()]
    surplus_NB, share_NB, confidence_NB = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    corruption = np.repeat(np.arange(len(parts)), [part[0].shape[1] for part in parts])
    sums_ND = np.concatenate((surplus_NB, share_NB), axis=1)
    noise_ND = (sums_ND - sums_ND.mean(axis=0)) / np.sqrt(len(sums_ND) * max(len(sums_ND) - 1, 1))
    return ImageSums(
        surplus_B=surplus_NB.mean(axis=0),
        share_B=share_NB.mean(axis=0),
        confidence_B=confidence_NB.mean(axis=0),
        corruption_BC=np.eye(len(parts))[corruption],
        noise_ND=noise_ND,
    )


def _of_corruption(severities: Sequence[ImageScores], bins: int, binning: Binning) -> tuple[Floats, Floats, Floats]:
    rows, images = join_scores(severities), len(severities[0])
    table = reliability_bins(rows.confidence, rows.correct, bins, binning)
    filled, confidence = len(table.count), np.minimum(rows.confidence, 1.0)
    cell = np.tile(np.arange(images), len(severities)) * filled + np.searchsorted(table.high, confidence, side="left")

    def summed(values: Floats) -> Floats:
        return np.bincount(cell, values, minlength=images * filled).reshape(images, filled) / len(severities)

    return summed(rows.correct - confidence), summed(np.ones(len(cell))), summed(confidence)
