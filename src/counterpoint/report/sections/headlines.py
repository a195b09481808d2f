"""The headline figures of each run, on clean and on corrupted images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Figures, Summary
from counterpoint.report.run import HEADLINE, ReportedRun, Scores, models, whole_scores
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import ShiftedRun, listed, suites_of
from counterpoint.report.tables import Column, Entry, Row, Table, or_dash, percent, signed, with_sign

_TITLE = "Headline figures"
_COLUMNS = (
    Column("Model"),
    Column("Images"),
    Column("Error", "%"),
    Column("ECE", "%"),
    Column("Noise floor", "%"),
    Column("Excess", "points"),
    Column("ECE-rms", "%"),
)


@dataclass(frozen=True)
class Headline:
    label: str
    value: str
    beside: tuple[str, ...]


@dataclass(frozen=True)
class HeadlineGroup:
    """The headline figures of one set of images."""

    label: str
    aggregate: str  # how the figures of several cells became one; empty for one set
    headlines: tuple[Headline, ...]
    verdict: str


@dataclass(frozen=True)
class RunHeadlines:
    """One run's card, and its figures as a table."""

    label: str
    kind: str
    images: str
    groups: tuple[HeadlineGroup, ...]
    table: Table

    @property
    def verdicts(self) -> tuple[str, ...]:
        return tuple(f"{group.label}: {group.verdict}" for group in self.groups)


@dataclass(frozen=True)
class Headlines(Content):
    runs: tuple[RunHeadlines, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{_TITLE}: {run.label}", (run.table, *run.verdicts)) for run in self.runs)


def headlines(runs: Sequence[ReportedRun]) -> Headlines:
    return Headlines(
        tuple(RunHeadlines(run.label, _kind(run), run.images, _groups(run), headline_table(run)) for run in runs)
    )


def headline_table(run: ReportedRun) -> Table:
    """The ensemble's and its members' figures on clean images, and on each suite by-corruption."""
    on, called = run.results.evaluated_on, [shifted.called for shifted in suites_of(run)]
    suites = f", and on {listed(called)} {HEADLINE}" if called else ""
    sets = {"clean": run.clean} | {shifted.called: shifted.aggregate(HEADLINE) for shifted in suites_of(run)}
    by_model = zip(*(models(summary) for summary in sets.values()), strict=True)
    return Table(
        f"{run.label} on {on.images:,} {on.dataset} {on.part} images{suites}; 15 equal-width bins",
        _COLUMNS,
        tuple(
            Row(_model(run, name) if images == "clean" else "", (Entry(images), *_entries(scores)))
            for of_model in by_model
            for images, (name, scores) in zip(sets, of_model, strict=True)
        ),
    )


def suites_in_words(run: ReportedRun) -> list[str]:
    """What each suite is made of."""
    return [_suite_in_words(shifted) for shifted in suites_of(run)]


def _suite_in_words(shifted: ShiftedRun) -> str:
    images = f" of {shifted.figures.images:,} {shifted.figures.part} images"
    return f"{shifted.called}: {shifted.made_of}{'' if shifted.is_own else images}, {shifted.source}."


def _entries(scores: Scores) -> tuple[Entry, ...]:
    shown = (
        or_dash(percent, scores["error"]),
        or_dash(percent, scores["ece_width15"]),
        or_dash(percent, scores.get("ece_width15_floor")),
        or_dash(signed, scores.get("ece_width15_excess")),
        or_dash(percent, scores["ece_rms_width15"]),
    )
    return tuple(map(Entry, shown))


def _model(run: ReportedRun, name: str) -> str:
    """What was trained elsewhere need not be a network."""
    return "model" if run.results.imported and name == "network" else name


def _kind(run: ReportedRun) -> str:
    elsewhere = ", trained elsewhere" if run.results.imported else ""
    if not run.results.is_ensemble:
        return f"one {_model(run, 'network')}{elsewhere}"
    return f"{len(run.clean.members)} {'separate networks' if run.results.is_deep else 'members'}{elsewhere}"


def _groups(run: ReportedRun) -> tuple[HeadlineGroup, ...]:
    groups = [_group("Clean images", "", run.clean)]
    for shifted in suites_of(run):
        part = "" if shifted.figures.part == "test" else f"{shifted.figures.part} "
        label = f"Corrupted {part}images" if shifted.is_ours else "Shifted images"
        names = [shifted.called] if shifted.called != label.lower() else []
        names += [HEADLINE] if shifted.cells > 1 else []
        groups.append(_group(label, ", ".join(names), shifted.aggregate(HEADLINE)))
    return tuple(groups)


def _group(label: str, aggregate: str, summary: Summary) -> HeadlineGroup:
    errors = [figures.error for figures in summary.members]
    eces = [figures.ece_width15 for figures in summary.members]
    calibration = ("15 equal-width bins", *_floor(summary))
    headlines = [
        _headline("Error", summary.ensemble.error, errors),
        _headline("ECE", summary.ensemble.ece_width15, eces, *calibration),
    ]
    if summary.disagreement is not None:
        headlines.append(Headline("Members disagree", with_sign(summary.disagreement), ("mean over pairs",)))
    return HeadlineGroup(label, aggregate, tuple(headlines), _verdict(summary.ensemble))


def _headline(label: str, value: float, of_members: Sequence[float], *beside: str) -> Headline:
    if len(of_members) > 1:
        beside = (*beside, f"members {percent(min(of_members))} to {with_sign(max(of_members))}")
    return Headline(label, with_sign(value), beside)


def _floor(summary: Summary) -> tuple[str, ...]:
    floor = whole_scores(summary).get("ece_width15_floor")
    return () if floor is None else (f"noise alone: {with_sign(floor)}",)


def _verdict(figures: Figures) -> str:
    confidence, accuracy = figures.mean_confidence, 1 - figures.error
    points = percent(abs(confidence - accuracy))
    if points == percent(0):
        judgement = "on average neither over- nor under-confident"
    else:
        judgement = f"{'over' if confidence > accuracy else 'under'}-confident by {points} points"
    return f"On average {with_sign(confidence)} sure, and right {with_sign(accuracy)} of the time: {judgement}."


SECTION = Section("headlines", _TITLE, headlines, "sections/headlines.html", is_listed=False)
