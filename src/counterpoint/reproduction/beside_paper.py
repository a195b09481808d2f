"""Ours beside the paper's: the figures that the paper prints for a row, and the same six of our runs.

The tables of `counterpoint reproduce` and the report both lay out what is paired here. Nothing here imports torch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from counterpoint.experiments import is_row
from counterpoint.experiments.paper import PAPER
from counterpoint.records.results import Results

_METRICS = ("error", "ece_width15", "ece_rms_width15")
_DATA_SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}

Figures = tuple[float | None, ...]
"""Error, ECE and ECE-rms on clean images, then on -C by corruption; None where there is no such figure."""


@dataclass(frozen=True)
class PaperTable:
    """The rows of one table of the paper for one data set."""

    number: int
    dataset: str
    rows: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Table {self.number}, {_DATA_SETS[self.dataset]}"


@dataclass(frozen=True)
class PairedFigure:
    """One figure as the paper prints it, and the values of those of our runs that have it."""

    paper: float
    ours: tuple[float, ...]


def paper_tables(rows: Iterable[str]) -> list[PaperTable]:
    """The tables that `rows` are of, each with those of them that it has."""
    groups: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        groups.setdefault((PAPER[row].table, row.partition("/")[0]), []).append(row)
    return [PaperTable(number, dataset, tuple(group)) for (number, dataset), group in groups.items()]


def paper_figures(row: str) -> tuple[float, ...]:
    """The six figures that the paper prints for a row."""
    return (*astuple(PAPER[row].clean), *astuple(PAPER[row].corrupted))


def our_figures(results: Results, *, clean: bool = True, corrupted: bool = True) -> Figures:
    """The same six of a run's results; None for those on images that it lacks or that are not asked for."""
    on_clean = results.clean.ensemble if clean else None
    on_corrupted = results.corrupted.aggregates.ensemble["by-corruption"] if corrupted and results.corrupted else None
    return tuple(getattr(scores, metric, None) for scores in (on_clean, on_corrupted) for metric in _METRICS)


def pair_figures(row: str, ours: Sequence[Figures]) -> tuple[PairedFigure, ...]:
    """Each of the row's six figures with those of our runs."""
    return tuple(
        PairedFigure(printed, tuple(value for value in values if value is not None))
        for printed, *values in zip(paper_figures(row), *ours, strict=True)
    )


def stands_for_row(results: Results) -> bool:
    """Whether results have the configuration of the paper's row of their name."""
    return results.experiment in PAPER and is_row(results.config)
