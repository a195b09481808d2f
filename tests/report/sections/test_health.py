from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.health import healths

MakeResults = Callable[..., dict[str, Any]]


def epoch(number: int, below: int, dead: int, r: float | None, s: float | None) -> dict[str, Any]:
    return {"epoch": number, "below_eps": below, "dead_scales": dead, "spread_r": r, "spread_s": s}


@pytest.fixture
def results(make_results: MakeResults) -> dict[str, Any]:
    results = make_results(members=2)
    results["health"] = {
        "channels": 12_608,
        "epochs": [epoch(1, 0, 10, 0.5, 0.4375), epoch(200, 3152, 1525, 0.125, None)],
        "warnings": ["Many are lost."],
    }
    return results


def shown(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    (found,) = healths([ReportedRun("mine", results)])
    rows = [[row.label, *(entry.text for entry in row.entries)] for row in found.table.rows]
    assert all(len(row) == len(found.table.columns) for row in rows)
    return [column.label for column in found.table.columns], rows


def test_the_table_by_hand(results: dict[str, Any]) -> None:
    columns, rows = shown(results)
    assert columns == ["After epoch", "Dead scales", "Share", "Below eps", "Share", "Spread of r", "Spread of s"]
    assert rows == [
        ["1", "10", "0.08", "0", "0.00", "0.500", "0.438"],
        ["200", "1,525", "12.10", "3,152", "25.00", "0.125", "–"],
    ]


def test_the_sentence_is_of_the_last_epoch(results: dict[str, Any]) -> None:
    (found,) = healths([ReportedRun("mine", results)])
    assert " ".join(found.sentence.split()) == (
        "After epoch 200, of 12,608 channels 1,525 (12.10 %) are dead and 3,152 (25.00 %) have a variance below eps."
    )
    assert found.warnings == ("Many are lost.",)


def test_a_plain_network_has_no_spread(results: dict[str, Any]) -> None:
    results["health"]["epochs"] = [epoch(1, 0, 1261, None, None)]
    columns, rows = shown(results)
    assert columns == ["After epoch", "Dead scales", "Share", "Below eps", "Share"]
    assert rows == [["1", "1,261", "10.00", "0", "0.00"]]


def test_a_network_without_batchnorm_still_has_its_spread(results: dict[str, Any]) -> None:
    results["health"] = {"channels": 0, "epochs": [epoch(1, 0, 0, 0.5, 0.25)], "warnings": []}
    (found,) = healths([ReportedRun("mine", results)])
    assert found.sentence.startswith("The network has no BatchNorm")
    assert shown(results)[1] == [["1", "0", "–", "0", "–", "0.500", "0.250"]]


@pytest.mark.parametrize("older", [{}, {"health": None}])
def test_older_results_have_no_health(make_results: MakeResults, older: dict[str, Any]) -> None:
    assert healths([ReportedRun("old", make_results(members=2) | older)]) == ()
