from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.tables import METRICS, Cell, Run, bins_table, metrics_tables

MakeResults = Callable[..., dict[str, Any]]
PERCENT_KEYS = {metric.key for metric in METRICS if metric.column.unit.endswith("%")}


def test_every_cell_is_its_figure(make_results: MakeResults) -> None:
    results = make_results(members=3)
    (table,) = metrics_tables([Run("mine", results)])
    assert [row.label for row in table.rows] == ["mine", "member 1", "member 2", "member 3"]
    for row, scores in zip(table.rows, [results["clean"]["ensemble"], *results["clean"]["members"]], strict=True):
        for metric, cell in zip(METRICS, row.cells, strict=True):
            if metric.key == "disagreement":
                assert cell.text == (f"{100 * results['clean']['disagreement']:.2f}" if row.label == "mine" else "–")
            else:
                expected = scores[metric.key] * (100 if metric.key in PERCENT_KEYS else 1)
                assert float(cell.text) == pytest.approx(expected, abs=0.005001)


def test_the_units_say_which_figures_are_percentages() -> None:
    assert {metric.key for metric in METRICS} - PERCENT_KEYS == {"nll", "brier"}


def best_in_column(runs: list[Run], key: str) -> list[tuple[str, str]]:
    (table,) = metrics_tables(runs)
    column = [metric.key for metric in METRICS].index(key)
    return [(row.label, row.cells[column].text) for row in table.rows if row.cells[column].best]


def test_the_least_value_of_all_rows_is_best(make_results: MakeResults) -> None:
    ensemble, single = make_results(members=2), make_results(members=1)
    ensemble["clean"]["ensemble"]["ece_width15"] = 0.05
    ensemble["clean"]["members"][0]["ece_width15"] = 0.04
    ensemble["clean"]["members"][1]["ece_width15"] = 0.012
    single["clean"]["ensemble"]["ece_width15"] = 0.03
    runs = [Run("ensemble", ensemble), Run("single", single)]
    assert best_in_column(runs, "ece_width15") == [("member 2", "1.20")]
    assert best_in_column(runs, "mean_confidence") == []
    assert best_in_column(runs, "disagreement") == []


def test_values_that_read_the_same_are_marked_the_same(make_results: MakeResults) -> None:
    one, two = make_results(members=1), make_results(members=1)
    one["clean"]["ensemble"]["error"], two["clean"]["ensemble"]["error"] = 0.012341, 0.012344
    assert best_in_column([Run("a", one), Run("b", two)], "error") == [("a", "1.23"), ("b", "1.23")]


def test_a_lone_row_is_not_called_best(make_results: MakeResults) -> None:
    (table,) = metrics_tables([Run("alone", make_results(members=1))])
    assert not any(cell.best for row in table.rows for cell in row.cells)


def test_different_images_are_not_compared(make_results: MakeResults) -> None:
    one, two = make_results(members=1), make_results(members=1)
    two["evaluated_on"]["part"] = "validation"
    tables = metrics_tables([Run("a", one), Run("b", two)])
    assert [table.caption for table in tables] == [
        "All metrics on digits, test part, 120 images",
        "All metrics on digits, validation part, 120 images",
    ]
    assert [[row.label for row in table.rows] for table in tables] == [["a"], ["b"]]


def test_bins_table_by_hand() -> None:
    table = bins_table("some bins", [{"low": 0.8, "high": 0.9, "count": 1200, "confidence": 0.86, "accuracy": 0.75}])
    (row,) = table.rows
    assert row.label == "80.00–90.00"
    assert row.cells == (Cell("1,200"), Cell("86.00"), Cell("75.00"), Cell("−11.00"))
