from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from counterpoint.records.figures import Estimate
from counterpoint.report.drawing.rows import (
    DifferenceRow,
    EstimateRow,
    Pair,
    Strip,
    differences_chart,
    estimates_chart,
    pairs_chart,
    strips_chart,
)
from counterpoint.report.drawing.series import Ink

LEFT, RIGHT = 6, 348


def marks(svg: str, kind: str) -> list[Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if one.get("class") == kind]


def place(value: float, highest: float) -> float:
    return LEFT + (RIGHT - LEFT) * value / highest


def test_estimates_lie_at_their_values() -> None:
    rows = [
        EstimateRow("a", 0.04, Estimate(floor=0.01, excess=0.03, debiased=0.03, low=0.02, high=0.05), Ink("a", 0)),
        EstimateRow("b", 0.01, Estimate(floor=0.02, excess=-0.01, debiased=0.0, low=0.0, high=0.015), Ink("b", 1)),
    ]
    svg = estimates_chart(rows, "x")
    for i, row in enumerate(rows):
        bar, floor = marks(svg, "observed-bar")[i], marks(svg, "floor-mark")[i]
        interval, point = marks(svg, "interval")[i], marks(svg, "debiased-point")[i]
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) == pytest.approx(place(row.observed, 0.05), abs=0.02)
        assert float(floor.attrib["x1"]) == pytest.approx(place(row.estimate.floor, 0.05), abs=0.02)
        ends = [float(interval.attrib[key]) for key in ("x1", "x2")]
        assert ends == pytest.approx([place(row.estimate.low, 0.05), place(row.estimate.high, 0.05)], abs=0.02)
        assert float(point.attrib["cx"]) == pytest.approx(place(row.estimate.debiased, 0.05), abs=0.02)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.2, -0.1, "lower"),
        (0.1, 0.2, "higher"),
        (-0.1, 0.2, "unclear"),
        (-0.2, 0.1, "unclear"),
        (0.0, 0.2, "unclear"),
        (0.0, 0.0, "unclear"),
    ],
)
def test_an_interval_lies_on_its_side_of_zero(low: float, high: float, verdict: str) -> None:
    row = DifferenceRow("x", (low + high) / 2, low, high, "number", "points", "interval")
    assert row.verdict == verdict
    (line,) = marks(differences_chart([row], "x"), f"interval {verdict}")
    middle = (LEFT + RIGHT) / 2
    ends = [float(line.attrib[key]) - middle for key in ("x1", "x2")]
    per_unit = max(map(abs, ends)) / max(abs(low), abs(high), 1e-9)
    assert ends == pytest.approx([per_unit * low, per_unit * high], abs=0.02)
    assert LEFT <= middle + min(ends) <= middle + max(ends) <= RIGHT


def test_pairs_lie_at_their_values() -> None:
    svg = pairs_chart([Pair("a", 0.01, 0.1, "x"), Pair("b", 0.02, None, "y")], "x")
    assert [float(one.attrib["cx"]) for one in marks(svg, "clean-point")] == pytest.approx(
        [place(0.01, 0.1), place(0.02, 0.1)], abs=0.02
    )
    (box,) = marks(svg, "corrupted-point")
    assert float(box.attrib["x"]) + 4 == pytest.approx(place(0.1, 0.1), abs=0.02)


def test_strips_have_a_marker_for_each_run_and_a_band_around_the_mean() -> None:
    a, b = Ink("a", 0), Ink("b", 1)
    svg = strips_chart([Strip("x", [(a, 0.02, "two"), (b, 0.04, "four")], 0.03, 0.01)], "x")
    points = marks(svg, "point")
    assert [float(one.attrib["data-x"]) for one in points] == pytest.approx([place(0.02, 0.04), place(0.04, 0.04)])
    assert [one.findtext("title") for one in points] == ["a\ntwo", "b\nfour"]
    (band,), (mean,) = marks(svg, "spread-band"), marks(svg, "mean-mark")
    left, width = float(band.attrib["x"]), float(band.attrib["width"])
    assert [left, left + width] == pytest.approx([place(0.02, 0.04), place(0.04, 0.04)], abs=0.02)
    assert float(mean.attrib["x1"]) == pytest.approx(place(0.03, 0.04), abs=0.02)


def test_a_band_does_not_go_below_zero() -> None:
    svg = strips_chart([Strip("x", [(Ink("a", 0), 0.0, ""), (Ink("b", 1), 0.04, "")], 0.02, 0.028)], "x")
    assert float(marks(svg, "spread-band")[0].attrib["x"]) == LEFT
