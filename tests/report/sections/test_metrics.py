import pytest

from counterpoint.records.files import Evaluated
from counterpoint.report import render
from counterpoint.report.metrics import METRICS
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.metrics import metrics
from counterpoint.report.tables import Table
from tests.report.made import MakeEvaluated, changed, changed_all

PERCENT_KEYS = {metric.key for metric in METRICS if metric.column.unit.endswith("%")}


def only_table(*runs: Evaluated) -> Table:
    (table,) = metrics([ReportedRun(run.results.experiment, run) for run in runs]).tables
    return table


def test_every_entry_is_its_figure(make_evaluated: MakeEvaluated) -> None:
    mine = make_evaluated("mine", members=3)
    clean, table = mine.results.clean, only_table(mine)
    assert [row.label for row in table.rows] == ["mine", "member 1", "member 2", "member 3"]
    for row, figures in zip(table.rows, [clean.ensemble, *clean.members], strict=True):
        for metric, entry in zip(METRICS, row.entries, strict=True):
            if metric.key in {"disagreement", "pairwise_kl"}:
                between = metric.show(getattr(clean, metric.key))
                assert entry.text == (between if row.label == "mine" else "–")
            elif metric.key == "overconfidence":
                expected = 100 * (figures.mean_confidence - (1 - figures.error))
                assert float(entry.text.replace("−", "-")) == pytest.approx(expected, abs=0.005001)
            else:
                expected = getattr(figures, metric.key) * (100 if metric.key in PERCENT_KEYS else 1)
                assert float(entry.text) == pytest.approx(expected, abs=0.005001)


def test_a_metric_that_no_model_has_is_left_out(make_evaluated: MakeEvaluated) -> None:
    table = only_table(changed(make_evaluated(members=1), "results.clean.ensemble.aurc", None))
    absent = {"AURC", "Members disagree", "Members’ KL"}
    assert [column.label for column in table.columns[1:]] == [
        metric.column.label for metric in METRICS if metric.column.label not in absent
    ]
    assert "–" not in [entry.text for row in table.rows for entry in row.entries]


def best_in_column(table: Table, key: str) -> list[tuple[str, str]]:
    column = [metric.key for metric in METRICS].index(key)
    return [(row.label, row.entries[column].text) for row in table.rows if row.entries[column].best]


def test_the_least_value_of_all_rows_is_best(make_evaluated: MakeEvaluated) -> None:
    eces = {"ensemble": 0.05, "members.0": 0.04, "members.1": 0.012}
    ensemble = changed_all(
        make_evaluated(members=2), {f"results.clean.{one}.ece_width15": value for one, value in eces.items()}
    )
    single = changed(make_evaluated("single", members=1), "results.clean.ensemble.ece_width15", 0.03)
    table = only_table(ensemble, single)
    assert best_in_column(table, "ece_width15") == [("member 2", "1.20")]
    assert best_in_column(table, "mean_confidence") == []
    assert best_in_column(table, "disagreement") == []


def test_values_that_read_the_same_are_marked_the_same(make_evaluated: MakeEvaluated) -> None:
    one, two = (
        changed(make_evaluated(name, members=1), "results.clean.ensemble.error", error)
        for name, error in (("a", 0.012341), ("b", 0.012344))
    )
    assert best_in_column(only_table(one, two), "error") == [("a", "1.23"), ("b", "1.23")]


def test_a_lone_row_is_not_called_best(make_evaluated: MakeEvaluated) -> None:
    table = only_table(make_evaluated(members=1))
    assert not any(entry.best for row in table.rows for entry in row.entries)


def test_different_images_are_not_compared(make_evaluated: MakeEvaluated) -> None:
    one = make_evaluated(members=1)
    two = changed(one, "results.evaluated_on.part", "validation")
    tables = metrics([ReportedRun("a", one), ReportedRun("b", two)]).tables
    assert [table.caption for table in tables] == [
        "All metrics on digits, test part, 120 images",
        "All metrics on digits, validation part, 120 images",
    ]
    assert [[row.label for row in table.rows] for table in tables] == [["a"], ["b"]]


def test_a_page_without_members_does_not_explain_them(make_evaluated: MakeEvaluated) -> None:
    single, ensemble = (make_evaluated(members=members) for members in (1, 2))
    assert [metrics([ReportedRun("a", run)]).has_members for run in (single, ensemble)] == [False, True]
    assert ["Below it stands each member" in render([run]) for run in (single, ensemble)] == [False, True]
