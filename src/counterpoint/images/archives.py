"""An .npz file that holds images as one array, with their labels. It is read row by row, and never unpickled."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from counterpoint.errors import InputError, unknown
from counterpoint.images.listing import PARTS, Listing, check_names_no_parts, printable
from counterpoint.storage.npz import Header, array_names, open_array, read_header, read_named

_CHANNELS = (1, 3, 4)
_KNOWN = {"images", "labels", "part", "group", "classes"}


def list_archive(source: Path) -> Listing:
    """The rows of the arrays images and labels, and optionally part, group (for each row) and classes (the names)."""
    with open_array(source, "images") as file:
        count = _check_images(source, read_header(file))[0]
    labels_N, part_N, group_N, classes_K = (
        _read_small(source, name) for name in ("labels", "part", "group", "classes")
    )
    if labels_N is None:
        raise InputError(
            f"{source} has no array 'labels'; it must hold images and labels, and may hold part, group and classes"
        )
    _check_length(source, "labels", labels_N, count)
    if part_N is None:
        _check_others(source, count)
    classes, labels = _classes_and_labels(source, labels_N, classes_K)
    return Listing(
        source,
        names=_row_names(count),
        labels=labels,
        parts=None if part_N is None else _parts(source, part_N, count),
        classes=classes,
        groups=None if group_N is None else _groups(source, group_N, count),
    )


def list_rows(source: Path) -> tuple[str, ...]:
    """The name of each row of the array images, whatever else the file holds."""
    with open_array(source, "images") as file:
        return _row_names(_check_images(source, read_header(file))[0])


def read_rows(source: Path, at_once: int) -> Iterator[np.ndarray]:
    """The images as (rows, H, W, C), in groups of this many, from the first to the last."""
    with open_array(source, "images") as file:
        shape = _check_images(source, read_header(file))
        height, width, channels = shape[1], shape[2], shape[3] if len(shape) == 4 else 1
        for start in range(0, shape[0], at_once):
            rows = min(at_once, shape[0] - start)
            content = file.read(rows * height * width * channels)
            if len(content) < rows * height * width * channels:
                raise InputError(f"{source} is cut short: 'images' ends before row {start + rows:,}; make it again")
            yield np.frombuffer(content, np.uint8).reshape(rows, height, width, channels)


def _check_images(source: Path, header: Header) -> tuple[int, ...]:
    shape, fortran, dtype = header.shape, header.fortran, header.dtype
    if dtype != np.uint8 or fortran or len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in _CHANNELS):
        order = ", column by column" if fortran else ""
        raise InputError(
            f"'images' of {source} is {dtype} {shape}{order}; it must be uint8 (N, H, W) or (N, H, W, C) with 1, 3 or "
            "4 channels last, row by row as numpy.ascontiguousarray gives it"
        )
    if 0 in shape:
        raise InputError(f"'images' of {source} has the shape {shape}, which holds no pixels")
    return shape


def _row_names(count: int) -> tuple[str, ...]:
    return tuple(f"[{row}]" for row in range(count))


def _read_small(source: Path, name: str) -> np.ndarray | None:
    """A whole array; None if it is not there."""
    return read_named(source, name) if name in array_names(source) else None


def _check_length(source: Path, name: str, array: np.ndarray, count: int) -> None:
    if array.shape != (count,):
        raise InputError(
            f"{name!r} of {source} has the shape {array.shape}; it must have one entry for each of the {count:,} images"
        )


def _check_others(source: Path, count: int) -> None:
    """Raise if another array of texts, one for each image, names parts."""
    for name in sorted(set(array_names(source)) - _KNOWN):
        with open_array(source, name) as file:
            header = read_header(file)
        if header.dtype.kind == "U" and header.shape == (count,):
            check_names_no_parts(f"the array {printable(name)!r} of {source}", read_named(source, name).tolist())


def _parts(source: Path, part_N: np.ndarray, count: int) -> tuple[str, ...]:
    _check_length(source, "part", part_N, count)
    parts = tuple(str(part) for part in part_N.tolist())
    for wrong in set(parts) - set(PARTS):
        raise InputError(f"{source}: {unknown('part', wrong, PARTS)}")
    return parts


def _groups(source: Path, group_N: np.ndarray, count: int) -> tuple[str, ...]:
    _check_length(source, "group", group_N, count)
    if group_N.dtype.kind not in "iuU":
        raise InputError(f"'group' of {source} is {group_N.dtype}; it must be whole numbers or texts")
    return tuple(str(group) for group in group_N.tolist())


def _classes_and_labels(
    source: Path, labels_N: np.ndarray, classes_K: np.ndarray | None
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The classes' names and each image's place among them.

    Without an array of classes, names are the labels: texts in their order, numbers by size.
    """
    if labels_N.dtype.kind not in "iuU":
        raise InputError(f"'labels' of {source} is {labels_N.dtype}; it must be whole numbers or texts")
    if classes_K is None:
        values, places = np.unique(labels_N, return_inverse=True)
        return tuple(str(value) for value in values.tolist()), tuple(places.tolist())
    if classes_K.dtype.kind != "U" or classes_K.ndim != 1 or len(set(classes_K.tolist())) < len(classes_K):
        raise InputError(
            f"'classes' of {source} is {classes_K.dtype} {classes_K.shape}; it must be a list of different names"
        )
    classes = tuple(classes_K.tolist())
    known = {label: k for k, label in enumerate(classes if labels_N.dtype.kind == "U" else range(len(classes)))}
    labels = labels_N.tolist()
    for wrong in sorted(set(labels) - known.keys())[:1]:
        raise InputError(f"'labels' of {source} has {wrong!r}, which is not one of its {len(classes)} classes")
    return classes, tuple(known[label] for label in labels)
