from xml.etree.ElementTree import Element

import pytest

from counterpoint.report.drawing.labels import label_runs_directly
from counterpoint.report.drawing.series import Ink, Point, Series
from counterpoint.report.drawing.strokes import Panel

PANEL = Panel(top=10, height=100, left=20, width=200)


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
