"""A user's own images as a data set: parts that the source has, and parts that are split off by chance."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from counterpoint.data.mapped import MappedSet
from counterpoint.data.stratified import FREE, TEST, TRAIN, VAL, stratified_parts
from counterpoint.images import PARTS, BadFile, DecodedImages, Decoding, open_images
from counterpoint.images.duplicates import first_alike, notes_on_copies
from counterpoint.images.listing import Listing, notes_on_depth, notes_on_groups, picture_name
from counterpoint.images.splits import Split, narrow
from counterpoint.own_images import OwnImages
from counterpoint.watching import SILENT, Watcher

_DARK, _LOOKED_AT = 64, 256
"""16-bit pictures that hold 14 bits or fewer are no brighter. As many images, from all places, are enough to see it."""


@dataclass(frozen=True)
class Seen:
    """The images that a network learns from, or that temperatures and thresholds are chosen on."""

    contents: Mapping[str, str]
    """The name of each image, by the hash of its content."""
    pictures: frozenset[str]
    """The name of each image: its class, and its file name without the ending. No test image has such a name."""


@dataclass(frozen=True, eq=False)
class UserImages:
    """Your images from a folder, a .csv or an .npz file, in parts. A part without images is None.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint.data import load_images
    >>> pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), np.uint8)
    >>> np.savez("mine.npz", images=pixels, labels=[0, 1] * 10)
    >>> load_images(Path("mine.npz"), size=8, cache=Path("cache")).split_off
    ('val', 'test')
    """

    name: str
    source: Path
    """What the user named, as an absolute path."""
    settings: OwnImages
    """How they were read and split: the settings `images` of an experiment that trains on them."""
    skip_bad: bool
    """Whether files that give no image are left out."""
    key: str
    """A hash of the contents, names, labels, parts and classes, and of how the images were decoded."""
    keys: Mapping[str, str]
    """For each part that has images, a hash of those: their contents and labels in order, the classes, the decoding.
    Test images that are added later do not change that of the training images."""
    train: MappedSet
    val: MappedSet | None
    test: MappedSet | None
    split_off: tuple[str, ...]
    """The parts that the source does not have, and that were split off by chance."""
    skipped: tuple[BadFile, ...]
    """The files that were left out, because they cannot be decoded."""
    notes: tuple[str, ...]
    """What a person should know: of copies, of groups, of folders that may be classes, of images that are dark."""
    contents: Mapping[str, Mapping[str, str]]
    """For each part the name of each image, by the hash of its content."""
    seen: Seen
    """All images but those to test on."""
    split: Split
    """The images to train on, and those that were split off them. A run keeps it."""
    added: int = 0
    """How many images the source has that an earlier split has not, where these were to be left out."""


def load_images(
    source: Path | str,
    size: int,
    *,
    grey: bool = False,
    val: float = 0.15,
    test: float = 0.15,
    seed: int = 0,
    split: Split | None = None,
    with_added: bool = False,
    cache: Path | str | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    watcher: Watcher = SILENT,
) -> UserImages:
    """Load your own images as squares of `size` pixels, and divide them into train, val and test.

    `source` is a folder, a .csv or an .npz file; see `counterpoint.images`. The images are uint8 (N, C, size, size),
    with one channel if `grey`, else three.

    If the source has no parts, `val` and `test` are the shares of each class that are split off at random. If it has
    parts but no val, the share `val` of train is split off, and a missing test stays missing. A share of 0 splits
    nothing off. Images of one group stay together, and the shares are then of each class's groups.

    `split` is that of an earlier run on these images, which stay in their parts. Images that were added since are left
    out. If `with_added`, they are split too, so that each part again has its share.

    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from counterpoint.data import load_images
    >>> for number in range(20):
    ...     path = Path("photos", "cat" if number % 2 else "dog", f"{number}.png")
    ...     path.parent.mkdir(parents=True, exist_ok=True)
    ...     Image.new("RGB", (12, 10), (number, 0, 0)).save(path)
    >>> images = load_images(Path("photos"), size=8, cache=Path("cache"), workers=1)
    >>> images.train.classes, len(images.train), len(images.val), len(images.test)
    (('cat', 'dog'), 12, 4, 4)
    """
    source, decoding, settings = Path(source), Decoding(size, grey), OwnImages(size, grey, val, test, seed)
    images = open_images(source, decoding, cache=cache, skip_bad=skip_bad, workers=workers, watcher=watcher)
    added = 0
    if split is not None and not with_added:
        images, added = narrow(images, split)
    given_N = _given_parts(images)
    shares = _shares(images, val, test)
    parts_N = _split(images, given_N, shares, seed, split)
    whole, places = mapped_set(images, _numbers(given_N)), _places(parts_N)
    parts = [whole.select(parts_N == part) for part in (TRAIN, VAL, TEST)]
    contents = {
        part: {images.hashes[image]: images.listing.shown(image) for image in chosen} for part, chosen in places.items()
    }
    return UserImages(
        name=source.resolve().stem if source.is_file() else source.resolve().name,
        source=source.absolute(),
        settings=settings,
        skip_bad=skip_bad,
        key=images.key,
        keys={
            part: hash_of(decoding, images.listing.classes, images.labelled(chosen))
            for part, chosen in places.items()
            if chosen
        },
        train=parts[TRAIN],
        val=parts[VAL] if len(parts[VAL]) else None,
        test=parts[TEST] if len(parts[TEST]) else None,
        split_off=tuple(part for part, share in shares.items() if share),
        skipped=images.bad,
        notes=(
            *notes_on_depth(images.listing),
            *notes_on_copies(images.listing, images.hashes),
            *notes_on_groups(images.listing),
            *_on_darkness(images),
        ),
        contents=contents,
        seen=Seen({**contents["train"], **contents["validation"]}, _pictures_seen(images.listing, places)),
        split=_as_split(images, given_N, parts_N),
        added=added,
    )


def _given_parts(images: DecodedImages) -> Tensor:
    """Each image's part as the source gives it. Where it has no parts, all images are there to train on."""
    parts = images.listing.parts or ("train",) * len(images.listing)
    return torch.tensor([PARTS.index(part) for part in parts])


