from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from counterpoint.report.drawing.plots import Axes, Line, Scale, lines_chart, series_chart
from counterpoint.report.drawing.series import Ink, Point, Series
from counterpoint.report.drawing.strokes import ticks_around_zero

A, B = Ink("a", 0), Ink("b", 1)
LINES = (Line("ours", "second", (0.02, 0.1)), Line("<theirs>", "first", (0.0, 0.05)))


def of_class(svg: str, kind: str) -> list[Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if kind in one.get("class", "").split()]


def numbers(element: Element, *names: str) -> list[float]:
    return [float(element.get(name, "")) for name in names]


def test_an_axis_below_zero_has_its_line() -> None:
    series = [Series(A, [Point(0, -0.1, "x"), Point(1, 0.2, "y")])]
    axes = Axes({0: "0", 1: "1"}, "x", [-10, 0, 10, 20], "y")
    svg = series_chart("gap", axes, series, "x")
    (zero,) = of_class(svg, "zero-line")
    assert numbers(zero, "y1") == [212]
    assert numbers(of_class(svg, "point")[0], "data-y") == [312]
    assert "−10" in [one.text for one in of_class(svg, "end")]
    above = series_chart("gap", Axes({}, "x", [0, 10, 20], "y"), [], "x")
    assert of_class(above, "zero-line") == []


def test_runs_lie_over_members() -> None:
    line = [Point(0, 0, "x")]
    series = [Series(A, line), Series(A, line, member=1), Series(B, line), Series(B, line, member=1)]
    svg = series_chart("some", Axes({}, "", [0, 100], ""), series, "x", small=True)
    groups = [one.get("class", "") for one in ElementTree.fromstring(svg) if one.tag == "g"]
    assert ["member" in kind for kind in groups] == [True, True, False, False]


def test_the_text_alternative_is_escaped() -> None:
    svg = series_chart("some", Axes({}, "", [0, 100], ""), [], 'a "b" <c> & d')
    assert "<c>" not in svg
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c> & d'


@pytest.mark.parametrize(
    ("lowest", "highest", "ticks"),
    [
        (0.0, 0.0, [0, 0.1]),
        (-0.34, 0.11, [-40, -30, -20, -10, 0, 10, 20]),
        (-1.0, 1.0, [-100, -50, 0, 50, 100]),
        (0.01, 0.03, [0, 1, 2, 3]),
        (-0.02, -0.01, [-2, -1.5, -1, -0.5, 0, 0.5]),
    ],
)
def test_ticks_around_zero(lowest: float, highest: float, ticks: list[float]) -> None:
    assert ticks_around_zero(lowest, highest) == pytest.approx(ticks)


@pytest.mark.parametrize("low", np.linspace(-1, 1, 21).tolist())
def test_ticks_around_zero_are_few_and_reach_both_ends(low: float) -> None:
    for high in np.linspace(low, 1, 21):
        ticks = ticks_around_zero(low, high)
        assert 2 <= len(ticks) <= 8
        assert ticks[0] <= 100 * low + 1e-9
        assert ticks[-1] >= 100 * high - 1e-9
        assert 0 in ticks


def texts(svg: ElementTree.Element, kind: str) -> list[str]:
    return [one.text or "" for one in svg.iter("text") if one.get("class") == kind]


def test_a_line_for_each_series_and_a_point_for_each_name() -> None:
    scale = Scale("ECE", True, lambda value: f"{100 * value:g} %")
    svg = ElementTree.fromstring(lines_chart("ece", ["Clean", "Severity 1"], LINES, scale, "x"))
    assert [one.get("class") for one in svg.iter("path")] == ["second-line", "first-line"]
    assert [one.text for one in svg.iter("title")] == [
        "ours\nClean: 2 %",
        "ours\nSeverity 1: 10 %",
        "<theirs>\nClean: 0 %",
        "<theirs>\nSeverity 1: 5 %",
    ]
    assert texts(svg, "middle") == ["clean", "1"]
    assert texts(svg, "end") == ["0", "2", "4", "6", "8", "10"]
    assert "ECE, %" in texts(svg, "axis")
    heights = [float(one.get("cy", "")) for one in svg.iter("circle")]
    assert heights[1] == 12, "the highest value is at the top"
    assert heights[2] == 262, "and 0 at the bottom"
    assert heights[3] == pytest.approx((12 + 262) / 2)


def test_charts_beside_each_other_can_have_the_same_axis() -> None:
    scale = Scale("ECE", True, str, highest=0.18)
    svg = ElementTree.fromstring(lines_chart("ece", ["Clean", "Severity 1"], LINES, scale, "x"))
    assert texts(svg, "end") == ["0", "5", "10", "15", "20"]


def test_values_that_are_no_shares() -> None:
    scale = Scale("mean temperature", False, lambda value: f"{value:.2f}")
    svg = ElementTree.fromstring(lines_chart("t", ["Clean"], [Line("T", "first", (1.5,))], scale, "x"))
    assert texts(svg, "end") == ["0", "0.5", "1", "1.5"]
    assert "mean temperature" in texts(svg, "axis")
    assert [float(one.get("cy", "")) for one in svg.iter("circle")] == [12]
