"""The paper's figures and ours, paired: what the report and the tables of `counterpoint reproduce` both show."""

from dataclasses import replace

import pytest

from counterpoint.config import override, to_dict
from counterpoint.experiments import EXPERIMENTS
from counterpoint.records.figures import Aggregate, AggregateFigures
from counterpoint.records.results import Results
from counterpoint.reproduction.beside_paper import (
    PairedFigure,
    our_figures,
    pair_figures,
    paper_figures,
    paper_tables,
    stands_for_row,
)
from tests.made_results import make_results

NAME = "cifar10/single"


def results() -> Results:
    made = make_results()
    assert made.corrupted is not None
    clean = replace(made.clean.ensemble, error=0.05, ece_width15=0.01, ece_rms_width15=0.03)
    pooled = made.corrupted.aggregates.ensemble["pooled"]
    headline = replace(pooled, error=0.25, ece_width15=0.14, ece_rms_width15=0.16)
    ensemble: dict[Aggregate, AggregateFigures] = {"by-corruption": headline, "by-cell": pooled, "pooled": pooled}
    aggregates = replace(made.corrupted.aggregates, ensemble=ensemble)
    return replace(
        made,
        clean=replace(made.clean, ensemble=clean),
        corrupted=replace(made.corrupted, aggregates=aggregates),
    )


def test_the_papers_figures_in_the_order_of_its_columns() -> None:
    assert paper_figures(NAME) == pytest.approx((0.0418, 0.0125, 0.032, 0.265, 0.135, 0.154))


def test_ours_are_the_same_six() -> None:
    assert our_figures(results()) == (0.05, 0.01, 0.03, 0.25, 0.14, 0.16)
    assert our_figures(results(), clean=False) == (None, None, None, 0.25, 0.14, 0.16)
    assert our_figures(results(), corrupted=False) == (0.05, 0.01, 0.03, None, None, None)
    assert our_figures(replace(results(), corrupted=None)) == (0.05, 0.01, 0.03, None, None, None)


def test_each_figure_is_paired_with_those_that_there_are() -> None:
    ours = [our_figures(results()), our_figures(results(), corrupted=False)]
    pairs = pair_figures(NAME, ours)
    assert tuple(pair.paper for pair in pairs) == paper_figures(NAME)
    assert [pair.ours for pair in pairs] == [(0.05, 0.05), (0.01, 0.01), (0.03, 0.03), (0.25,), (0.14,), (0.16,)]
    assert pair_figures(NAME, []) == tuple(PairedFigure(printed, ()) for printed in paper_figures(NAME))


def test_rows_are_grouped_by_table_and_data_set() -> None:
    tables = paper_tables([NAME, "cifar10/am-beta", "cifar100/single", "cifar10/batch-ensemble"])
    assert {table.title: table.rows for table in tables} == {
        "Table 2, CIFAR-10": (NAME, "cifar10/batch-ensemble"),
        "Table 1, CIFAR-10": ("cifar10/am-beta",),
        "Table 2, CIFAR-100": ("cifar100/single",),
    }


@pytest.mark.parametrize(("changes", "stands"), [((), True), (("epochs=20",), False)])
def test_only_the_rows_own_configuration_stands_for_it(changes: tuple[str, ...], stands: bool) -> None:
    config = to_dict(override(EXPERIMENTS[NAME], changes))
    assert stands_for_row(replace(results(), experiment=NAME, config=config)) is stands


def test_what_is_not_in_the_paper_stands_for_no_row() -> None:
    name = "digits/quickstart"
    assert not stands_for_row(replace(results(), experiment=name, config=to_dict(EXPERIMENTS[name])))
