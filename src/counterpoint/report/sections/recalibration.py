"""What temperatures do: fitted on validation images, applied before or after averaging, or one for each member."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Aggregate, Summary
from counterpoint.records.recalibrated import Recalibrated, Scaled, ScaledCorrupted, TemperatureKind
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.rows import Pair, pairs_chart
from counterpoint.report.run import AGGREGATES, HEADLINE, TEMPERATURES, ReportedRun, whole_scores
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import ShiftedRun, papers_suite
from counterpoint.report.tables import (
    Column,
    Entry,
    Row,
    Table,
    decimal,
    lines,
    percent,
    scores_table,
    with_sign,
)

_TITLE = "With a temperature"
_WITHOUT = "no temperature"
_NAMES: dict[TemperatureKind, str] = {
    "before": "before averaging",
    "after": "after averaging",
    "per-member": "one per member",
}

Summaries = dict[str, Summary]
"""The figures without a temperature and with each kind of it."""


@dataclass(frozen=True)
class RunRecalibration:
    """One run with and without temperatures."""

    label: str
    words: tuple[str, ...]
    chart: Chart
    corrupted: tuple[Table, ...]  # one per aggregate, the headline first
    members: tuple[Table, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.chart.table, *self.corrupted, *self.members)


@dataclass(frozen=True)
class Recalibration(Content):
    runs: tuple[RunRecalibration, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{_TITLE}: {run.label}", (*run.words, *run.tables)) for run in self.runs)


def recalibration(runs: Sequence[ReportedRun]) -> Recalibration | None:
    """None where no run was recalibrated."""
    found = tuple(_of_run(run, scaled) for run in runs if (scaled := run.evaluated.recalibrated) is not None)
    return Recalibration(found) if found else None


def temperatures_table(recalibrated: Recalibrated) -> Table:
    """The ensemble's NLL and ECE with each kind of temperature."""
    ways = {kind: recalibrated.ways[kind] for kind in _kinds(recalibrated)}
    is_shifted = _is_shifted(recalibrated)
    shifted = f"; -C {HEADLINE}: {recalibrated.corrupted_how}" if is_shifted else ""
    columns = [Column("Temperature"), Column("T"), Column("NLL", "nats"), Column("ECE", "%")]
    if is_shifted:
        columns += [Column("NLL on -C", "nats"), Column("ECE on -C", "%")]
    return Table(
        f"with temperatures; clean: {recalibrated.clean_how}{shifted}; 15 equal-width bins",
        tuple(columns),
        tuple(Row(_NAMES[kind] if len(ways) > 1 else "network", _headline(scaled)) for kind, scaled in ways.items()),
    )


def _headline(scaled: Scaled) -> tuple[Entry, ...]:
    figures = [scaled.clean.ensemble, *([scaled.corrupted.ensemble[HEADLINE]] if scaled.corrupted else [])]
    shown = [text for one in figures for text in (decimal(one.nll), percent(one.ece_width15))]
    return tuple(map(Entry, (_temperatures(scaled), *shown)))


def _kinds(recalibrated: Recalibrated) -> tuple[TemperatureKind, ...]:
    """Of one network there is nothing to average: the three are the same."""
    several = len(recalibrated.ways[TEMPERATURES[0]].clean.members) > 1
    return TEMPERATURES if several else TEMPERATURES[:1]


def _is_shifted(recalibrated: Recalibrated) -> bool:
    return all(recalibrated.ways[kind].corrupted for kind in _kinds(recalibrated))


def _of_run(run: ReportedRun, found: Recalibrated) -> RunRecalibration:
    scaled = {_label(kind, found.ways[kind], run): found.ways[kind] for kind in _kinds(found)}
    shifted = papers_suite(run) if _is_shifted(found) else None
    sets = {run.images: _clean(run, scaled)}
    if shifted:
        sets |= {f"{shifted.images}, {name}": _shifted(shifted, scaled, name) for name in AGGREGATES}
    clean, *others = (_table(f"{run.label}: {images}", summaries) for images, summaries in sets.items())
    headlines = list(sets.items())[:2]
    return RunRecalibration(
        label=run.label,
        words=_words(found, shifted is not None),
        chart=_chart(run, [summaries for _, summaries in headlines], clean),
        corrupted=tuple(others),
        members=tuple(_members_table(f"{run.label}: {images}", summaries) for images, summaries in headlines)
        if run.results.is_ensemble
        else (),
    )


