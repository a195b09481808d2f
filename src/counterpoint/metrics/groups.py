"""Images that belong together, such as those of one patient: an interval counts such a group as one draw.

A figure stays a mean over images: Σ y_g / Σ n_g, where y_g is the sum over the n_g images of group g, and N = Σ n_g. It
is a ratio, because the number of images is drawn too. Without group g it would be lower by
(y_g − n_g · mean) / (N − n_g). So its variance over draws of G groups is estimated by

    (G − 1) / G · Σ_g ((y_g − n_g · mean) / (N − n_g))²

which is the jackknife's. To first order it is Σ_g (y_g − n_g · mean)² / N². With one image in each group it is the
usual s² / N, exactly. The interval is Student's with G − 1 degrees of freedom.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, Integers, whole_numbers
from counterpoint.records.images import InGroups

FEWEST = 10
"""With fewer groups, or one that has more than half of the images, there are no intervals and no noise floors: so few
draws do not show how far others would be apart."""

PRIOR_GROUPS = 2
"""Where a few groups show how far images depend on each other, as many more count that are taken from elsewhere."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Which images belong together. At least one group has several."""

    group_N: Integers
    """Each image's group, numbered from 0 in the order of their first images."""

    def __len__(self) -> int:
        return len(self.sizes_G)

    @cached_property
    def sizes_G(self) -> Integers:  # noqa: N802 (the shape is part of the name)
        return np.bincount(self.group_N)

    @property
    def images(self) -> int:
        return len(self.group_N)

    def sums(self, values_ND: Floats) -> Floats:
        """Of each group. The values may have further axes."""
        order = np.argsort(self.group_N, kind="stable")
        return np.add.reduceat(values_ND[order], np.cumsum(self.sizes_G) - self.sizes_G, axis=0)

    def one_image_of_each(self) -> Integers:
        """The places of images that are drawn at random, one from each group. The draw depends on nothing else."""
        order_N = np.random.default_rng(0).permutation(self.images)
        _, first_G = np.unique(self.group_N[order_N], return_index=True)
        return np.sort(order_N[first_G])

    def images_per_draw(self, values_N: Floats, tells_N: NDArray[np.bool_]) -> float:
        """How many images tell as much as one independent image does: the design effect of the mean of these values.

        It is 1 if the images of a group do not depend on each other, and Σ n_g² / N if they have the same value. Only
        groups with an image that tells something show which it is. `PRIOR_GROUPS` are added to them whose images have
        the same value, so that images without any error do not pass for independent ones.
        """
        largest = float((self.sizes_G**2).sum() / self.images)
        noise_N = values_N - values_N.mean()
        scatter = float((noise_N**2).sum())
        found = float((moved_by(self.sums(noise_N), self.sizes_G) ** 2).sum()) * self.images**2
        effect = min(max(found / scatter, 1.0), largest) if scatter else largest
        telling = int((self.sums(tells_N.astype(np.int64)) > 0).sum())
        return (telling * effect + PRIOR_GROUPS * largest) / (telling + PRIOR_GROUPS)

    def images_per_draw_of_errors(self, wrong_N: Floats) -> float:
        """By each image's error: the rarer of right and wrong images tell about it."""
        return self.images_per_draw(wrong_N, wrong_N > 0 if wrong_N.mean() <= 0.5 else wrong_N < 1)


def groups_of(group_N: ArrayLike | None, images: int) -> Groups | None:
    """The groups, from one whole number per image. None where each image is alone: then groups change nothing."""
    if group_N is None:
        return None
    found = numbered(whole_numbers(group_N, "groups", images, of="group"))
    return None if found.max(initial=-1) + 1 == images else Groups(found)


def recorded(groups: Groups | None) -> InGroups | None:
    """As the logits' folder and the records keep it."""
    if groups is None:
        return None
    return InGroups(len(groups), hashlib.sha256(groups.group_N.astype("<i8").tobytes()).hexdigest()[:16])


def enough_groups(group_N: ArrayLike | None, images: int) -> Groups | None:
    """As `groups_of`. It raises where the groups are too few for an interval."""
    found = groups_of(group_N, images)
    require_enough(found)
    return found


def numbered(group_N: Integers) -> Integers:
    """The groups' numbers from 0 on, in the order of their first images: equal for equal groups."""
    _, first_G, number_N = np.unique(group_N, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_G))[number_N]


def are_enough(groups: Groups | None) -> bool:
    """Whether there can be intervals and noise floors."""
    return groups is None or not _too_few(groups)


def require_enough(groups: Groups | None) -> None:
    """Raise where the groups are too few for an interval."""
    if groups is not None and (problem := _too_few(groups)):
        raise InputError(f"{problem}: use images of more groups")


def _too_few(groups: Groups) -> str:
    needed = f"an interval over groups needs at least {FEWEST}, none of which has more than half of the images"
    if len(groups) < FEWEST:
        return f"the images are of {len(groups)} group{'' if len(groups) == 1 else 's'}, and {needed}"
    if 2 * (largest := int(groups.sizes_G.max())) > groups.images:
        return f"one group has {largest:,} of the {groups.images:,} images, and {needed}"
    return ""


def moved_by(sums_G: Floats, sizes_G: Floats | Integers) -> Floats:
    """What each group moves the mean over images by. The sum of the squares is the variance of the mean.

    The sums may have further axes. The mean's value is taken off them.
    """
    images, groups = sizes_G.sum(), len(sizes_G)
    sizes_G1 = np.reshape(sizes_G, (-1,) + (1,) * (sums_G.ndim - 1))
    off_G = sums_G - sizes_G1 * (sums_G.sum(axis=0) / images)
    return np.sqrt((groups - 1) / groups) * off_G / (images - sizes_G1)


def students(groups: int) -> float:
    """How many standard errors a 95 % interval over so many groups reaches to each side."""
    return float(stdtrit(groups - 1, 0.975))


def tail_of(groups: int) -> float:
    """The normal tail that lies as far out as 2.5 % of Student's does."""
    return float(ndtr(-students(groups)))
