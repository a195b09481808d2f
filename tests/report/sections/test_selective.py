from itertools import pairwise
from xml.etree import ElementTree

import pytest

from counterpoint.records.figures import Curve
from counterpoint.records.files import Evaluated
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.selective import Selective, selective
from tests.report.made import MakeEvaluated, changed, changed_all

CURVE = Curve((0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.3))


@pytest.fixture
def by_hand(make_evaluated: MakeEvaluated) -> Evaluated:
    return changed(make_evaluated(members=1), "results.clean.risk_coverage", CURVE)


def content_of(*runs: Evaluated) -> Selective:
    found = selective([ReportedRun("mine", run) for run in runs])
    assert found is not None
    return found


def test_the_table_by_hand(by_hand: Evaluated) -> None:
    ((label, chart),) = content_of(by_hand).curves
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


def test_curves_lie_at_their_values(by_hand: Evaluated) -> None:
    (curve,) = ElementTree.fromstring(content_of(by_hand).curves[0][1].svg).iter("path")
    numbers = [float(text) for text in curve.attrib["d"].removeprefix("M").split()]
    assert numbers[::2] == pytest.approx([46 + 266 * share for share in CURVE.coverage], abs=0.01)
    assert numbers[1::2] == pytest.approx([12 + 250 * (1 - risk / 0.3) for risk in CURVE.risk], abs=0.01)


def test_clean_and_every_severity(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, shifted=True, extra=True)
    ((_, chart),) = content_of(evaluated).curves
    assert [row.label for row in chart.table.rows] == ["Clean", *(f"Severity {i}" for i in range(1, 6))]
    assert evaluated.results.corrupted is not None
    for row, curve in zip(chart.table.rows[1:], evaluated.results.corrupted.risk_coverage, strict=True):
        assert row.entries[-1].text == f"{100 * curve.risk[-1]:.2f}"
    assert len(list(ElementTree.fromstring(chart.svg).iter("path"))) == 6
    assert "Clean is of other images: digits, test part, 120 images." in chart.caption


@pytest.mark.parametrize("end", [0.0, 0.15, 0.3])
def test_names_of_curves_that_end_together_do_not_overlap(make_evaluated: MakeEvaluated, end: float) -> None:
    curves = 5 * (Curve(CURVE.coverage, (0.0, 0.1, 0.2, end)),)
    evaluated = changed_all(
        make_evaluated(members=1, shifted=True),
        {"results.clean.risk_coverage": CURVE, "results.corrupted.risk_coverage": curves},
    )
    svg = ElementTree.fromstring(content_of(evaluated).curves[0][1].svg)
    names = [one for one in svg.iter("text") if one.get("class") == "start"]
    heights = sorted(float(one.attrib["y"]) for one in names)
    assert len(heights) == 6
    assert min(after - before for before, after in pairwise(heights)) >= 10
    assert heights[0] >= 12


def test_images_from_outside(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, more=True, shifted=True)
    table, outside = content_of(evaluated, make_evaluated(members=1)).ood, evaluated.results.ood
    assert table is not None
    assert outside is not None
    values = [outside.auroc.ensemble, *outside.auroc.members]
    assert [(row.label, row.entries[0].text) for row in table.rows] == [
        (name, f"{value:.3f}") for name, value in zip(("mine", "member 1", "member 2"), values, strict=True)
    ]
    assert table.rows[0].entries[2].text == "letters, 60 images"


def test_nothing_to_show(by_hand: Evaluated) -> None:
    assert selective([ReportedRun("old", changed(by_hand, "results.clean.risk_coverage", None))]) is None
