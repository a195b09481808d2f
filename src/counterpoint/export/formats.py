"""The kinds of files that there are: how each is written, and how it is read again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch.export import ExportedProgram

from counterpoint.errors import InputError
from counterpoint.export.onnx_file import needed, read_onnx, to_onnx
from counterpoint.export.pt2_file import read_pt2, to_pt2

Exported = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""A file as a function: from uint8 images (N, H, W, C) to probabilities (N, K) and the members' (M, N, K)."""


class Format(NamedTuple):
    """A kind of file: how a graph and its facts become its content, and how that is run."""

    write: Callable[[ExportedProgram, Mapping[str, str]], bytes]
    read: Callable[[bytes], Exported]
    packages: tuple[str, ...]


FORMATS = {
    "onnx": Format(to_onnx, read_onnx, ("onnx", "onnxscript", "onnxruntime")),
    "pt2": Format(to_pt2, read_pt2, ()),
}


def format_of(path: Path) -> Format:
    """The format that a file's name asks for, with all the packages that it needs."""
    found = FORMATS.get(path.suffix[1:].lower())
    if found is None:
        endings = " or ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{str(path)!r} is no name for an exported model; give a file that ends in {endings}")
    for package in found.packages:
        needed(package)
    return found
