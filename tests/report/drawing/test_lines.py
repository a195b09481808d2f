from xml.etree import ElementTree

import pytest

from counterpoint.report.drawing.lines import Line, Scale, lines_chart

LINES = (Line("ours", "second", (0.02, 0.1)), Line("<theirs>", "first", (0.0, 0.05)))


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
