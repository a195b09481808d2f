"""What was run, when, on what and with which versions, and how to do it again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.report.run import ReportedRun


@dataclass(frozen=True)
class Provenance:
    """Where one run comes from, ready for the template."""

    label: str
    facts: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]
    config: str


def provenances(runs: Sequence[ReportedRun]) -> tuple[Provenance, ...]:
    return tuple(Provenance(run.label, facts(run), run.commands, _config(run)) for run in runs)


def _config(run: ReportedRun) -> str:
    return json.dumps(run.results["config"], indent=2, ensure_ascii=False)


def facts(run: ReportedRun) -> tuple[tuple[str, str], ...]:
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
