import re
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

import counterpoint.report
from counterpoint.report.drawing.axes import Panel
from counterpoint.report.drawing.series import Ink, Point, Series, draw_series, legend, marker
from counterpoint.report.run import ReportedRun
from tests.chromium import contrast
from tests.report.made import MakeEvaluated

PANEL = Panel(top=10, height=100, left=20, width=200)
HOSTILE = "</title><script>alert('x')</script> \" & onload=x"


def drawn(series: Series) -> Element:
    svg = Element("svg")
    draw_series(svg, PANEL, series)
    (group,) = svg
    return group


def points(group: Element) -> list[Element]:
    return [one for one in group if one.get("class") == "point"]


def test_points_lie_at_their_values_and_say_what_they_are() -> None:
    group = drawn(Series(Ink("mine", 2), [Point(0, 0.25, "first\nline"), Point(0.5, 1.0, "second", (0.8, 1.0))]))
    assert group.attrib == {"class": "series solid run-3", "data-run": "2"}
    first, second = points(group)
    assert (first.get("data-x"), first.get("data-y")) == ("20.00", "85.00")
    assert (second.get("data-x"), second.get("data-y")) == ("120.00", "10.00")
    assert first.findtext("title") == "mine\nfirst\nline"
    (interval,) = (one for one in second if one.get("class") == "interval")
    assert [float(interval.get(key, "")) for key in ("y1", "y2")] == [30, 10]
    (line,) = (one for one in group if one.get("class") == "line")
    assert line.get("d") == "M20.00 85.00 120.00 10.00"


def test_a_member_is_thin_and_belongs_to_the_members_of_its_run() -> None:
    group = drawn(Series(Ink("mine", 0), [Point(0, 0, "x")], "dashed", member=2))
    assert group.attrib == {"class": "series dashed member run-1", "data-run": "0", "data-part": "members"}
    (only,) = points(group)
    assert [one.tag for one in only] == ["title"], "no marker"
    assert only.findtext("title") == "mine, member 2\nx"


def test_a_dense_series_has_some_markers_and_one_at_its_end() -> None:
    group = drawn(Series(Ink("mine", 0), [Point(i / 10, 0, "x") for i in range(11)], marked_every=4))
    marked = [number for number, one in enumerate(points(group)) if one.find("circle") is not None]
    assert marked == [2, 6, 10]


def test_a_point_of_little_weight_is_small() -> None:
    group = drawn(Series(Ink("mine", 0), [Point(0, 0, "x", weight=weight) for weight in (0, 0.5, 1)]))
    radii = [float(one.get("r", "")) for one in group.iter("circle")]
    assert radii == [1.5, 2.5, 3.5]


def look(place: int) -> tuple[str, str]:
    """A run's colour, and the outline of its marker."""
    parent = Element("g")
    marker(parent, Ink("run", place), 0, 0, 4)
    return Ink("run", place).colour, parent[0].get("d", "circle")


def test_runs_differ_in_colour_and_marker() -> None:
    first = [look(place) for place in range(6)]
    assert len({colour for colour, _ in first}) == len({outline for _, outline in first}) == 6
    assert len({look(place) for place in range(36)}) == 36


def test_a_hostile_name_is_only_text() -> None:
    group = drawn(Series(Ink(HOSTILE, 0), [Point(0, 0, HOSTILE)]))
    text = ElementTree.tostring(group, encoding="unicode")
    assert "<script" not in text
    assert ElementTree.fromstring(text).findtext("*/title") == f"{HOSTILE}\n{HOSTILE}"


def items(markup: str) -> list[tuple[str | None, dict[str, str]]]:
    return [(one.findtext("span"), one.attrib) for one in ElementTree.fromstring(markup)]


def test_a_legend_names_runs_looks_and_members(make_evaluated: MakeEvaluated) -> None:
    runs = [ReportedRun(name, make_evaluated(members=1), place) for place, name in enumerate(("a", HOSTILE))]
    several = legend(runs, {"solid": "accuracy", "dashed": "mean confidence"}, members=True)
    assert items(several) == [
        ("a", {"data-run": "0"}),
        (HOSTILE, {"data-run": "1"}),
        ("accuracy", {}),
        ("mean confidence", {}),
        ("each member (thin lines)", {"data-part": "members", "data-off": ""}),
    ]
    assert items(legend(runs[:1], members=True))[1][1] == {"data-part": "members"}, "one run begins with its members"
    assert legend([]) == ""


def declared(css: str) -> dict[str, list[int]]:
    found = re.findall(r"(--[\w-]+): #([0-9a-f]{6});", css)
    return {name: [int(colour[i : i + 2], 16) for i in (0, 2, 4)] for name, colour in found}


def colours_of(scheme: str) -> dict[str, list[int]]:
    formats = Path(counterpoint.report.__file__).parent / "formats"
    colours: dict[str, list[int]] = {}
    for name in ("style.css", "plots.css"):
        light, _, dark = (formats / name).read_text(encoding="utf-8").partition("prefers-color-scheme: dark")
        colours |= declared(dark if scheme == "dark" else light)
    return colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_of_runs_stand_out_from_the_page(scheme: str) -> None:
    """4.5:1, which WCAG 2.2 asks of text, as names stand beside lines in their colour; lines need 3:1."""
    colours = colours_of(scheme)
    runs = [colours[f"--run-{number}"] for number in range(1, 7)]
    for background in (colours["--page"], colours["--card"]):
        assert min(contrast(run, background) for run in runs) >= 4.5


# Linear RGB as it looks to people without one kind of cone (Machado, Oliveira and Fernandes, 2009).
SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: list[int], seen: Any) -> np.ndarray:
    """CIE L*a*b*, in which a distance of about 2 can just be told."""
    values = np.array(colour) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(np.array(seen) @ linear, 1e-3, 1) / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_of_runs_are_told_apart_with_any_eyes(scheme: str, seen: str) -> None:
    colours = colours_of(scheme)
    runs = [lab(colours[f"--run-{number}"], SEEN[seen]) for number in range(1, 7)]
    assert min(np.linalg.norm(one - other) for one, other in combinations(runs, 2)) > 8
