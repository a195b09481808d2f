from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.selective import selective

MakeResults = Callable[..., dict[str, Any]]
CURVE = {"coverage": [0.25, 0.5, 0.75, 1.0], "risk": [0.0, 0.1, 0.2, 0.3]}


def test_the_table_by_hand(make_results: MakeResults) -> None:
    results = make_results(members=1)
    results["clean"]["risk_coverage"] = CURVE
    found = selective([ReportedRun("mine", results)])
    assert found is not None
    ((label, chart),) = found.curves
    assert label == "mine"
    assert [column.label for column in chart.table.columns] == [
        "Kept", "20 %", "50 %", "70 %", "80 %", "90 %", "95 %", "100 %"
    ]  # fmt: skip
    (row,) = chart.table.rows
    assert (row.label, [entry.text for entry in row.entries]) == (
        "Clean",
        ["0.00", "10.00", "20.00", "20.00", "30.00", "30.00", "30.00"],
    )
    assert chart.caption.startswith("Wrong, clean: 30.00\N{NO-BREAK SPACE}% of all, 10.00\N{NO-BREAK SPACE}% of the")


def test_curves_lie_at_their_values(make_results: MakeResults) -> None:
    results = make_results(members=1)
    results["clean"]["risk_coverage"] = CURVE
    found = selective([ReportedRun("mine", results)])
    assert found is not None
    (curve,) = ElementTree.fromstring(found.curves[0][1].svg).iter("path")
    numbers = [float(text) for text in curve.attrib["d"].removeprefix("M").split()]
    assert numbers[::2] == pytest.approx([46 + 266 * share for share in CURVE["coverage"]], abs=0.01)
    assert numbers[1::2] == pytest.approx([12 + 250 * (1 - risk / 0.3) for risk in CURVE["risk"]], abs=0.01)


def test_clean_and_five_severities(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    found = selective([ReportedRun("mine", results)])
    assert found is not None
    ((_, chart),) = found.curves
    assert [row.label for row in chart.table.rows] == ["Clean", *(f"Severity {i}" for i in range(1, 6))]
    for row, curve in zip(chart.table.rows[1:], results["corrupted"]["risk_coverage"], strict=True):
        assert row.entries[-1].text == f"{100 * curve['risk'][-1]:.2f}"
    assert len(list(ElementTree.fromstring(chart.svg).iter("path"))) == 6
    assert "Clean is of other images: digits, test part, 120 images." in chart.caption


@pytest.mark.parametrize("end", [0.0, 0.15, 0.3])
def test_names_of_curves_that_end_together_do_not_overlap(make_results: MakeResults, end: float) -> None:
    results = make_results(members=1, shifted=True)
    results["clean"]["risk_coverage"] = CURVE
    results["corrupted"]["risk_coverage"] = 5 * [{**CURVE, "risk": [0.0, 0.1, 0.2, end]}]
    found = selective([ReportedRun("mine", results)])
    assert found is not None
    names = [one for one in ElementTree.fromstring(found.curves[0][1].svg).iter("text") if one.get("class") == "start"]
    heights = sorted(float(one.attrib["y"]) for one in names)
    assert len(heights) == 6
    assert min(after - before for before, after in pairwise(heights)) >= 10
    assert heights[0] >= 12


def test_images_from_outside(make_results: MakeResults) -> None:
    results = make_results(members=2, more=True, shifted=True)
    found = selective([ReportedRun("mine", results), ReportedRun("old", make_results(members=1))])
    assert found is not None
    assert found.ood is not None
    auroc = results["ood"]["auroc"]
    values = [auroc["ensemble"], *auroc["members"]]
    assert [(row.label, row.entries[0].text) for row in found.ood.rows] == [
        (name, f"{value:.3f}") for name, value in zip(("mine", "member 1", "member 2"), values, strict=True)
    ]
    assert found.ood.rows[0].entries[2].text == "letters, 60 images"


def test_nothing_to_show(make_results: MakeResults) -> None:
    results = make_results(members=1)
    del results["clean"]["risk_coverage"]
    assert selective([ReportedRun("old", results)]) is None
