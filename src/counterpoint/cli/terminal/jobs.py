"""The states of jobs, as the terminal shows them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from rich.table import Table

from counterpoint.cli.terminal.progress import console
from counterpoint.errors import some
from counterpoint.experiments import config_hash
from counterpoint.launching.states import State
from counterpoint.records.figures import AggregateFigures, Figures
from counterpoint.records.images import Shift
from counterpoint.records.results import Results
from counterpoint.reproduction.tables import cells_in_words
from counterpoint.storage.folders import quoted

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
    for sentence in unlike_images(states):
        console.print(sentence, highlight=False, soft_wrap=True)
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
    table = Table(box=None, pad_edge=False, title="mean ± standard deviation over seeds, in %", title_justify="left")
    for heading, words in zip(("runs", "seeds", *_HEADINGS[2:]), (True, *(False,) * 5), strict=True):
        table.add_column(heading, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    several = [group for group in groups.values() if len(group) > 1]
    for group in several:
        name = _without_seed(group[0].job.name) or group[0].job.name
        table.add_row(name, str(len(group)), *_over_seeds([state.results for state in group if state.results]))
    if several:
        console.print()
        console.print(table, highlight=False)
    names = [name for group in several if (name := _without_seed(str(group[0].job.folder)))]
    if len(names) > 1:
        compare = f"over seeds: `counterpoint compare {quoted(names[0])} {quoted(names[1])}`"
        console.print(compare, highlight=False, soft_wrap=True)


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
