"""Several trainings of one experiment: the mean and the spread over seeds, apart from intervals over images."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

from counterpoint.experiments.hashes import saved_hash
from counterpoint.report.drawing.rows import Strip, strips_chart
from counterpoint.report.drawing.series import ink_of, legend
from counterpoint.report.metrics import BY_KEY, METRICS, Metric
from counterpoint.report.naming import run_labels
from counterpoint.report.numbers import decimal, percent, with_sign
from counterpoint.report.run import HEADLINE, ReportedRun, Scores, by_images, grouped, whole_scores
from counterpoint.report.section import Block, Content, Plot
from counterpoint.report.suites import by_cells, by_suite
from counterpoint.report.tables import Column, Table, plain_row

_DRAWN = ("error", "ece_width15")

Measured = tuple[ReportedRun, Scores]
"""A run, and its figures on one set of images."""
Names = Mapping[str, str]
"""What each configuration is called on the page."""


@dataclass(frozen=True)
class SetSeeds:
    """All experiments with several seeds on one set of images."""

    plots: tuple[Plot, ...]
    table: Table


@dataclass(frozen=True)
class Seeds(Content):
    sets: tuple[SetSeeds, ...]

    @property
    def has_several(self) -> bool:
        """Whether there are experiments to compare."""
        return any(len(one.table.columns) > 2 for one in self.sets)

    def blocks(self) -> Iterator[Block]:
        yield Block("Spread over seeds, not over images", tuple(one.table for one in self.sets))


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
    names = _names([group[0][0] for _, groups in several for group in groups])
    found = [
        SetSeeds(
            tuple(_plot(images, BY_KEY[key], groups, names) for key in _DRAWN),
            _table(f"Spread over seeds on {images}", groups, names),
        )
        for images, groups in several
    ]
    return Seeds(tuple(found)) if found else None


def _names(runs: Sequence[ReportedRun]) -> Names:
    """One name can stand for two configurations. Then the settings that differ tell them apart, and not the seed."""
    by_config = {_identity(run): run.results for run in reversed(runs)}
    results = [replace(one, run=replace(one.trained, seed=0)) for one in reversed(by_config.values())]
    return dict(zip(reversed(by_config), run_labels(results), strict=True))


def _plot(images: str, metric: Metric, groups: Sequence[Sequence[Measured]], names: Names) -> Plot:
    strips = [_strip(metric, group, names) for group in groups]
    words = "; ".join(f"{strip.label}: {_mean_and_spread(metric, strip.mean, strip.deviation)}" for strip in strips)
    name = "ECE in 15 equal-width bins" if metric.key.startswith("ece") else metric.column.label
    return Plot(
        strips_chart(strips, f"{name} of each seed on {images}. {words}."),
        legend([run for group in groups for run, _ in group]),
        f"{name} of each seed on {images}. The line is the mean. The band is one standard deviation to each side.",
        (),
    )


def _strip(metric: Metric, group: Sequence[Measured], names: Names) -> Strip:
    found = [(run, value) for run, scores in group if (value := scores[metric.key]) is not None]
    values = [value for _, value in found]
    said = [(ink_of(run), value, f"{metric.column.label} {with_sign(value)}") for run, value in found]
    return Strip(names[_identity(group[0][0])], said, mean(values), stdev(values))


def _by_experiment(measured: Sequence[Measured]) -> list[list[Measured]]:
    """The runs of one configuration that differ in their seeds; a seed counts once."""
    by_config = grouped(measured, lambda one: _identity(one[0]))
    by_seed = [{one[0].results.seed: one for one in reversed(same)} for same in by_config.values()]
    return [[*reversed(of_seeds.values())] for of_seeds in by_seed if len(of_seeds) > 1]


def _identity(run: ReportedRun) -> str:
    """The same for results from before a setting existed and for those that have it at its default."""
    settings = run.results.config
    return saved_hash(settings) or json.dumps(settings, sort_keys=True)


def _table(caption: str, groups: Sequence[Sequence[Measured]], names: Names) -> Table:
    """A column for each experiment, a row for each metric that all runs have."""
    figures = [[scores for _, scores in group] for group in groups]
    known = [
        metric for metric in METRICS if all(scores.get(metric.key) is not None for group in figures for scores in group)
    ]
    columns = [Column(names[_identity(group[0][0])], f"n = {len(group)} seeds") for group in groups]
    rows = [
        plain_row(f"{metric.column.label}, {metric.column.unit}", *(_spread(metric, group) for group in figures))
        for metric in known
    ]
    return Table(caption, (Column("Metric"), *columns), tuple(rows))


def _spread(metric: Metric, figures: Sequence[Scores]) -> str:
    values = [value for scores in figures if (value := scores[metric.key]) is not None]
    return _mean_and_spread(metric, mean(values), stdev(values))


def _mean_and_spread(metric: Metric, middle: float, spread: float) -> str:
    show = decimal if metric.is_decimal else percent
    return f"{metric.show(middle)} ± {show(spread)}"
