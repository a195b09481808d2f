"""Several trainings of one experiment: the mean and the spread over seeds, apart from intervals over images."""

import json
from collections.abc import Callable, Sequence
from statistics import mean, stdev

from counterpoint.report.run import AGGREGATES, Run, Scores, models
from counterpoint.report.tables import METRICS, Cell, Column, Metric, Row, Table, decimal, percent


def seeds_tables(runs: Sequence[Run]) -> list[Table]:
    """One on clean images and one on -C; none where no experiment was run with more than one seed."""
    clean = _groups(runs, lambda run: run.images)
    shifted = _groups([run for run in runs if run.is_corrupted], lambda run: run.corrupted_images)
    tables = [_table(f"Spread over seeds on {images}", group, _clean) for images, group in clean]
    return tables + [
        _table(f"Spread over seeds on {images}: {AGGREGATES[0]}", group, _shifted) for images, group in shifted
    ]


def _groups(runs: Sequence[Run], images: Callable[[Run], str]) -> list[tuple[str, list[list[Run]]]]:
    """For each set of images, the runs of one configuration that differ in their seeds; a seed counts once."""
    groups: dict[str, dict[str, dict[int, Run]]] = {}
    for run in runs:
        config = json.dumps(run.results["config"], sort_keys=True)
        same = groups.setdefault(images(run), {}).setdefault(config, {})
        same.setdefault(run.results["run"]["seed"], run)
    several = {of: [[*one.values()] for one in same.values() if len(one) > 1] for of, same in groups.items()}
    return [(of, found) for of, found in several.items() if found]


def _clean(run: Run) -> Scores:
    return next(models(run.clean))[1]


def _shifted(run: Run) -> Scores:
    return next(models(run.aggregate(AGGREGATES[0])))[1]


def _table(caption: str, groups: Sequence[Sequence[Run]], scores: Callable[[Run], Scores]) -> Table:
    """A column for each experiment, a row for each metric that all runs have."""
    figures = [[scores(run) for run in group] for group in groups]
    known = [metric for metric in METRICS if all(one.get(metric.key) is not None for some in figures for one in some)]
    columns = [Column(group[0].results["experiment"], f"n = {len(group)} seeds") for group in groups]
    rows = [Row(_name(metric), tuple(_spread(metric, some) for some in figures)) for metric in known]
    return Table(caption, (Column("Metric"), *columns), tuple(rows))


def _name(metric: Metric) -> str:
    return f"{metric.column.label}, {metric.column.unit}"


def _spread(metric: Metric, figures: Sequence[Scores]) -> Cell:
    values = [value for one in figures if (value := one[metric.key]) is not None]
    show = decimal if metric.show is decimal else percent
    return Cell(f"{metric.show(mean(values))} ± {show(stdev(values))}")
