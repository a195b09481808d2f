"""Is the whole network at work? The channels that training lost, and how far the members' factors lie apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.results import HealthAfter, HealthRecord
from counterpoint.report.numbers import decimal, or_dash, percent, with_sign
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content
from counterpoint.report.tables import Column, Table, plain_row

TITLE = "Lost channels"
_LOST = (Column("Dead scales"), Column("Share", "%"), Column("Below eps"), Column("Share", "%"))
_SPREADS = (Column("Spread of r"), Column("Spread of s"))


@dataclass(frozen=True)
class RunHealth:
    """One run's health over its epochs."""

    label: str
    sentence: str
    warnings: tuple[str, ...]
    table: Table


@dataclass(frozen=True)
class Health(Content):
    runs: tuple[RunHealth, ...]

    @property
    def has_spreads(self) -> bool:
        """Whether a run has members with factors."""
        return any(_SPREADS[0] in run.table.columns for run in self.runs)

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{TITLE}: {run.label}", (run.sentence, *run.warnings, run.table)) for run in self.runs)


def health(runs: Sequence[ReportedRun]) -> Health | None:
    """None where no run's health was recorded."""
    found = tuple(_health(run.label, record) for run in runs if (record := run.results.health) is not None)
    return Health(found) if found else None


def _health(label: str, record: HealthRecord) -> RunHealth:
    channels, epochs = record.channels, record.epochs
    spreads = any(value is not None for epoch in epochs for value in (epoch.spread_r, epoch.spread_s))
    places = {0: " (start)", len(epochs) - 1: " (end)"}
    return RunHealth(
        label=label,
        sentence=" ".join(filter(None, (_sentence(channels, epochs[-1]), _started(channels, epochs)))),
        warnings=record.warnings,
        table=Table(
            f"{label}: lost channels by epoch",
            (Column("After epoch"), *_LOST, *(_SPREADS if spreads else ())),
            tuple(
                plain_row(f"{epoch.epoch}{places.get(i, '')}", *_texts(channels, epoch, spreads))
                for i, epoch in enumerate(epochs)
            ),
        ),
    )


def _sentence(channels: int, last: HealthAfter) -> str:
    if not channels:
        return "The network has no BatchNorm, and so no channel that could be lost in these ways."
    dead, below = (f"{count:,} ({with_sign(count / channels)})" for count in (last.dead_scales, last.below_eps))
    return (
        f"At the end of training (after epoch {last.epoch}), {dead} of {channels:,} channels are dead, and {below} "
        "have a variance below eps."
    )


def _started(channels: int, epochs: Sequence[HealthAfter]) -> str:
    """How it was at the start, so that one sees what training changed; empty where there is nothing to compare."""
    first = epochs[0]
    if not channels or len(epochs) == 1:
        return ""
    return (
        f"At the start (after epoch {first.epoch}), {first.dead_scales:,} were dead, and {first.below_eps:,} had a "
        "variance below eps."
    )


def _texts(channels: int, epoch: HealthAfter, spreads: bool) -> Iterator[str]:
    for count in (epoch.dead_scales, epoch.below_eps):
        yield f"{count:,}"
        yield percent(count / channels) if channels else "–"
    if spreads:
        yield from (or_dash(decimal, value) for value in (epoch.spread_r, epoch.spread_s))
