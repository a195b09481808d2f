"""What was run, when, on what and with which versions, and how to do it again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.errors import some
from counterpoint.records.results import Imported
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Code, Content, Facts
from counterpoint.report.suites import papers_suite, suites_of

TITLE = "What was run"
_MOST_NAMES = 8


@dataclass(frozen=True)
class RunProvenance:
    """Where one run comes from."""

    label: str
    facts: tuple[tuple[str, str], ...]
    config: str  # empty where it is not known


@dataclass(frozen=True)
class Provenance(Content):
    runs: tuple[RunProvenance, ...]
    commands: str

    def blocks(self) -> Iterator[Block]:
        for run in self.runs:
            yield Block(f"{TITLE}: {run.label}", (Facts(run.facts),))
        yield Block("Commands that do it again", (Code(self.commands),))


def provenance(runs: Sequence[ReportedRun]) -> Provenance:
    of_runs = []
    for run in runs:
        config = json.dumps(run.results.config, indent=2, ensure_ascii=False) if run.results.config else ""
        of_runs.append(RunProvenance(run.label, facts(run), config))
    return Provenance(tuple(of_runs), "\n".join(_commands(runs)))


def _commands(runs: Sequence[ReportedRun]) -> Iterator[str]:
    """Each command once, under the run that was made by it first."""
    seen: set[str] = set()
    for run in runs:
        new = [command for command in run.commands if command not in seen]
        if new:
            yield from (f"# {run.label}", *new)
        seen.update(new)


def facts(run: ReportedRun) -> tuple[tuple[str, str], ...]:
    """What was run, when, on what and with which versions."""
    results, evaluation = run.results, run.results.evaluation
    made = results.run or evaluation
    versions = {"counterpoint": results.counterpoint, **made.versions}
    return (
        *(_imported(run, results.imported) if results.imported else _trained(run)),
        (
            "Evaluated",
            f"{_moment(evaluation.finished)}, in {_duration(evaluation.seconds)}, with {evaluation.precision}",
        ),
        ("Clean set", run.images),
        *(_given_sets(run) if results.imported else _corrupted_sets(run)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Commit", made.commit or "not known"),
    )


def _trained(run: ReportedRun) -> Iterator[tuple[str, str]]:
    trained = run.results.trained
    yield "Experiment", run.results.experiment
    members = len(run.clean.members)
    if run.results.is_deep:
        yield "Ensemble", f"deep ensemble: {members} separate networks"
    elif run.results.is_ensemble:
        yield "Ensemble", f"BatchEnsemble: {members} members with shared weights"
    yield "Seed", str(trained.seed)
    yield "Network", _network(run.results.config)
    yield (
        "Trained",
        f"from {_moment(trained.started)} to {_moment(trained.finished)}, {_duration(trained.train_seconds)} of "
        f"training, on {trained.device}",
    )


def _imported(run: ReportedRun, imported: Imported) -> Iterator[tuple[str, str]]:
    """Nothing is known of the training."""
    yield "Model", f"{run.results.experiment}, trained elsewhere"
    if run.results.is_ensemble:
        yield "Ensemble", f"{len(run.clean.members)} members, whose probabilities are averaged"
    yield "Predictions", f"from the file {imported.file}" if imported.file else "given as arrays in Python"
    yield "SHA-256", imported.sha256
    if imported.classes:
        yield "Classes", f"{len(imported.classes):,}: {some(imported.classes, _MOST_NAMES)}"
    yield "Read", _moment(imported.finished)


def _given_sets(run: ReportedRun) -> Iterator[tuple[str, str]]:
    if on := run.results.validated_on:
        yield "Validation set", f"{on.dataset}, {on.images:,} images"
    for shifted in suites_of(run):
        yield f"Given set: {shifted.called}", f"{shifted.made_of}, {shifted.figures.images:,} images per cell"


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
            yield f"{'Shift' if shifted.is_own else 'Corrupted set'}, {shifted.called}", shifted.images


def _moment(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
