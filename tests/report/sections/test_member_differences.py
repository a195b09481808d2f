from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.member_differences import member_differences

MakeResults = Callable[..., dict[str, Any]]


def between(disagreement: float, independent: float, kl: float = 0.25) -> dict[str, float]:
    return {"disagreement": disagreement, "pairwise_kl": kl, "independent_disagreement": independent}


@pytest.fixture
def results(make_results: MakeResults) -> dict[str, Any]:
    results = make_results(members=4, shifted=True)
    results["collapse"] = {
        "r": {"plain": 0.25, "closest": -0.125, "independent": -0.5},
        "s": {"plain": -0.5, "closest": 1.0, "independent": -0.5},
        "clean": between(0.02, 0.08),
        "severities": [between(0.1 * i, 0.2 * i) for i in range(1, 6)],
        "verdict": "The members differ clearly.",
    }
    return results


def test_the_table_by_hand(results: dict[str, Any]) -> None:
    (found,) = member_differences([ReportedRun("mine", results)])
    assert found.verdict == "The members differ clearly."
    rows = [(row.label, [entry.text for entry in row.entries]) for row in found.chart.table.rows]
    assert rows[0] == ("Clean", ["2.00", "8.00", "25", "0.250"])
    assert rows[5] == ("Severity 5", ["50.00", "100.00", "50", "0.250"])
    assert found.factors is not None
    assert [(row.label, [entry.text for entry in row.entries]) for row in found.factors.rows] == [
        ("r, all pairs", ["0.250", "0.000", "1.000"]),
        ("r, closest pair", ["−0.125", "−0.500", "1.000"]),
        ("s, all pairs", ["−0.500", "0.000", "1.000"]),
        ("s, closest pair", ["1.000", "−0.500", "1.000"]),
    ]


@pytest.mark.parametrize(("images", "points"), [(40, 6), (120, 5)])
def test_clean_is_joined_to_the_severities_only_on_the_same_images(
    results: dict[str, Any], images: int, points: int
) -> None:
    results["evaluated_on"]["images"] = images
    (found,) = member_differences([ReportedRun("mine", results)])
    circles = ElementTree.fromstring(found.chart.svg).iter("circle")
    assert sum(circle.get("class") == "members-point" for circle in circles) == points
    assert "Clean: 2.00" in found.chart.caption


def test_members_that_never_err_have_no_share(results: dict[str, Any]) -> None:
    results["collapse"]["clean"] = between(0.0, 0.0)
    (found,) = member_differences([ReportedRun("mine", results)])
    assert found.chart.table.rows[0].entries[2].text == "–"


def test_without_severities_and_factors(results: dict[str, Any]) -> None:
    results["collapse"] = {"clean": between(0.02, 0.08), "verdict": "x"}
    (found,) = member_differences([ReportedRun("mine", results)])
    assert found.factors is None
    assert [row.label for row in found.chart.table.rows] == ["Clean"]


def test_one_network_has_nothing_to_compare(make_results: MakeResults) -> None:
    assert member_differences([ReportedRun("single", make_results(members=1, shifted=True, more=True))]) == ()
