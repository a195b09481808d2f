"""What was run, when, on what and with which versions, and how to do it again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Code, Content, Facts, Section
from counterpoint.report.suites import papers_suite, suites_of

_TITLE = "What was run"


@dataclass(frozen=True)
class RunProvenance:
    """Where one run comes from."""

    label: str
    facts: tuple[tuple[str, str], ...]
    commands: str
    config: str


@dataclass(frozen=True)
class Provenance(Content):
    runs: tuple[RunProvenance, ...]

    def blocks(self) -> Iterator[Block]:
        for run in self.runs:
            yield Block(f"{_TITLE}: {run.label}", (Facts(run.facts), "To do it again:", Code(run.commands)))


def provenance(runs: Sequence[ReportedRun]) -> Provenance:
    return Provenance(
        tuple(RunProvenance(run.label, facts(run), "\n".join(run.commands), _config(run)) for run in runs)
    )


def _config(run: ReportedRun) -> str:
    return json.dumps(run.results.config, indent=2, ensure_ascii=False)


def facts(run: ReportedRun) -> tuple[tuple[str, str], ...]:
    """What was run, when, on what and with which versions."""
    results, trained, evaluation = run.results, run.results.run, run.results.evaluation
    versions = {"counterpoint": results.counterpoint, **trained.versions}
    return (
        ("Experiment", results.experiment),
        *_ensemble(run),
        ("Seed", str(trained.seed)),
        ("Network", _network(results.config)),
        ("Trained", f"{_moment(trained.finished)}, in {_duration(trained.train_seconds)}, on {trained.device}"),
        (
            "Evaluated",
            f"{_moment(evaluation.finished)}, in {_duration(evaluation.seconds)}, with {evaluation.precision}",
        ),
        ("Clean set", run.images),
        *_corrupted_sets(run),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Commit", trained.commit or "not known"),
    )


def _ensemble(run: ReportedRun) -> Iterator[tuple[str, str]]:
    """Nothing for a single network."""
    members = len(run.clean.members)
    if run.results.is_deep:
        yield "Ensemble", f"deep ensemble: {members} separate networks"
    elif run.results.is_ensemble:
        yield "Ensemble", f"BatchEnsemble: {members} members with shared weights"


def _network(config: Mapping[str, Any]) -> str:
    """The model's name with its options. Configurations from before there were options do not have any."""
    options = [f"{key} {value}" for key, value in config.get("model_options", {}).items()]
    options += ["pretrained"] if config.get("pretrained") else []
    name = str(config.get("model", "not known"))
    return f"{name} ({', '.join(options)})" if options else name


def _corrupted_sets(run: ReportedRun) -> Iterator[tuple[str, str]]:
    papers = papers_suite(run)
    yield "Corrupted set", papers.images if papers else "not evaluated"
    for shifted in suites_of(run):
        if shifted != papers:
            yield f"Corrupted set, {shifted.called}", shifted.images


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


SECTION = Section("provenance", _TITLE, provenance, "sections/provenance.html")
