"""Is the whole network at work? The channels that training lost, and how far the members' factors lie apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.run import ReportedRun
from counterpoint.report.tables import Column, Entry, Row, Table, decimal, percent, with_sign

_LOST = (Column("Dead scales"), Column("Share", "%"), Column("Below eps"), Column("Share", "%"))
_SPREADS = (Column("Spread of r"), Column("Spread of s"))

Figures = Mapping[str, Any]


@dataclass(frozen=True)
class RunHealth:
    """One run's health over its epochs, ready for the template."""

    label: str
    sentence: str
    warnings: tuple[str, ...]
    table: Table


def healths(runs: Sequence[ReportedRun]) -> tuple[RunHealth, ...]:
    return tuple(_health(run, run.results["health"]) for run in runs if run.results.get("health"))


def _health(run: ReportedRun, found: Figures) -> RunHealth:
    channels, epochs = found["channels"], found["epochs"]
    spreads = any(_spreads(epoch) for epoch in epochs)
    return RunHealth(
        label=run.label,
        sentence=_sentence(channels, epochs[-1]),
        warnings=tuple(found["warnings"]),
        table=Table(
            f"{run.label}: lost channels by epoch",
            (Column("After epoch"), *_LOST, *(_SPREADS if spreads else ())),
            tuple(Row(str(epoch["epoch"]), _entries(channels, epoch, spreads)) for epoch in epochs),
        ),
    )


def _sentence(channels: int, last: Figures) -> str:
    if not channels:
        return "The network has no BatchNorm, and so no channel that could be lost in these ways."
    dead, below = (f"{last[key]:,} ({with_sign(last[key] / channels)})" for key in ("dead_scales", "below_eps"))
    return (
        f"After epoch {last['epoch']}, of {channels:,} channels {dead} are dead and {below} have a variance below eps."
    )


def _entries(channels: int, epoch: Figures, spreads: bool) -> tuple[Entry, ...]:
    lost = []
    for key in ("dead_scales", "below_eps"):
        lost += [Entry(f"{epoch[key]:,}"), Entry(percent(epoch[key] / channels) if channels else "–")]
    shown = [
        Entry("–" if value is None else decimal(value)) for value in (epoch.get("spread_r"), epoch.get("spread_s"))
    ]
    return (*lost, *(shown if spreads else ()))


def _spreads(epoch: Figures) -> bool:
    return epoch.get("spread_r") is not None or epoch.get("spread_s") is not None
