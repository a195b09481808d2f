from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import binomtest

from counterpoint.report.run import Run
from counterpoint.report.tables import METRICS, Cell, bins_table, metrics_tables, shift_tables, signed, wilson_interval

MakeResults = Callable[..., dict[str, Any]]
PERCENT_KEYS = {metric.key for metric in METRICS if metric.column.unit.endswith("%")}


def test_every_cell_is_its_figure(make_results: MakeResults) -> None:
    results = make_results(members=3)
    (table,) = metrics_tables([Run("mine", results)])
    assert [row.label for row in table.rows] == ["mine", "member 1", "member 2", "member 3"]
    for row, scores in zip(table.rows, [results["clean"]["ensemble"], *results["clean"]["members"]], strict=True):
        for metric, cell in zip(METRICS, row.cells, strict=True):
            if metric.key in {"disagreement", "pairwise_kl"}:
                between = metric.show(results["clean"][metric.key])
                assert cell.text == (between if row.label == "mine" else "–")
            elif metric.key == "overconfidence":
                expected = 100 * (scores["mean_confidence"] - (1 - scores["error"]))
                assert float(cell.text.replace("−", "-")) == pytest.approx(expected, abs=0.005001)
            else:
                expected = scores[metric.key] * (100 if metric.key in PERCENT_KEYS else 1)
                assert float(cell.text) == pytest.approx(expected, abs=0.005001)


def test_a_metric_that_no_model_has_is_left_out(make_results: MakeResults) -> None:
    results = make_results(members=1)
    del results["clean"]["ensemble"]["aurc"]
    (table,) = metrics_tables([Run("alone", results)])
    absent = {"AURC", "Members disagree", "Members’ KL"}
    assert [column.label for column in table.columns[1:]] == [
        metric.column.label for metric in METRICS if metric.column.label not in absent
    ]
    assert "–" not in [cell.text for row in table.rows for cell in row.cells]


def test_the_units_say_which_figures_are_percentages() -> None:
    assert {metric.key for metric in METRICS} - PERCENT_KEYS == {"nll", "brier", "overconfidence", "pairwise_kl"}


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


def test_shift_tables_are_one_an_aggregate(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    tables = shift_tables([Run("mine", results)])
    assert list(tables) == ["by-corruption", "by-cell", "pooled"]
    for way, (table,) in tables.items():
        assert table.caption.endswith(f"frost from a made texture, 40 images a cell: {way}")
        aggregates = results["corrupted"]["aggregates"]
        scores = [aggregates["ensemble"][way], *(member[way] for member in aggregates["members"])]
        assert [row.label for row in table.rows] == ["mine", "member 1", "member 2"]
        assert [row.cells[3].text for row in table.rows] == [f"{100 * one['ece_width15']:.2f}" for one in scores]


def test_different_corrupted_sets_are_not_compared(make_results: MakeResults) -> None:
    one, two = make_results(members=1, shifted=True), make_results(members=1, shifted=True)
    two["evaluated_on"]["part"] = "validation"
    assert len(shift_tables([Run("a", one), Run("b", two)])["pooled"]) == 1
    two["corrupted"]["source"] = {"kind": "official"}
    assert [[row.label for row in table.rows] for table in shift_tables([Run("a", one), Run("b", two)])["pooled"]] == [
        ["a"],
        ["b"],
    ]


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.1234, "+12.34"), (-0.05, "−5.00"), (0.0, "0.00"), (-0.00004, "0.00"), (0.00004, "0.00")]
)
def test_signed(fraction: float, text: str) -> None:
    assert signed(fraction) == text


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (3, 8), (8, 8), (0, 50), (90, 120), (9_999, 10_000)])
def test_wilson_interval_is_scipys(right: int, count: int) -> None:
    expected = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right / count, count) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_bins_table_by_hand() -> None:
    bins = [{"low": 0.8, "high": 0.9, "count": 1200, "confidence": 0.86, "accuracy": 0.75}]
    (row,) = bins_table("some bins", bins, intervals=False).rows
    assert row.label == "80.00–90.00"
    assert row.cells == (Cell("1,200"), Cell("86.00"), Cell("75.00"), Cell("−11.00"))
    table = bins_table("some bins", bins, intervals=True)
    assert [column.label for column in table.columns][4] == "Interval"
    assert table.rows[0].cells[3] == Cell("72.5–77.4")
