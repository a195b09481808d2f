"""Runs under corruption: all metrics over the cells of each suite, as three aggregates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.figures import Aggregate
from counterpoint.report.run import AGGREGATES, HEADLINE, ReportedRun, grouped
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, is_folded, suites_of
from counterpoint.report.tables import Table, metrics_table

_TITLE = "Under shift"


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
            yield Block(f"{_TITLE}: {suite.title}", (*suite.words, *tables))


def under_shift(runs: Sequence[ReportedRun]) -> UnderShift | None:
    """None where no run was evaluated under shift."""
    suites = by_suite(runs).values()
    if not suites:
        return None
    kinds = {one.figures.source.kind for shifted in suites for one in shifted}
    tables = tuple(_suite_tables(runs, shifted) for shifted in suites)
    return UnderShift(tables, is_regenerated="regenerated" in kinds, is_given="given" in kinds, is_own="own" in kinds)


def _suite_tables(runs: Sequence[ReportedRun], shifted: Sequence[ShiftedRun]) -> SuiteTables:
    return SuiteTables(
        title=shifted[0].kind,
        is_folded=is_folded(shifted[0], (one for run in runs for one in suites_of(run))),
        words=tuple(dict.fromkeys(map(_made_of, shifted))),
        sources=_sources(runs, shifted),
        headline_tables=tuple(_tables(shifted, HEADLINE)),
        other_tables=tuple(
            table
            for aggregate in AGGREGATES
            if aggregate != HEADLINE
            for table in _tables([one for one in shifted if one.cells > 1], aggregate)
        ),
    )


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


def _tables(shifted: Sequence[ShiftedRun], aggregate: Aggregate) -> list[Table]:
    """One for each corrupted set: figures of different images are not compared."""
    return [
        metrics_table(
            f"All metrics on {images}" + (f": {aggregate}" if group[0].cells > 1 else ""),
            [(one.run.label, one.aggregate(aggregate)) for one in group],
        )
        for images, group in by_cells(shifted)
    ]


SECTION = Section("shift", _TITLE, under_shift, "sections/shift.html")
