"""Which classes are hard? How often each is mistaken for another, and how far a prediction of it can be trusted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import ClassFigures
from counterpoint.report.numbers import or_dash, percent, with_sign
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content
from counterpoint.report.tables import Column, Row, Table, plain_row

TITLE = "Classes"
_SHOWN = 10  # rows that are not folded away
_COLUMNS = (
    Column("Class"),
    Column("Images"),
    Column("Error", "%"),
    Column("Taken most often for"),
    Column("Predicted", "times"),
    Column("Right", "%"),
    Column("Mean confidence", "%"),
)


@dataclass(frozen=True)
class RunClasses:
    """One run's classes: those with the highest errors, and the others."""

    label: str
    sentence: str
    hardest: Table
    others: Table | None


@dataclass(frozen=True)
class Classes(Content):
    runs: tuple[RunClasses, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{TITLE}: {run.label}", (run.sentence, run.hardest, run.others)) for run in self.runs)


def classes(runs: Sequence[ReportedRun]) -> Classes | None:
    """None where no run's classes were counted."""
    found = tuple(_classes(run) for run in runs if run.results.classes)
    return Classes(found) if found else None


def _classes(run: ReportedRun) -> RunClasses:
    ordered = sorted(run.results.classes, key=lambda one: (-_error(one), -one.images))
    rows = tuple(map(_row, ordered))
    caption = f"{run.label}, on {run.images}"
    return RunClasses(
        label=run.label,
        sentence=_sentence(ordered),
        hardest=Table(caption, _COLUMNS, rows[:_SHOWN]),
        others=Table(f"{caption}: the other classes", _COLUMNS, rows[_SHOWN:]) if rows[_SHOWN:] else None,
    )


def _error(one: ClassFigures) -> float:
    return one.wrong / one.images if one.images else 0.0


def _sentence(ordered: Sequence[ClassFigures]) -> str:
    """`ordered` begins with the classes of the highest error."""
    hardest = ordered[0]
    if not hardest.wrong:
        return "No image is wrong."
    alike = sum(_error(one) == _error(hardest) for one in ordered)
    if alike > 1:
        share = "all" if hardest.wrong == hardest.images else with_sign(_error(hardest))
        return f"No class is the hardest: {alike:,} classes are wrong on {share} of their images."
    if hardest.wrong == 1:
        image = "its only image" if hardest.images == 1 else f"1 of its {hardest.images:,} images"
        return f"The hardest class is {hardest.name}: {image} is wrong. It is taken for {hardest.taken_for}."
    return (
        f"The hardest class is {hardest.name}: {hardest.wrong:,} of its {hardest.images:,} images are wrong. "
        f"They are taken most often for {hardest.taken_for} ({hardest.taken:,})."
    )


def _row(one: ClassFigures) -> Row:
    return plain_row(
        one.name,
        f"{one.images:,}",
        percent(one.wrong / one.images) if one.images else "–",
        f"{one.taken_for} ({one.taken:,})" if one.taken_for is not None else "–",
        f"{one.predicted:,}",
        percent(one.predicted_right / one.predicted) if one.predicted else "–",
        or_dash(percent, one.predicted_confidence),
    )
