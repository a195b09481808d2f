"""Does a run notice images of none of its classes? How well confidence tells them from known images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.outside import OutsideRun, by_outside, set_table
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.tables import Table

_TITLE = "Outside images"


@dataclass(frozen=True)
class OutsideSet:
    """All runs on one set of outside images."""

    name: str
    words: tuple[str, ...]
    table: Table


@dataclass(frozen=True)
class OutsideSets(Content):
    sets: tuple[OutsideSet, ...]
    has_signals: bool  # whether some run is an ensemble with signals beside confidence
    has_threshold: bool

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{_TITLE}: {one.name}", (*one.words, one.table)) for one in self.sets)


def outside(runs: Sequence[ReportedRun]) -> OutsideSets | None:
    """None where no run was evaluated on outside images."""
    groups = by_outside(runs)
    every = [one for group in groups for one in group]
    found = OutsideSets(
        tuple(map(_set, groups)),
        has_signals=any(one.figures.signals for one in every),
        has_threshold=any(one.kept for one in every),
    )
    return found if groups else None


def _set(group: Sequence[OutsideRun]) -> OutsideSet:
    return OutsideSet(group[0].name, tuple(one.words for one in group if one.words), set_table(group))


SECTION = Section("outside", _TITLE, outside, "sections/outside.html")
