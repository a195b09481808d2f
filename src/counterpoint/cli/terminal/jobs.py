"""The states of jobs, as the terminal shows them."""

from collections import Counter
from collections.abc import Sequence

from rich.table import Table

from counterpoint.cli.terminal.progress import console
from counterpoint.launching.states import State
from counterpoint.records.figures import AggregateFigures, Figures

_HEADINGS = ("run", "state", "error", "ECE", "-C error", "-C ECE")


def print_states(states: Sequence[State]) -> None:
    """A table of all jobs, why some failed, and how many there are of each state."""
    console.print(_table(states), highlight=False)
    for state in states:
        if state.kind == "failed":
            # On a line of its own, however long: the log's path can then be copied.
            log = f"; its log is {state.job.log}" if state.job.log.exists() else ""
            console.print(
                f"{state.job.name} failed: {state.detail}{log}", highlight=False, markup=False, soft_wrap=True
            )
    console.print(counted(states), highlight=False)


def _table(states: Sequence[State]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in _HEADINGS:
        # Folded where the terminal is narrow: a name or a figure that is cut short is a wrong one.
        words = heading in _HEADINGS[:2]
        table.add_column(heading, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for state in states:
        detail = state.detail if state.kind != "failed" else ""
        table.add_row(state.job.name, ", ".join(filter(None, (state.kind, detail))), *_figures(state))
    return table


def counted(states: Sequence[State]) -> str:
    """How many there are of each state, in words."""
    counts = Counter(state.kind for state in states)
    runs = "1 run" if len(states) == 1 else f"{len(states)} runs"
    return f"{runs}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}"


def _figures(state: State) -> list[str]:
    results = state.results
    if results is None:
        return []
    corrupted = results.corrupted.aggregates.ensemble["by-corruption"] if results.corrupted else None
    return [*_percent(results.clean.ensemble), *_percent(corrupted)]


def _percent(scores: Figures | AggregateFigures | None) -> list[str]:
    return ["–", "–"] if scores is None else [f"{scores.error:.2%}", f"{scores.ece_width15:.2%}"]
