"""Validation and test images split off by chance, from each class in proportion."""

import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.images import PARTS
from counterpoint.seeding import Stream

TRAIN, VAL, TEST = range(len(PARTS))


def stratified_parts(
    labels_N: Tensor, alike_N: Tensor, classes: tuple[str, ...], *, val: float, test: float, seed: int = 0
) -> Tensor:
    """Each image's part, as its place in PARTS. Of every class the shares `val` and `test` are split off.

    A share of 0 splits nothing off; any other takes at least one image of each class and leaves at least one to train
    on. `alike_N` holds for each image the number of the first one with the same content: such images stay together, and
    count as one image of the first one's class. Only the seed and the order of the images decide the split, and the
    test images do not depend on `val`.
    """
    _check_shares(val, test)
    parts_N = torch.full((len(labels_N),), TRAIN)
    order = Stream(seed, "stratified").permutation(len(labels_N))
    is_first_N = alike_N == torch.arange(len(alike_N))
    for label, name in enumerate(classes):
        images = order[(is_first_N & (labels_N == label))[order]]
        tests, vals = _counts(len(images), val, test, name)
        parts_N[images[:tests]] = TEST
        parts_N[images[tests : tests + vals]] = VAL
    return parts_N[alike_N]


def _check_shares(val: float, test: float) -> None:
    for name, share in (("val", val), ("test", test)):
        if not 0 <= share < 1:
            raise InputError(f"the share of images for {name} is {share}; it must be at least 0 and less than 1")
    if val + test >= 1:
        raise InputError(
            f"the shares {val} for val and {test} for test leave nothing to train on; together they must be less than 1"
        )


def _counts(images: int, val: float, test: float, name: str) -> tuple[int, int]:
    """How many of a class's images are for test and for val."""
    wanted = [part for part, share in (("train", 1.0), ("val", val), ("test", test)) if share]
    if images < len(wanted):
        different = "1 different image" if images == 1 else f"{images} different images"
        raise InputError(
            f"the class {name!r} has {different}; {len(wanted)} are needed, one each for "
            f"{', '.join(wanted)}: add some, leave the class out, or make the parts yourself"
        )
    tests = min(max(round(images * test), 1), images - len(wanted) + 1) if test else 0
    vals = min(max(round(images * val), 1), images - tests - 1) if val else 0
    return tests, vals