def _shares(images: DecodedImages, val: float, test: float) -> dict[str, float]:
    """The share of the training images that each part gets."""
    if images.listing.parts is None:
        return {"val": val, "test": test}
    return {"val": 0 if "val" in images.listing.parts else val, "test": 0}


def _split(
    images: DecodedImages, given_N: Tensor, shares: dict[str, float], seed: int, earlier: Split | None
) -> Tensor:
    """Each image's part, with what is split off the images to train on."""
    chosen = (given_N == TRAIN).nonzero()[:, 0]
    listing, hashes = images.listing.select(chosen.tolist()), [images.hashes[image] for image in chosen.tolist()]
    alike = torch.tensor(first_alike(hashes))
    groups = _groups(listing)
    known = None if earlier is None else _known_parts(earlier, hashes, shares)
    parts_N = given_N.clone()
    parts_N[chosen] = stratified_parts(
        torch.tensor(listing.labels), alike, listing.classes, groups_N=groups, known_N=known, seed=seed, **shares
    )
    return parts_N


def _groups(listing: Listing) -> Tensor | None:
    """For each image the number of the first one of its group."""
    return None if listing.groups is None else torch.tensor(first_alike(listing.groups))


def _known_parts(earlier: Split, hashes: Sequence[str], shares: dict[str, float]) -> Tensor:
    """The part that each image had, and FREE for an image that was not there. What was in a part that is not split off
    now is trained on.
    """
    parts = {"train": TRAIN, **{part: PARTS.index(part) for part, share in shares.items() if share}}
    known = {content: parts.get(part, TRAIN) for content, part in zip(earlier.contents, earlier.parts, strict=True)}
    return torch.tensor([known.get(content, FREE) for content in hashes])


def _as_split(images: DecodedImages, given_N: Tensor, parts_N: Tensor) -> Split:
    chosen = (given_N == TRAIN).nonzero()[:, 0].tolist()
    parts = tuple(PARTS[int(parts_N[image])] for image in chosen)
    return Split(tuple(images.hashes[image] for image in chosen), parts, images.listing.classes)


def hash_of(decoding: Decoding, *values: object) -> str:
    """A hash of what images are: how they are decoded, the classes, and contents and labels in order."""
    return hashlib.sha256(json.dumps([str(decoding), *values]).encode()).hexdigest()[:16]


def _places(parts_N: Tensor) -> dict[str, list[int]]:
    """The images of each part."""
    parts = {"train": TRAIN, "validation": VAL, "test": TEST}
    return {name: (parts_N == part).nonzero()[:, 0].tolist() for name, part in parts.items()}


def _pictures_seen(listing: Listing, places: Mapping[str, Sequence[int]]) -> frozenset[str]:
    called = {part: {picture_name(listing, image) for image in chosen} for part, chosen in places.items()}
    return frozenset((called["train"] | called["validation"]) - called["test"] - {""})


def _on_darkness(images: DecodedImages) -> Iterator[str]:
    """Pictures of 16 bits often hold 12, as scanners make them. Then hardly any grey levels are left at 8 bits."""
    step = -(-len(images.rows_N) // _LOOKED_AT)
    brightest = max(int(images.pixels_RCHW[row].max()) for row in images.rows_N[::step])
    if brightest <= _DARK:
        yield (
            f"the images are dark: no pixel is brighter than {brightest} of 255. Pictures of 16 bits count from 0 to "
            "65,535; if yours use less, such as 12 bits up to 4,095, stretch them to the whole range, before training "
            "and before predicting"
        )


def _numbers(given_N: Tensor) -> Tensor:
    """Each image's number in its part."""
    numbers_N = torch.empty_like(given_N)
    for part in (TRAIN, VAL, TEST):
        numbers_N[given_N == part] = torch.arange(int((given_N == part).sum()))
    return numbers_N


def mapped_set(images: DecodedImages, numbers_N: Tensor) -> MappedSet:
    """All decoded images with their groups, and with the numbers that draws are keyed by."""
    return MappedSet(
        torch.from_numpy(images.pixels_RCHW),
        torch.from_numpy(images.rows_N),
        numbers_N,
        torch.tensor(images.listing.labels),
        images.listing.classes,
        _groups(images.listing),
    )
