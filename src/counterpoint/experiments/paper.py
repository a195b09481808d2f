"""The paper's printed figures beside the names of the experiments that they belong to."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

_FILE = Path(__file__).with_name("paper.toml")
_DATA_SETS = ("cifar10", "cifar100")


@dataclass(frozen=True)
class PaperFigures:
    """What the paper prints for one set of images, as fractions."""

    error: float
    ece: float
    ece_rms: float


@dataclass(frozen=True)
class PaperRow:
    """One experiment's line in one of the paper's tables, with the label that it has there."""

    table: int
    label: str
    clean: PaperFigures
    corrupted: PaperFigures


def _rows() -> Iterator[tuple[str, PaperRow]]:
    for name, table in tomllib.loads(_FILE.read_text(encoding="utf-8")).items():
        for i, dataset in enumerate(_DATA_SETS):
            own = slice(3 * i, 3 * i + 3)
            for recipe, label in table["labels"].items():
                clean, corrupted = (_figures(table[part][recipe][own]) for part in ("clean", "corrupted"))
                yield f"{dataset}/{recipe}", PaperRow(int(name.removeprefix("table")), label, clean, corrupted)


def _figures(percents: list[float]) -> PaperFigures:
    error, ece, ece_rms = (percent / 100 for percent in percents)
    return PaperFigures(error, ece, ece_rms)


PAPER: Mapping[str, PaperRow] = MappingProxyType(dict(_rows()))
"""By the experiment's name, in the order of the tables."""
