"""What the page says about one run: figures with their captions and text alternatives, sentences, facts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from counterpoint.report.figures import equal_mass_figure, equal_width_figure
from counterpoint.report.tables import Run, Table, bins_table, percent, with_sign


@dataclass(frozen=True)
class Headline:
    label: str
    value: str
    beside: tuple[str, ...]


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
    headlines: tuple[Headline, ...]
    verdict: str
    figures: tuple[Figure, ...]
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    config: str


def run_view(run: Run, mass_ticks: Sequence[int]) -> RunView:
    """`mass_ticks` are the percentages on the y axis of the equal-mass figure, the same for all runs of a page."""
    results = run.results
    return RunView(
        label=run.label,
        kind=f"{len(run.clean['members'])} members" if run.is_ensemble else "one network",
        images=run.images,
        headlines=_headlines(run),
        verdict=_verdict(run.clean["ensemble"]),
        figures=(_equal_width(run), _equal_mass(run, mass_ticks)),
        facts=_facts(results),
        commands=(results["run"]["command"], results["evaluation"]["command"]),
        config=json.dumps(results["config"], indent=2, ensure_ascii=False),
    )


def _headlines(run: Run) -> tuple[Headline, ...]:
    figures = [_headline(run, "Error", "error"), _headline(run, "ECE", "ece_width15", "15 equal-width bins")]
    disagreement = run.clean["disagreement"]
    if disagreement is not None:
        figures.append(Headline("Members disagree", with_sign(disagreement), ("mean over pairs",)))
    return tuple(figures)


def _headline(run: Run, label: str, key: str, *beside: str) -> Headline:
    if run.is_ensemble:
        of_members = [scores[key] for scores in run.clean["members"]]
        beside = (*beside, f"members {percent(min(of_members))} to {with_sign(max(of_members))}")
    return Headline(label, with_sign(run.clean["ensemble"][key]), beside)


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
        "Each bar is a bin of confidence, its height the share of right predictions; below, the images in each bin."
    )
    alternative = f"Reliability diagram of {run.label} with equal-width bins. {_in_words(bins)}"
    return Figure(
        equal_width_figure(bins, alternative), caption, bins_table(f"{run.label}: the 15 equal-width bins", bins)
    )


def _equal_mass(run: Run, ticks: Sequence[int]) -> Figure:
    bins, scores = run.clean["reliability"]["mass15"], run.clean["ensemble"]
    caption = (
        f"Equal-mass bins: ECE {with_sign(scores['ece_mass15'])}, ECE-rms {with_sign(scores['ece_rms_mass15'])}. "
        "Images in order of confidence, about the same number in each step; the shaded area is the ECE."
    )
    alternative = f"Reliability diagram of {run.label} with equal-mass bins. {_in_words(bins)}"
    return Figure(
        equal_mass_figure(bins, ticks, alternative), caption, bins_table(f"{run.label}: the 15 equal-mass bins", bins)
    )


def _in_words(bins: Sequence[dict[str, Any]]) -> str:
    """A diagram as text: what fills it, and where confidence and accuracy are furthest apart."""
    total = sum(row["count"] for row in bins)
    over = sum(row["count"] for row in bins if row["confidence"] > row["accuracy"])
    widest = max(bins, key=lambda row: abs(row["confidence"] - row["accuracy"]))
    return (
        f"Bins that hold images: {len(bins)}. {with_sign(over / total)} of the images lie in bins where confidence "
        f"exceeds accuracy. The widest gap (images: {widest['count']:,}) is between mean confidence "
        f"{with_sign(widest['confidence'])} and accuracy {with_sign(widest['accuracy'])}."
    )


def _facts(results: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    run, evaluation = results["run"], results["evaluation"]
    versions = {"counterpoint": results["counterpoint"], **run["versions"]}
    return (
        ("Experiment", results["experiment"]),
        ("Seed", str(run["seed"])),
        ("Trained", f"{_moment(run['finished'])}, in {_duration(run['train_seconds'])}, on {run['device']}"),
        (
            "Evaluated",
            f"{_moment(evaluation['finished'])}, in {_duration(evaluation['seconds'])}, with {evaluation['precision']}",
        ),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Commit", run["commit"] or "not known"),
    )


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
