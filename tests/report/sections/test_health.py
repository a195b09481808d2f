import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.results import HealthAfter, HealthRecord
from counterpoint.report import render
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.health import RunHealth, health
from tests.report.made import MakeEvaluated, changed

RECORD = HealthRecord(
    12_608,
    (HealthAfter(1, 0, 10, 0.5, 0.4375), HealthAfter(200, 3152, 1525, 0.125, None)),
    ("Many are lost.",),
)


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    return changed(make_evaluated(members=2), "results.health", RECORD)


def of_run(evaluated: Evaluated) -> RunHealth:
    content = health([ReportedRun("mine", evaluated)])
    assert content is not None
    (found,) = content.runs
    return found


def shown(evaluated: Evaluated) -> tuple[list[str], list[list[str]]]:
    table = of_run(evaluated).table
    rows = [[row.label, *(entry.text for entry in row.entries)] for row in table.rows]
    assert all(len(row) == len(table.columns) for row in rows)
    return [column.label for column in table.columns], rows


def test_the_table_by_hand(evaluated: Evaluated) -> None:
    columns, rows = shown(evaluated)
    assert columns == ["After epoch", "Dead scales", "Share", "Below eps", "Share", "Spread of r", "Spread of s"]
    assert rows == [
        ["1 (start)", "10", "0.08", "0", "0.00", "0.500", "0.438"],
        ["200 (end)", "1,525", "12.10", "3,152", "25.00", "0.125", "–"],
    ]


def test_the_end_of_training_is_told_from_its_start(evaluated: Evaluated) -> None:
    found = of_run(evaluated)
    assert " ".join(found.sentence.split()) == (
        "At the end of training (after epoch 200), 1,525 (12.10 %) of 12,608 channels are dead, and 3,152 (25.00 %) "
        "have a variance below eps. At the start (after epoch 1), 10 were dead, and 0 had a variance below eps."
    )
    assert found.warnings == ("Many are lost.",)


def test_a_plain_network_has_no_spread(evaluated: Evaluated) -> None:
    columns, rows = shown(changed(evaluated, "results.health.epochs", (HealthAfter(1, 0, 1261),)))
    assert columns == ["After epoch", "Dead scales", "Share", "Below eps", "Share"]
    assert rows == [["1 (end)", "1,261", "10.00", "0", "0.00"]]


def test_the_page_explains_the_spread_where_there_is_one(evaluated: Evaluated) -> None:
    without = changed(evaluated, "results.health.epochs", (HealthAfter(1, 0, 1261),))
    for runs, explained in (([evaluated], True), ([without], False), ([without, evaluated], True)):
        page = render(runs)
        assert "no longer normalised" in page
        assert ("The spread is the standard deviation of the factors" in page) is explained


def test_a_network_without_batchnorm_still_has_its_spread(evaluated: Evaluated) -> None:
    bare = changed(evaluated, "results.health", HealthRecord(0, (HealthAfter(1, 0, 0, 0.5, 0.25),), ()))
    assert of_run(bare).sentence.startswith("The network has no BatchNorm")
    assert shown(bare)[1] == [["1 (end)", "0", "–", "0", "–", "0.500", "0.250"]]


def test_older_results_have_no_health(make_evaluated: MakeEvaluated) -> None:
    assert health([ReportedRun("old", make_evaluated(members=2))]) is None