def _label(kind: TemperatureKind, scaled: Scaled, run: ReportedRun) -> str:
    shown = f"T\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{_temperatures(scaled)}"
    return f"{_NAMES[kind]}, {shown}" if run.results.is_ensemble else shown


def _temperatures(scaled: Scaled) -> str:
    return ", ".join(f"{value:.2f}" for value in scaled.temperatures)


def clean_summary(scaled: Scaled) -> Summary:
    return Summary(ensemble=scaled.clean.ensemble, members=scaled.clean.members, disagreement=None)


def aggregate_summary(corrupted: ScaledCorrupted, aggregate: Aggregate) -> Summary:
    members = tuple(member[aggregate] for member in corrupted.members)
    return Summary(ensemble=corrupted.ensemble[aggregate], members=members, disagreement=None)


def _only_scores(summary: Summary) -> Summary:
    """As much as there is with a temperature."""
    return Summary(ensemble=summary.ensemble, members=summary.members, disagreement=None)


def _clean(run: ReportedRun, scaled: Mapping[str, Scaled]) -> Summaries:
    return {_WITHOUT: _only_scores(run.clean)} | {name: clean_summary(one) for name, one in scaled.items()}


def _shifted(shifted: ShiftedRun, scaled: Mapping[str, Scaled], aggregate: Aggregate) -> Summaries:
    with_temperatures = {
        name: aggregate_summary(one.corrupted, aggregate) for name, one in scaled.items() if one.corrupted
    }
    return {_WITHOUT: _only_scores(shifted.aggregate(aggregate)), **with_temperatures}


def _words(found: Recalibrated, is_shifted: bool) -> tuple[str, ...]:
    on = found.fitted_on
    fitted = (
        f"Fitted by NLL on {on.images.images:,} {on.images.part} images of {on.images.dataset} ({on.run}), "
        "never on test images."
    )
    shifted = [f"Corrupted images: {found.corrupted_how}."] if is_shifted else []
    return fitted, f"Clean images: {found.clean_how}.", *shifted


def _table(caption: str, summaries: Summaries) -> Table:
    return scores_table(
        caption, "Temperature", [(name, "", whole_scores(summary)) for name, summary in summaries.items()]
    )


def _members_table(caption: str, summaries: Summaries) -> Table:
    rows = [line for name, summary in summaries.items() for line in lines(name, summary)]
    return scores_table(f"{caption}, with each member", "Temperature", rows)


def _chart(run: ReportedRun, sets: Sequence[Summaries], table: Table) -> Chart:
    """`sets` are the clean images and, where there are some, the corrupted ones."""
    rows = [_pair(name, *(summaries[name] for summaries in sets)) for name in sets[0]]
    words = "; ".join(f"{row.label}: {row.words}" for row in rows)
    return Chart(
        pairs_chart(rows, f"ECE of {run.label} with and without temperatures. {words}."),
        "ECE in 15 equal-width bins" + (f", corrupted images {HEADLINE}." if len(sets) > 1 else "."),
        table,
    )


def _pair(name: str, clean: Summary, shifted: Summary | None = None) -> Pair:
    on_clean = clean.ensemble.ece_width15
    on_shifted = shifted.ensemble.ece_width15 if shifted else None
    words = f"clean {with_sign(on_clean)}" + ("" if on_shifted is None else f", corrupted {with_sign(on_shifted)}")
    return Pair(name, on_clean, on_shifted, words)


SECTION = Section("recalibration", _TITLE, recalibration, "sections/recalibration.html")
