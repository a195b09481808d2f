from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.metrics import metrics_tables
from counterpoint.report.tables import METRICS

MakeResults = Callable[..., dict[str, Any]]
PERCENT_KEYS = {metric.key for metric in METRICS if metric.column.unit.endswith("%")}


def test_every_entry_is_its_figure(make_results: MakeResults) -> None:
    results = make_results(members=3)
    (table,) = metrics_tables([ReportedRun("mine", results)])
    assert [row.label for row in table.rows] == ["mine", "member 1", "member 2", "member 3"]
    for row, scores in zip(table.rows, [results["clean"]["ensemble"], *results["clean"]["members"]], strict=True):
        for metric, entry in zip(METRICS, row.entries, strict=True):
            if metric.key in {"disagreement", "pairwise_kl"}:
                between = metric.show(results["clean"][metric.key])
                assert entry.text == (between if row.label == "mine" else "–")
            elif metric.key == "overconfidence":
                expected = 100 * (scores["mean_confidence"] - (1 - scores["error"]))
                assert float(entry.text.replace("−", "-")) == pytest.approx(expected, abs=0.005001)
            else:
                expected = scores[metric.key] * (100 if metric.key in PERCENT_KEYS else 1)
                assert float(entry.text) == pytest.approx(expected, abs=0.005001)


def test_a_metric_that_no_model_has_is_left_out(make_results: MakeResults) -> None:
    results = make_results(members=1)
    del results["clean"]["ensemble"]["aurc"]
    (table,) = metrics_tables([ReportedRun("alone", results)])
    absent = {"AURC", "Members disagree", "Members’ KL"}
    assert [column.label for column in table.columns[1:]] == [
        metric.column.label for metric in METRICS if metric.column.label not in absent
    ]
    assert "–" not in [entry.text for row in table.rows for entry in row.entries]


def best_in_column(runs: list[ReportedRun], key: str) -> list[tuple[str, str]]:
    (table,) = metrics_tables(runs)
    column = [metric.key for metric in METRICS].index(key)
    return [(row.label, row.entries[column].text) for row in table.rows if row.entries[column].best]


def test_the_least_value_of_all_rows_is_best(make_results: MakeResults) -> None:
    ensemble, single = make_results(members=2), make_results(members=1)
    ensemble["clean"]["ensemble"]["ece_width15"] = 0.05
    ensemble["clean"]["members"][0]["ece_width15"] = 0.04
    ensemble["clean"]["members"][1]["ece_width15"] = 0.012
    single["clean"]["ensemble"]["ece_width15"] = 0.03
    runs = [ReportedRun("ensemble", ensemble), ReportedRun("single", single)]
    assert best_in_column(runs, "ece_width15") == [("member 2", "1.20")]
    assert best_in_column(runs, "mean_confidence") == []
    assert best_in_column(runs, "disagreement") == []


def test_values_that_read_the_same_are_marked_the_same(make_results: MakeResults) -> None:
    one, two = make_results(members=1), make_results(members=1)
    one["clean"]["ensemble"]["error"], two["clean"]["ensemble"]["error"] = 0.012341, 0.012344
    assert best_in_column([ReportedRun("a", one), ReportedRun("b", two)], "error") == [("a", "1.23"), ("b", "1.23")]


def test_a_lone_row_is_not_called_best(make_results: MakeResults) -> None:
    (table,) = metrics_tables([ReportedRun("alone", make_results(members=1))])
    assert not any(entry.best for row in table.rows for entry in row.entries)


def test_different_images_are_not_compared(make_results: MakeResults) -> None:
    one, two = make_results(members=1), make_results(members=1)
    two["evaluated_on"]["part"] = "validation"
    tables = metrics_tables([ReportedRun("a", one), ReportedRun("b", two)])
    assert [table.caption for table in tables] == [
        "All metrics on digits, test part, 120 images",
        "All metrics on digits, validation part, 120 images",
    ]
    assert [[row.label for row in table.rows] for table in tables] == [["a"], ["b"]]
