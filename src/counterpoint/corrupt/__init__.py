"""Corrupted test sets: the corruptions of CIFAR-C and ImageNet-C, seeded, for any images. Needs no torch."""

from counterpoint.corrupt.cells import About, read_about, read_cell
from counterpoint.corrupt.constants import default_constants
from counterpoint.corrupt.frost import FrostDir, FrostSource, find_frost, frost_source
from counterpoint.corrupt.suite import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, VERSION, corrupt
from counterpoint.corrupt.writer import write_corrupted_set
from counterpoint.records.images import Constants

__all__ = [
    "CORRUPTIONS",
    "EXTRA_CORRUPTIONS",
    "SEVERITIES",
    "VERSION",
    "About",
    "Constants",
    "FrostDir",
    "FrostSource",
    "corrupt",
    "default_constants",
    "find_frost",
    "frost_source",
    "read_about",
    "read_cell",
    "write_corrupted_set",
]
