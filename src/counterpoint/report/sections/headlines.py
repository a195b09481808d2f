"""The headline figures of each run, on clean and on corrupted images."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.report.run import AGGREGATES, ReportedRun, Summary, models
from counterpoint.report.tables import percent, with_sign


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
    """One run's card, ready for the template."""

    label: str
    kind: str
    images: str
    groups: tuple[HeadlineGroup, ...]


def run_headlines(runs: Sequence[ReportedRun]) -> tuple[RunHeadlines, ...]:
    return tuple(RunHeadlines(run.label, _kind(run), run.images, _groups(run)) for run in runs)


def _kind(run: ReportedRun) -> str:
    return f"{len(run.clean['members'])} members" if run.is_ensemble else "one network"


def _groups(run: ReportedRun) -> tuple[HeadlineGroup, ...]:
    groups = [_group("Clean images", "", run.clean)]
    if run.is_corrupted:
        groups.append(_group("Corrupted images", f"-C, {AGGREGATES[0]}", run.aggregate(AGGREGATES[0])))
    return tuple(groups)


def _group(label: str, aggregate: str, summary: Summary) -> HeadlineGroup:
    calibration = ("15 equal-width bins", *_floor(summary))
    headlines = [_headline(summary, "Error", "error"), _headline(summary, "ECE", "ece_width15", *calibration)]
    if summary["disagreement"] is not None:
        headlines.append(Headline("Members disagree", with_sign(summary["disagreement"]), ("mean over pairs",)))
    return HeadlineGroup(label, aggregate, tuple(headlines), _verdict(summary["ensemble"]))


def _headline(summary: Summary, label: str, key: str, *beside: str) -> Headline:
    of_members = [scores[key] for scores in summary["members"]]
    if len(of_members) > 1:
        beside = (*beside, f"members {percent(min(of_members))} to {with_sign(max(of_members))}")
    return Headline(label, with_sign(summary["ensemble"][key]), beside)


def _floor(summary: Summary) -> tuple[str, ...]:
    floor = next(models(summary))[1].get("ece_width15_floor")
    return () if floor is None else (f"noise alone: {with_sign(floor)}",)


def _verdict(scores: dict[str, float]) -> str:
    confidence, accuracy = scores["mean_confidence"], 1 - scores["error"]
    points = percent(abs(confidence - accuracy))
    if points == percent(0):
        judgement = "on average neither over- nor under-confident"
    else:
        judgement = f"{'over' if confidence > accuracy else 'under'}-confident by {points} points"
    return f"On average {with_sign(confidence)} sure, and right {with_sign(accuracy)} of the time: {judgement}."
