"""What temperatures do: fitted on validation images, applied before or after averaging, or one for each member."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.rows import Pair, pairs_chart
from counterpoint.report.run import AGGREGATES, TEMPERATURES, ReportedRun, Summary, models
from counterpoint.report.tables import Table, lines, scores_table, with_sign

_WITHOUT = "no temperature"
_NAMES = {"before": "before averaging", "after": "after averaging", "per-member": "one per member"}

Summaries = dict[str, Summary]
"""The figures without a temperature and with each of the three."""


@dataclass(frozen=True)
class Recalibration:
    """One run with and without temperatures, ready for the template."""

    label: str
    words: tuple[str, ...]
    chart: Chart
    corrupted: tuple[Table, ...]  # one per aggregate, the headline first
    members: tuple[Table, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.chart.table, *self.corrupted, *self.members)


def recalibrations(runs: Sequence[ReportedRun]) -> tuple[Recalibration, ...]:
    return tuple(_recalibration(run, run.results["recalibrated"]) for run in runs if run.results.get("recalibrated"))


def _recalibration(run: ReportedRun, found: Mapping[str, Any]) -> Recalibration:
    # Of one network there is nothing to average: the three are the same.
    kinds = TEMPERATURES if run.is_ensemble else TEMPERATURES[:1]
    scaled = {_label(kind, found["ways"][kind]["temperature"], run): found["ways"][kind] for kind in kinds}
    is_shifted = run.is_corrupted and all(summary.get("corrupted") for summary in scaled.values())
    sets = {run.images: _clean(run, scaled)}
    if is_shifted:
        sets |= {f"{run.corrupted_images}, {name}": _shifted(run, scaled, name) for name in AGGREGATES}
    clean, *shifted = (_table(f"{run.label}: {images}", summaries) for images, summaries in sets.items())
    headlines = list(sets.items())[:2]
    return Recalibration(
        label=run.label,
        words=_words(found, is_shifted),
        chart=_chart(run, [summaries for _, summaries in headlines], clean),
        corrupted=tuple(shifted),
        members=tuple(_members_table(f"{run.label}: {images}", summaries) for images, summaries in headlines)
        if run.is_ensemble
        else (),
    )


def _label(kind: str, temperature: float | Sequence[float], run: ReportedRun) -> str:
    values = temperature if isinstance(temperature, Sequence) else [temperature]
    shown = f"T\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{', '.join(f'{value:.2f}' for value in values)}"
    return f"{_NAMES[kind]}, {shown}" if run.is_ensemble else shown


def _only_scores(summary: Summary) -> Summary:
    return {key: summary[key] for key in ("ensemble", "members")}


def _clean(run: ReportedRun, scaled: Mapping[str, Any]) -> Summaries:
    return {_WITHOUT: _only_scores(run.clean), **{name: summary["clean"] for name, summary in scaled.items()}}


def _shifted(run: ReportedRun, scaled: Mapping[str, Any], aggregate: str) -> Summaries:
    aggregated = {
        name: {
            "ensemble": summary["corrupted"]["ensemble"][aggregate],
            "members": [member[aggregate] for member in summary["corrupted"]["members"]],
        }
        for name, summary in scaled.items()
    }
    return {_WITHOUT: _only_scores(run.aggregate(aggregate)), **aggregated}


def _words(found: Mapping[str, Any], is_shifted: bool) -> tuple[str, ...]:
    on = found["fitted_on"]
    fitted = (
        f"Fitted by NLL on {on['images']:,} {on['part']} images of {on['dataset']} ({on['run']}), never on test images."
    )
    shifted = [f"Corrupted images: {found['corrupted_how']}."] if is_shifted and found.get("corrupted_how") else []
    return fitted, f"Clean images: {found['clean_how']}.", *shifted


def _table(caption: str, summaries: Summaries) -> Table:
    return scores_table(
        caption, "Temperature", [(name, "", next(models(summary))[1]) for name, summary in summaries.items()]
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
        "ECE in 15 equal-width bins" + (f", corrupted images {AGGREGATES[0]}." if len(sets) > 1 else "."),
        table,
    )


def _pair(name: str, clean: Summary, shifted: Summary | None = None) -> Pair:
    on_clean: float = clean["ensemble"]["ece_width15"]
    on_shifted: float | None = shifted["ensemble"]["ece_width15"] if shifted else None
    words = f"clean {with_sign(on_clean)}" + ("" if on_shifted is None else f", corrupted {with_sign(on_shifted)}")
    return Pair(name, on_clean, on_shifted, words)
