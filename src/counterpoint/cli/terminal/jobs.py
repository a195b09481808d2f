"""The states of jobs, as the terminal shows them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from rich.measure import Measurement
from rich.table import Table

from counterpoint.cli.terminal.progress import console, say
from counterpoint.errors import some
from counterpoint.experiments import config_hash
from counterpoint.launching.states import State
from counterpoint.records.figures import AggregateFigures, Figures
from counterpoint.records.images import Shift
from counterpoint.records.results import Results
from counterpoint.reproduction.tables import cells_in_words
from counterpoint.storage.folders import quoted

_HEADINGS = ("error", "ECE", "-C error", "-C ECE")
_LEAST_WIDTH = 20
"""Of the names in a very narrow terminal."""


def print_states(states: Sequence[State]) -> None:
    """A table of all jobs, why some failed, and how many there are of each state."""
    rows = [(state.job.name, _state_in_words(state), *_figures(state)) for state in states]
    _print_named(rows, ("run", "state"), _HEADINGS)
    for state in states:
        if state.kind == "failed":
            # On a line of its own, however long: the log's path can then be copied.
            log = f"; its log is {state.job.log}" if state.job.log.exists() else ""
            say(f"{state.job.name} failed: {state.detail}{log}")
    for sentence in unlike_images(states):
        say(sentence)
    console.print(counted(states), highlight=False)


def _state_in_words(state: State) -> str:
    return f"{state.kind}, {state.detail}" if state.detail and state.kind != "failed" else state.kind


def _print_named(rows: Sequence[Sequence[str]], words: Sequence[str], figures: Sequence[str], title: str = "") -> None:
    """A table whose first column has names. They are folded into the room that the other columns leave.

    A name or a figure that is cut short is a wrong one. So the table is wider than the terminal if it must be.
    """

    def drawn(width: int | None) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, title=title or None, title_justify="left")
        for heading in (*words, *figures):
            table.add_column(heading, justify="left" if heading in words else "right", no_wrap=True)
        for name, *others in rows:
            table.add_row(fold(name, width) if width else "", *others)
        return table

    others = _width(drawn(None)) - len(words[0])
    table = drawn(max(_LEAST_WIDTH, console.width - others))
    table.width = _width(table)
    console.print(table, highlight=False, crop=False)


def _width(table: Table) -> int:
    return Measurement.get(console, console.options.update(max_width=1_000), table).maximum


def fold(name: str, width: int) -> str:
    """The name in lines of this width: broken between settings or, if one is too long, after its = and commas."""
    lines = [""]
    for setting in re.split(r"(?<=__)", name):
        for part in [setting] if len(setting) <= width else re.split(r"(?<=[=,/])", setting):
            if lines[-1] and len(lines[-1]) + len(part) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(lines)


def unlike_images(states: Sequence[State]) -> Iterator[str]:
    """Of each data set, which runs were evaluated on other corrupted images than others, if any were."""
    found: dict[str, dict[Shift, list[str]]] = {}
    for state in states:
        if state.results and state.results.corrupted:
            runs = found.setdefault(state.results.evaluated_on.dataset, {})
            runs.setdefault(state.results.corrupted.shift, []).append(state.job.name)
    for dataset, runs in found.items():
        if len(runs) > 1:
            sets = "; ".join(f"{cells_in_words(shift)}: {some(names)}" for shift, names in runs.items())
            differ = len({shift.images for shift in runs}) > 1
            more = "; `counterpoint evaluate RUN` evaluates a run on all images" if differ else ""
            yield (
                f"The figures on -C of {dataset} cannot be compared, because they are not of the same images ({sets})"
                f"{more}"
            )


def print_seeds(states: Sequence[State]) -> None:
    """A table of the experiments that have the results of several seeds, and how two of them are compared; nothing
    where none has."""
    groups: dict[tuple[str, str], list[State]] = {}
    for state in states:
        if state.results:
            experiment = state.job.experiment
            groups.setdefault((experiment.name, config_hash(experiment)), []).append(state)
    several = [group for group in groups.values() if len(group) > 1]
    rows = [
        (
            _without_seed(group[0].job.name) or group[0].job.name,
            str(len(group)),
            *_over_seeds([state.results for state in group if state.results]),
        )
        for group in several
    ]
    if rows:
        console.print()
        title = "mean ± standard deviation over seeds, in %"
        _print_named(rows, ("runs",), ("seeds", *_HEADINGS), title)
    names = [name for group in several if (name := _without_seed(str(group[0].job.folder)))]
    if len(names) > 1:
        say(f"over seeds: `counterpoint compare {quoted(names[0])} {quoted(names[1])}`")


def _without_seed(name: str) -> str:
    """What the runs of one experiment are called together; empty where their names do not show it."""
    return name.rpartition("__seed=")[0]


def _over_seeds(results: Sequence[Results]) -> Iterator[str]:
    """Error and ECE, clean and under corruption: a dash where the runs were not evaluated on the same images."""
    cells = [one.corrupted for one in results if one.corrupted]
    yield from _spreads(
        [one.clean.ensemble for one in results], alike=_are_alike([one.evaluated_on for one in results])
    )
    of_all = len(cells) == len(results) and _are_alike([corrupted.shift for corrupted in cells])
    yield from _spreads([one.aggregates.ensemble["by-corruption"] for one in cells], alike=of_all)


def _are_alike(values: Sequence[object]) -> bool:
    return all(value == values[0] for value in values)


def _spreads(figures: Sequence[Figures | AggregateFigures], *, alike: bool) -> Iterator[str]:
    for name in ("error", "ece_width15"):
        values = [100 * getattr(one, name) for one in figures]
        yield f"{mean(values):.2f} ± {stdev(values):.2f}" if alike else "–"


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
