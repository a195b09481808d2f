"""Validation and test images split off by chance, from each class in proportion."""

import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.images import PARTS
from counterpoint.seeding import Stream

TRAIN, VAL, TEST = range(len(PARTS))
FREE = -1
"""The part of an image that is in none yet."""


def stratified_parts(
    labels_N: Tensor,
    alike_N: Tensor,
    classes: tuple[str, ...],
    *,
    val: float,
    test: float,
    seed: int = 0,
    groups_N: Tensor | None = None,
    known_N: Tensor | None = None,
) -> Tensor:
    """Each image's part, as its place in PARTS. Of every class the shares `val` and `test` are split off.

    A share of 0 splits nothing off; any other takes at least one image of each class and leaves at least one to train
    on. `alike_N` holds for each image the number of the first one with the same content: such images stay together, and
    count as one image of the first one's class. Only the seed and the order of the images decide the split, and the
    test images do not depend on `val`.

    `groups_N` holds for each image the number of the first one of its group. Then the shares are of each class's
    groups, and a group is of each class that it has an image of. The rarest class has the first choice.

    `known_N` holds the parts of images that are split already, and FREE for the others. The known images keep their
    parts, and the others bring each part to its share.
    """
    _check_shares(val, test)
    bundles_N = alike_N if groups_N is None else _joined(alike_N, groups_N)
    order = Stream(seed, "stratified").permutation(len(labels_N))
    is_first_N = alike_N == torch.arange(len(alike_N))
    bundles_of = {
        label: _different(bundles_N[order[(is_first_N & (labels_N == label))[order]]]) for label in range(len(classes))
    }
    kind = "image" if groups_N is None else "group"
    counts = {label: _counts(len(own), val, test, classes[label], kind) for label, own in bundles_of.items()}
    parts_N = torch.full((len(labels_N),), FREE)
    if known_N is not None:
        parts_N[bundles_N[known_N != FREE]] = known_N[known_N != FREE]
    for place, part in enumerate((TEST, VAL)):
        for label, own in sorted(bundles_of.items(), key=lambda item: len(item[1])):
            wanted = counts[label][place] - int((parts_N[own] == part).sum())
            parts_N[own[parts_N[own] == FREE][: max(0, wanted)]] = part
    parts_N[parts_N == FREE] = TRAIN
    for label, own in bundles_of.items():
        _check_found(parts_N[own], val, test, classes[label], is_known=known_N is not None)
    parts_N = parts_N[bundles_N]
    return parts_N if known_N is None else torch.where(known_N == FREE, parts_N, known_N)


def _joined(alike_N: Tensor, groups_N: Tensor) -> Tensor:
    """For each image the number of the first one that it stays with: in its group, of its content, in that one's group,
    and so on.
    """
    joined_N, before_N = alike_N, None
    while before_N is None or not torch.equal(joined_N, before_N):
        before_N = joined_N
        for together_N in (groups_N, alike_N):
            joined_N = joined_N.scatter_reduce(0, together_N, joined_N, "amin")[together_N]
    return joined_N


def _different(bundles: Tensor) -> Tensor:
    """Each bundle once, where it is first."""
    return torch.tensor(list(dict.fromkeys(bundles.tolist())), dtype=torch.int64)


def _check_shares(val: float, test: float) -> None:
    for name, share in (("val", val), ("test", test)):
        if not 0 <= share < 1:
            raise InputError(f"the share of images for {name} is {share}; it must be at least 0 and less than 1")
    if val + test >= 1:
        raise InputError(
            f"the shares {val} for val and {test} for test leave nothing to train on; together they must be less than 1"
        )


def _counts(found: int, val: float, test: float, name: str, kind: str) -> tuple[int, int]:
    """How many of a class's images, or of its groups, are for test and for val."""
    wanted = _wanted(val, test)
    if found < len(wanted):
        raise InputError(
            f"the class {name!r} has {found} different {kind}{'' if found == 1 else 's'}; {len(wanted)} are needed, "
            f"one each for {', '.join(wanted)}: add some, leave the class out, or make the parts yourself"
        )
    tests = min(max(round(found * test), 1), found - len(wanted) + 1) if test else 0
    vals = min(max(round(found * val), 1), found - tests - 1) if val else 0
    return tests, vals


def _wanted(val: float, test: float) -> list[str]:
    return [part for part, share in (("train", 1.0), ("val", val), ("test", test)) if share]


def _check_found(parts: Tensor, val: float, test: float, name: str, *, is_known: bool) -> None:
    """Raise if a part has no image of the class, because all of them are needed elsewhere."""
    why = (
        "the earlier run has its images in other parts (with train_on=all it validated on none); add some images, set "
        "train_on as there, or start without that run"
        if is_known
        else "other classes have images in its groups too; set another images.split_seed, or make the parts yourself"
    )
    for part in _wanted(val, test):
        if not (parts == PARTS.index(part)).any():
            raise InputError(f"no image of the class {name!r} is left for {part}: {why}")
