"""Several trainings of one experiment: the mean and the spread over seeds, apart from intervals over images."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from counterpoint.experiments.hashes import saved_hash
from counterpoint.report.run import HEADLINE, ReportedRun, Scores, grouped, whole_scores
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import by_cells, by_suite
from counterpoint.report.tables import METRICS, Column, Entry, Metric, Row, Table, by_images, decimal, percent

Measured = tuple[ReportedRun, Scores]
"""A run, and its figures on one set of images."""


@dataclass(frozen=True)
class Seeds(Content):
    tables: tuple[Table, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block("Spread over seeds, not over images", self.tables)


def seeds(runs: Sequence[ReportedRun]) -> Seeds | None:
    """One table for each set of images; None where no experiment was run with more than one seed."""
    runs = [run for run in runs if run.results.run]
    sets: list[tuple[str, list[Measured]]] = [
        (images, [(run, whole_scores(run.clean)) for run in group]) for images, group in by_images(runs)
    ]
    for of_suite in by_suite(runs).values():
        for images, together in by_cells(of_suite):
            measured = [(shifted.run, whole_scores(shifted.aggregate(HEADLINE))) for shifted in together]
            sets.append((f"{images}: {HEADLINE}", measured))
    several = [(images, groups) for images, measured in sets if (groups := _by_experiment(measured))]
    tables = tuple(_table(f"Spread over seeds on {images}", groups) for images, groups in several)
    return Seeds(tables) if tables else None


def _by_experiment(measured: Sequence[Measured]) -> list[list[Measured]]:
    """The runs of one configuration that differ in their seeds; a seed counts once."""
    by_config = grouped(measured, lambda one: _identity(one[0].results.config))
    by_seed = [{one[0].results.seed: one for one in reversed(same)} for same in by_config.values()]
    return [[*reversed(of_seeds.values())] for of_seeds in by_seed if len(of_seeds) > 1]


def _identity(settings: Mapping[str, Any]) -> str:
    """The same for results from before a setting existed and for those that have it at its default."""
    return saved_hash(settings) or json.dumps(settings, sort_keys=True)


def _table(caption: str, groups: Sequence[Sequence[Measured]]) -> Table:
    """A column for each experiment, a row for each metric that all runs have."""
    figures = [[scores for _, scores in group] for group in groups]
    known = [
        metric for metric in METRICS if all(scores.get(metric.key) is not None for group in figures for scores in group)
    ]
    columns = [Column(group[0][0].results.experiment, f"n = {len(group)} seeds") for group in groups]
    rows = [Row(_name(metric), tuple(_spread(metric, group) for group in figures)) for metric in known]
    return Table(caption, (Column("Metric"), *columns), tuple(rows))


def _name(metric: Metric) -> str:
    return f"{metric.column.label}, {metric.column.unit}"


def _spread(metric: Metric, figures: Sequence[Scores]) -> Entry:
    values = [value for scores in figures if (value := scores[metric.key]) is not None]
    show = decimal if metric.show is decimal else percent
    return Entry(f"{metric.show(mean(values))} ± {show(stdev(values))}")


SECTION = Section("seeds", "Spread over seeds", seeds, "sections/seeds.html")
