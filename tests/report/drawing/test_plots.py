from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from counterpoint.report.drawing.axes import Panel
from counterpoint.report.drawing.plots import Axes, Line, Scale, label_runs_directly, lines_chart, series_chart
from counterpoint.report.drawing.series import Ink, Point, Series

A, B = Ink("a", 0), Ink("b", 1)
PANEL = Panel(top=10, height=100, left=20, width=200)
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


def line(place: int, *heights: float, label: str = "", **more: object) -> Series:
    points = [Point(i / (len(heights) - 1), y, "x") for i, y in enumerate(heights)]
    return Series(Ink(label or f"run {place}", place), points, **more)  # type: ignore[arg-type]


def labels(*series: Series) -> list[tuple[str | None, float, float]]:
    svg = Element("svg")
    label_runs_directly(svg, PANEL, series)
    found = [(group, group[0]) for group in svg]
    return [(group.get("data-run"), float(one.get("x", "")), float(one.get("y", ""))) for group, one in found]


def test_a_name_stands_above_the_end_of_its_line() -> None:
    ((run, x, y),) = labels(line(3, 0.5, 0.5, 0.5))
    assert run == "3"
    assert 60 - 15 < y < 60
    assert x + 17 <= 220, "within the panel"


def test_a_name_at_the_top_stands_below() -> None:
    ((_, _, y),) = labels(line(0, 1.0, 1.0))
    assert y > 10


def test_names_do_not_meet_each_other_or_a_line() -> None:
    both = labels(line(0, 0.5, 0.6), line(1, 0.5, 0.4))
    assert [run for run, _, _ in both] == ["0", "1"]
    (_, _, above), (_, _, below) = both
    assert above < 60 < below


@pytest.mark.parametrize(
    "series", [line(0, 0.5, 0.5, label=40 * "x"), line(0, 0.5, 0.5, look="dashed"), line(0, 0.5, 0.5, member=1)]
)
def test_without_room_or_for_another_kind_of_line_there_is_no_name(series: Series) -> None:
    assert labels(series) == []


def test_a_point_near_another_line_has_no_name() -> None:
    (_, first, _), (_, second, _) = labels(line(0, 0.9, 0.5), line(1, 0.1, 0.5))
    assert max(first, second) < 120, "where the lines are apart"
    assert labels(line(0, 0.5, 0.5), line(1, 0.52, 0.52)) == []


def test_where_one_name_does_not_fit_there_are_none() -> None:
    assert labels(*(line(i, 0.05 * i, 0.05 * i) for i in range(20))) == []
