"""What the page says about one run: figures with their captions and text alternatives, sentences, facts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from counterpoint.report.figures import equal_mass_figure, equal_width_figure
from counterpoint.report.run import AGGREGATES, Run, Summary, models
from counterpoint.report.tables import Table, bins_table, percent, with_sign


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
class Figure:
    svg: Markup
    caption: str
    table: Table


@dataclass(frozen=True)
class RunView:
    """One run, ready for the template."""

    label: str
    kind: str
    images: str
    groups: tuple[HeadlineGroup, ...]
    figures: tuple[Figure, ...]
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    config: str


def run_view(run: Run, mass_ticks: Sequence[int]) -> RunView:
    """`mass_ticks` are the percentages on the y axis of the equal-mass figure, the same for all runs of a page."""
    return RunView(
        label=run.label,
        kind=f"{len(run.clean['members'])} members" if run.is_ensemble else "one network",
        images=run.images,
        groups=_headline_groups(run),
        figures=(_equal_width(run), _equal_mass(run, mass_ticks)),
        facts=facts(run),
        commands=run.commands,
        config=json.dumps(run.results["config"], indent=2, ensure_ascii=False),
    )


def _headline_groups(run: Run) -> tuple[HeadlineGroup, ...]:
    groups = [_headline_group("Clean images", "", run.clean)]
    if run.is_corrupted:
        groups.append(_headline_group("Corrupted images", f"-C, {AGGREGATES[0]}", run.aggregate(AGGREGATES[0])))
    return tuple(groups)


def _headline_group(label: str, aggregate: str, summary: Summary) -> HeadlineGroup:
    calibration = ("15 equal-width bins", *_floor(summary))
    figures = [_headline(summary, "Error", "error"), _headline(summary, "ECE", "ece_width15", *calibration)]
    if summary["disagreement"] is not None:
        figures.append(Headline("Members disagree", with_sign(summary["disagreement"]), ("mean over pairs",)))
    return HeadlineGroup(label, aggregate, tuple(figures), _verdict(summary["ensemble"]))


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


def _equal_width(run: Run) -> Figure:
    bins, scores = run.clean["reliability"]["width15"], run.clean["ensemble"]
    caption = (
        f"Equal-width bins: ECE {with_sign(scores['ece_width15'])}, ECE-rms {with_sign(scores['ece_rms_width15'])}. "
        "Each bar is a bin of confidence, its height the share of right predictions, the whisker its 95 % interval; "
        "below, the images in each bin."
    )
    alternative = f"Reliability diagram of {run.label} with equal-width bins. {bins_in_words(bins)}"
    return Figure(
        equal_width_figure(bins, alternative),
        caption,
        bins_table(f"{run.label}: the 15 equal-width bins", bins, intervals=True),
    )


def _equal_mass(run: Run, ticks: Sequence[int]) -> Figure:
    bins, scores = run.clean["reliability"]["mass15"], run.clean["ensemble"]
    caption = (
        f"Equal-mass bins: ECE {with_sign(scores['ece_mass15'])}, ECE-rms {with_sign(scores['ece_rms_mass15'])}. "
        "Images in order of confidence, about the same number in each step; the shaded area is the ECE."
    )
    alternative = f"Reliability diagram of {run.label} with equal-mass bins. {bins_in_words(bins)}"
    return Figure(
        equal_mass_figure(bins, ticks, alternative),
        caption,
        bins_table(f"{run.label}: the 15 equal-mass bins", bins, intervals=True),
    )


def bins_in_words(bins: Sequence[dict[str, Any]]) -> str:
    """A diagram as text: what fills it, and where confidence and accuracy are furthest apart."""
    total = sum(row["count"] for row in bins)
    over = sum(row["count"] for row in bins if row["confidence"] > row["accuracy"])
    widest = max(bins, key=lambda row: abs(row["confidence"] - row["accuracy"]))
    return (
        f"Bins that hold images: {len(bins)}. {with_sign(over / total)} of the images lie in bins where confidence "
        f"exceeds accuracy. The widest gap (images: {widest['count']:,}) is between mean confidence "
        f"{with_sign(widest['confidence'])} and accuracy {with_sign(widest['accuracy'])}."
    )


def facts(run: Run) -> tuple[tuple[str, str], ...]:
    """What was run, when, on what and with which versions."""
    results, trained, evaluation = run.results, run.results["run"], run.results["evaluation"]
    versions = {"counterpoint": results["counterpoint"], **trained["versions"]}
    named = {
        "Experiment": results["experiment"],
        "Seed": str(trained["seed"]),
        "Trained": f"{_moment(trained['finished'])}, in {_duration(trained['train_seconds'])}, on {trained['device']}",
        "Evaluated": (
            f"{_moment(evaluation['finished'])}, in {_duration(evaluation['seconds'])}, with {evaluation['precision']}"
        ),
        "Clean set": run.images,
        "Corrupted set": run.corrupted_images if run.is_corrupted else "not evaluated",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Commit": trained["commit"] or "not known",
    }
    return tuple(named.items())


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
