"""Does a run notice images of none of its classes? How well confidence tells them from known images."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.outside import ByConfidence, Outside, Separation, Signal
from counterpoint.records.threshold import KeptOutside
from counterpoint.report.numbers import decimal, or_dash, percent, with_sign
from counterpoint.report.run import ReportedRun, grouped
from counterpoint.report.section import Block, Content
from counterpoint.report.suites import counted
from counterpoint.report.tables import Column, Entry, Row, Table, plain_row

TITLE = "Outside images"
SIGNALS: dict[Signal, str] = {"entropy_of_mean": "entropy", "mutual_information": "mutual information"}
"""What each is called in words."""
_CONFIDENCE = "confidence"
_SCORED_BY, _AUROC = Column("Scored by"), Column("AUROC", "0.5 to 1")
_SHARES = (Column("FPR", "at 95 % TPR, %"), Column("Confidence", "mean, %"))
_KEPT = Column("Kept", "at the threshold, %")


@dataclass(frozen=True)
class OutsideRun:
    """One run and one set of outside images."""

    run: ReportedRun
    name: str
    figures: Outside

    @property
    def source(self) -> str:
        """How many images there are, and where they come from."""
        images = counted(self.figures.images, "image")
        if self.figures.key is not None:
            return f"{images}, named with --outside (key {self.figures.key[:8]})"
        return f"{images}, as given" if self.run.results.imported else f"{images} of the test set"

    @property
    def kept(self) -> KeptOutside | None:
        """What the run's threshold keeps of them, if it has one."""
        found = self.run.evaluated.thresholded
        return found.outside.get(self.name) if found else None

    @property
    def words(self) -> str:
        """The figures that a user feels; empty for results of an earlier version, which have none of them."""
        found, known = self.figures.ensemble, self.run.clean.ensemble.mean_confidence
        if found.fpr95 is None or found.mean_confidence is None:
            return ""
        kept = ""
        if self.kept is not None:
            kept = f" Its threshold keeps {with_sign(self.kept.share)} of them."
        return (
            f"{self.run.label}: at a confidence that accepts 95\N{NO-BREAK SPACE}% of the known images, "
            f"{with_sign(found.fpr95)} of {self.name} are accepted too. The mean confidence is {with_sign(known)} on "
            f"known images and {with_sign(found.mean_confidence)} on {self.name}.{kept}"
        )


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
        return (Block(f"{TITLE}: {one.name}", (*one.words, one.table)) for one in self.sets)


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


def outside_of(run: ReportedRun) -> list[OutsideRun]:
    return [OutsideRun(run, name, figures) for name, figures in run.results.outside.items()]


def by_outside(runs: Iterable[ReportedRun]) -> list[list[OutsideRun]]:
    """The runs that may be compared: with the same outside images and the same known images."""

    def same(one: OutsideRun) -> tuple[object, ...]:
        known, figures = one.run.results.evaluated_on, one.figures
        return known, figures.images, figures.key or (one.name, one.run.results.imported is None)

    return list(grouped([one for run in runs for one in outside_of(run)], same).values())


def set_table(group: Sequence[OutsideRun]) -> Table:
    """All runs on one set of outside images, with their members."""
    kept = [_KEPT] if any(one.kept for one in group) else []
    rows = [row for one in group for row in _rows(one, has_kept=bool(kept))]
    caption = f"{group[0].name}: {group[0].source}, told from the known images ({group[0].run.images})"
    return Table(caption, (Column("Model"), _SCORED_BY, _AUROC, *_SHARES, *kept), tuple(rows))


def _rows(one: OutsideRun, *, has_kept: bool) -> Iterator[Row]:
    """The run by each number that it has, and its members by their confidence."""
    lines = [(one.run.label if by == _CONFIDENCE else "", by, found) for by, found in _scored(one.figures)]
    if one.run.results.is_ensemble:
        lines += [(f"member {i}", _CONFIDENCE, member) for i, member in enumerate(one.figures.members, start=1)]
    for number, (label, by, found) in enumerate(lines):
        kept = [or_dash(percent, one.kept.share if one.kept and not number else None)] if has_kept else []
        auroc = Entry(decimal(found.auroc), below=_interval(found))
        entries = (Entry(by), auroc, *map(Entry, (*_shares(found), *kept)))
        yield Row(label, entries, "member" if number else "run")


def run_table(run: ReportedRun) -> Table | None:
    """One run on all its sets of outside images, for the terminal; None if it has none."""
    rows = [
        plain_row(
            one.name if by == _CONFIDENCE else "", by, decimal(found.auroc), _interval(found) or "–", *_shares(found)
        )
        for one in outside_of(run)
        for by, found in _scored(one.figures)
    ]
    caption = f"outside images, told from the known ones ({run.images}), which are the positives"
    columns = (Column("Images"), _SCORED_BY, Column("AUROC"), Column("Interval", "95 %"), *_SHARES)
    return Table(caption, columns, tuple(rows)) if rows else None


def sets_in_words(run: ReportedRun) -> list[str]:
    """What each set of outside images is, and that all of it depends on which images these are."""
    words = [f"{one.name}: {one.source}." for one in outside_of(run)]
    return [*words, "Other outside images can give other figures."] if words else []


def _scored(figures: Outside) -> Iterator[tuple[str, Separation]]:
    """The whole ensemble by each number that it has."""
    yield _CONFIDENCE, figures.ensemble
    for signal, found in (figures.signals or {}).items():
        yield SIGNALS[signal], found


def _shares(found: Separation) -> list[str]:
    confidence = found.mean_confidence if isinstance(found, ByConfidence) else None
    return [or_dash(percent, found.fpr95), or_dash(percent, confidence)]


def _interval(found: Separation) -> str:
    if found.auroc_low is None or found.auroc_high is None:
        return ""
    return f"{decimal(found.auroc_low)} to {decimal(found.auroc_high)}"
