"""Several trainings of one experiment: the mean and the spread over seeds, apart from intervals over images."""

import json
from collections.abc import Callable, Sequence
from statistics import mean, stdev

from counterpoint.report.run import AGGREGATES, ReportedRun, Scores, models
from counterpoint.report.tables import METRICS, Column, Entry, Metric, Row, Table, decimal, percent


def seeds_tables(runs: Sequence[ReportedRun]) -> list[Table]:
    """One on clean images and one on -C; none where no experiment was run with more than one seed."""
    clean = _groups(runs, lambda run: run.images)
    shifted = _groups([run for run in runs if run.is_corrupted], lambda run: run.corrupted_images)
    tables = [_table(f"Spread over seeds on {images}", group, _clean) for images, group in clean]
    return tables + [
        _table(f"Spread over seeds on {images}: {AGGREGATES[0]}", group, _shifted) for images, group in shifted
    ]


def _groups(
    runs: Sequence[ReportedRun], images: Callable[[ReportedRun], str]
) -> list[tuple[str, list[list[ReportedRun]]]]:
    """For each set of images, the runs of one configuration that differ in their seeds; a seed counts once."""
    groups: dict[str, dict[str, dict[int, ReportedRun]]] = {}
    for run in runs:
        config = json.dumps(run.results["config"], sort_keys=True)
        same = groups.setdefault(images(run), {}).setdefault(config, {})
        same.setdefault(run.results["run"]["seed"], run)
    several = {of: [[*seeds.values()] for seeds in same.values() if len(seeds) > 1] for of, same in groups.items()}
    return [(of, found) for of, found in several.items() if found]


def _clean(run: ReportedRun) -> Scores:
    return next(models(run.clean))[1]


def _shifted(run: ReportedRun) -> Scores:
    return next(models(run.aggregate(AGGREGATES[0])))[1]


def _table(caption: str, groups: Sequence[Sequence[ReportedRun]], scores_of: Callable[[ReportedRun], Scores]) -> Table:
    """A column for each experiment, a row for each metric that all runs have."""
    figures = [[scores_of(run) for run in group] for group in groups]
    known = [
        metric for metric in METRICS if all(scores.get(metric.key) is not None for group in figures for scores in group)
    ]
    columns = [Column(group[0].results["experiment"], f"n = {len(group)} seeds") for group in groups]
    rows = [Row(_name(metric), tuple(_spread(metric, group) for group in figures)) for metric in known]
    return Table(caption, (Column("Metric"), *columns), tuple(rows))


def _name(metric: Metric) -> str:
    return f"{metric.column.label}, {metric.column.unit}"


def _spread(metric: Metric, figures: Sequence[Scores]) -> Entry:
    values = [value for scores in figures if (value := scores[metric.key]) is not None]
    show = decimal if metric.show is decimal else percent
    return Entry(f"{metric.show(mean(values))} ± {show(stdev(values))}")
