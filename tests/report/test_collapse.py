from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

from counterpoint.report.collapse import collapses
from counterpoint.report.run import Run

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
    (one,) = collapses([Run("mine", results)])
    assert one.verdict == "The members differ clearly."
    rows = [(row.label, [cell.text for cell in row.cells]) for row in one.figure.table.rows]
    assert rows[0] == ("Clean", ["2.00", "8.00", "25", "0.250"])
    assert rows[5] == ("Severity 5", ["50.00", "100.00", "50", "0.250"])
    assert one.factors is not None
    assert [(row.label, [cell.text for cell in row.cells]) for row in one.factors.rows] == [
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
    (one,) = collapses([Run("mine", results)])
    circles = ElementTree.fromstring(one.figure.svg).iter("circle")
    assert sum(circle.get("class") == "members-point" for circle in circles) == points
    assert "Clean: 2.00" in one.figure.caption


def test_members_that_never_err_have_no_share(results: dict[str, Any]) -> None:
    results["collapse"]["clean"] = between(0.0, 0.0)
    (one,) = collapses([Run("mine", results)])
    assert one.figure.table.rows[0].cells[2].text == "–"


def test_without_severities_and_factors(results: dict[str, Any]) -> None:
    results["collapse"] = {"clean": between(0.02, 0.08), "verdict": "x"}
    (one,) = collapses([Run("mine", results)])
    assert one.factors is None
    assert [row.label for row in one.figure.table.rows] == ["Clean"]


def test_one_network_has_nothing_to_compare(make_results: MakeResults) -> None:
    assert collapses([Run("single", make_results(members=1, shifted=True, more=True))]) == ()
