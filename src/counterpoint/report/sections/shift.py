"""Runs under corruption: all metrics over the cells of each suite, as three aggregates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.figures import Aggregate
from counterpoint.report.metrics import metrics_table
from counterpoint.report.run import AGGREGATES, HEADLINE, ReportedRun, grouped
from counterpoint.report.section import Block, Content
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, is_folded
from counterpoint.report.tables import Table

TITLE = "Under shift"
_OTHERS = tuple(aggregate for aggregate in AGGREGATES if aggregate != HEADLINE)


@dataclass(frozen=True)
class SuiteTables:
    """All runs on one suite."""

    title: str
    is_folded: bool
    words: tuple[str, ...]  # what it is made of
    sources: tuple[str, ...]
    headline_tables: tuple[Table, ...]
    other_tables: tuple[Table, ...]


@dataclass(frozen=True)
class UnderShift(Content):
    suites: tuple[SuiteTables, ...]
    is_regenerated: bool  # whether some images are not the official ones
    is_given: bool  # whether some shifts came with predictions
    is_own: bool  # whether some were named with --shift
    headline: Aggregate = HEADLINE

    def blocks(self) -> Iterator[Block]:
        for suite in self.suites:
            tables = (*suite.headline_tables, *suite.other_tables)
            yield Block(f"{TITLE}: {suite.title}", (*suite.words, *tables))


def under_shift(runs: Sequence[ReportedRun]) -> UnderShift | None:
    """None where no run was evaluated under shift."""
    suites = by_suite(runs).values()
    every = [one for shifted in suites for one in shifted]
    tables = tuple(
        SuiteTables(
            title=shifted[0].kind,
            is_folded=is_folded(shifted[0], every),
            words=tuple(dict.fromkeys(map(_made_of, shifted))),
            sources=_sources(runs, shifted),
            headline_tables=_tables(shifted, HEADLINE),
            other_tables=_tables([one for one in shifted if one.cells > 1], *_OTHERS),
        )
        for shifted in suites
    )
    kinds = {one.figures.source.kind for one in every}
    found = UnderShift(tables, is_regenerated="regenerated" in kinds, is_given="given" in kinds, is_own="own" in kinds)
    return found if tables else None


def _made_of(shifted: ShiftedRun) -> str:
    if shifted.is_given:
        images = "The clean images" if shifted.figures.source.key is None else "Other images than the clean ones"
        return f"{images} under {shifted.made_of}."
    if shifted.is_own:
        return f"Shifted images of the user’s own: {shifted.made_of}."
    return f"The {shifted.figures.part} images with {shifted.made_of} in all."


def _sources(runs: Sequence[ReportedRun], shifted: Sequence[ShiftedRun]) -> tuple[str, ...]:
    """Where each corrupted set comes from, and which runs were evaluated on it, where these are different sets."""
    images = {one.run.label: one.images for one in shifted}
    by_images = grouped([run.label for run in runs], lambda label: images.get(label, "not evaluated"))
    if len(by_images) == 1:
        return ()  # the tables name them
    return tuple(f"{listed(labels)}: {of_images}" for of_images, labels in by_images.items())


def _tables(shifted: Sequence[ShiftedRun], *aggregates: Aggregate) -> tuple[Table, ...]:
    """One for each corrupted set: figures of different images are not compared."""
    return tuple(
        metrics_table(
            f"All metrics on {images}" + (f": {aggregate}" if group[0].cells > 1 else ""),
            [(one.run.label, one.aggregate(aggregate)) for one in group],
        )
        for aggregate in aggregates
        for images, group in by_cells(shifted)
    )
