"""Given arrays as logits and labels, each checked. The error names the array."""

import hashlib
from dataclasses import dataclass

import numpy as np

from counterpoint.errors import InputError
from counterpoint.evaluation.imported.given import Given
from counterpoint.evaluation.imported.layout import SetNames
from counterpoint.metrics.checks import Floats, Integers, class_labels, finite, probabilities
from counterpoint.metrics.groups import Groups, groups_of
from counterpoint.metrics.scores import SMALLEST_PROBABILITY

_FLOATS = (np.float16, np.float32, np.float64)
_MOST_CHARACTERS = 200
_SUM_TO_ONE = 1e-3  # the error of a softmax in half precision


@dataclass(frozen=True, eq=False)
class GivenSet:
    """One set of images, as it is kept: logits (M, N, K) and labels."""

    logits_MNK: np.ndarray
    labels_N: Integers
    precision: str
    together: Groups | None = None
    """Which images belong together; None if none do."""

    @property
    def size(self) -> tuple[int, int]:
        """Members and classes."""
        members, _, classes = self.logits_MNK.shape
        return members, classes

    @property
    def key(self) -> str:
        """A hash of all that is known about the images: their labels and the number of classes."""
        content = f"{self.size[1]} classes ".encode() + self.labels_N.astype("<i8").tobytes()
        return hashlib.sha256(content).hexdigest()[:32]


def read_unlabelled(given: Given, name: str, size: tuple[int, int] | None = None) -> np.ndarray:
    """The logits (M, N, K) of images without labels. Members and classes must be as many as in `size`."""
    return _predictions(given, name, given.read(name), size)


def read_set(given: Given, names: SetNames, size: tuple[int, int] | None = None) -> GivenSet:
    """A set's arrays. Members and classes must be as many as in `size`, those of the clean images."""
    array = given.read(names.predictions)
    logits_MNK = _predictions(given, names.predictions, array, size)
    called, (_, images, classes) = given.called(names.predictions), logits_MNK.shape
    labels = given.read(names.labels)
    if labels.ndim == 1 and len(labels) != images:
        raise InputError(
            f"{called} has {images:,} images, and {given.called(names.labels)} has {len(labels):,} labels; axes are "
            f"(members, images, classes){_own(names)}"
        )
    labels_N = class_labels(labels, given.called(names.labels), images, classes)
    return GivenSet(logits_MNK, labels_N, f"{_kind(names)} in {array.dtype}, as given", _together(given, names, images))


def _together(given: Given, names: SetNames, images: int) -> Groups | None:
    if names.groups not in given.names:
        return None
    array = given.read(names.groups)
    if array.shape != (images,) or array.dtype.kind not in "iuU":
        called = given.called(names.groups)
        raise InputError(
            f"{called} is {array.dtype} {array.shape}; it must have a whole number or a text for each of the "
            f"{images:,} images"
        )
    return groups_of(np.unique(array, return_inverse=True)[1], images)


def _predictions(given: Given, name: str, array: np.ndarray, size: tuple[int, int] | None) -> np.ndarray:
    logits_MNK = _logits(given, name, array)
    members, _, classes = logits_MNK.shape
    if size is not None and (members, classes) != size:
        raise InputError(
            f"{given.called(name)} has {members} members and {classes} classes, and the predictions for the clean "
            f"images have {size[0]} and {size[1]}; they must be the same"
        )
    return logits_MNK


def _kind(names: SetNames) -> str:
    return "probabilities" if names.predictions.endswith("probs") else "logits"


def _own(names: SetNames) -> str:
    """The hint that these images may need labels of their own, and how to name that array."""
    path = names.predictions.split("/")
    if len(path) == 1:
        return ""
    return (
        "; if these are other images than the clean ones, give their labels as "
        f"shift/{path[1]}/labels, or as shift/labels for all shifts"
    )


def _logits(given: Given, name: str, array: np.ndarray) -> np.ndarray:
    """Probabilities become their logarithms, so that whatever comes later sees logits only.

    A probability of 0 counts as the smallest normal float32, as it does in the NLL.
    """
    called = given.called(name)
    if array.ndim not in (2, 3):
        raise InputError(
            f"{called} has the shape {array.shape}; it must be (images, classes) or (members, images, classes)"
        )
    values_MNK = array[None] if array.ndim == 2 else array
    if not array.size or values_MNK.shape[2] < 2:
        raise InputError(f"{called} has the shape {array.shape}; it must have at least one image and two classes")
    if name.endswith("probs"):
        probs_MNK = probabilities(values_MNK, called, ndim=3)
        return np.log(np.maximum(probs_MNK, SMALLEST_PROBABILITY))
    checked_MNK = finite(values_MNK, called, ndim=3)
    if _are_probabilities(checked_MNK):
        instead = f"{name.removesuffix('logits')}probs"
        raise InputError(
            f"{called} holds probabilities: every row lies between 0 and 1 and sums to 1; call it {instead}, or "
            "softmax would be applied to them"
        )
    return values_MNK if values_MNK.dtype.type in _FLOATS else checked_MNK


def _are_probabilities(values_MNK: Floats) -> bool:
    """Whether each of several rows is a distribution. Logits are never so by chance."""
    rows = values_MNK.shape[0] * values_MNK.shape[1]
    return rows > 1 and bool((values_MNK >= 0).all()) and bool((np.abs(values_MNK.sum(axis=2) - 1) < _SUM_TO_ONE).all())


def read_text(given: Given, name: str, otherwise: str) -> str:
    """A name that was given as a text."""
    if name not in given.names:
        return otherwise
    array = given.read(name)
    if array.dtype.kind != "U" or array.ndim:
        raise InputError(f"{given.called(name)} is {array.dtype} {array.shape}; it must be one text")
    return _printable(given, name, str(array))


def read_classes(given: Given, count: int) -> tuple[str, ...]:
    """The classes' names; none if they were not given."""
    if "classes" not in given.names:
        return ()
    array = given.read("classes")
    if array.dtype.kind != "U" or array.shape != (count,) or len(set(array.tolist())) < count:
        raise InputError(
            f"{given.called('classes')} is {array.dtype} {array.shape}; it must be a list of {count} different names"
        )
    return tuple(_printable(given, "classes", name) for name in array.tolist())


def _printable(given: Given, name: str, text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > _MOST_CHARACTERS:
        raise InputError(
            f"{given.called(name)} holds {text[:40]!r}; it must be a text of 1 to {_MOST_CHARACTERS} characters that "
            "can be printed"
        )
    return text
