"""Is the whole network at work? The channels that training lost, and how far the members' factors lie apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.run import Run
from counterpoint.report.tables import Cell, Column, Row, Table, decimal, percent, with_sign

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


def healths(runs: Sequence[Run]) -> tuple[RunHealth, ...]:
    return tuple(_health(run, run.results["health"]) for run in runs if run.results.get("health"))


def _health(run: Run, found: Figures) -> RunHealth:
    channels, epochs = found["channels"], found["epochs"]
    spreads = any(_spreads(one) for one in epochs)
    return RunHealth(
        label=run.label,
        sentence=_sentence(channels, epochs[-1]),
        warnings=tuple(found["warnings"]),
        table=Table(
            f"{run.label}: lost channels by epoch",
            (Column("After epoch"), *_LOST, *(_SPREADS if spreads else ())),
            tuple(Row(str(one["epoch"]), _cells(channels, one, spreads)) for one in epochs),
        ),
    )


def _sentence(channels: int, last: Figures) -> str:
    if not channels:
        return "The network has no BatchNorm, and so no channel that could be lost in these ways."
    dead, below = (f"{last[key]:,} ({with_sign(last[key] / channels)})" for key in ("dead_scales", "below_eps"))
    return (
        f"After epoch {last['epoch']}, of {channels:,} channels {dead} are dead and {below} have a variance below eps."
    )


def _cells(channels: int, one: Figures, spreads: bool) -> tuple[Cell, ...]:
    lost = []
    for key in ("dead_scales", "below_eps"):
        lost += [Cell(f"{one[key]:,}"), Cell(percent(one[key] / channels) if channels else "–")]
    shown = [Cell("–" if value is None else decimal(value)) for value in (one.get("spread_r"), one.get("spread_s"))]
    return (*lost, *(shown if spreads else ()))


def _spreads(one: Figures) -> bool:
    return one.get("spread_r") is not None or one.get("spread_s") is not None
