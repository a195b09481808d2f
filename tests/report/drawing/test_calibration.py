import re
from xml.etree import ElementTree

import numpy as np
import pytest

from counterpoint.metrics import score_set, summarise
from counterpoint.records.figures import Bin, Summary
from counterpoint.report.bins import reliability_of, wilson_interval
from counterpoint.report.drawing.calibration import (
    equal_mass_chart,
    equal_width_chart,
    severity_chart,
    short_count,
    small_equal_width_chart,
)
from counterpoint.report.drawing.strokes import percent_ticks
from counterpoint.report.severities import Rates, Severity


def summary() -> Summary:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(4, 0.3), size=(1, 300))
    labels = np.where(rng.random(300) < 0.8, probs[0].argmax(1), rng.integers(4, size=300))
    return summarise(score_set(probs, labels))


def equal_width_bins() -> tuple[Bin, ...]:
    return reliability_of(summary()).width15


def rects(svg: str, kind: str) -> list[dict[str, float]]:
    """The rectangles of a class as numbers."""
    found = ElementTree.fromstring(svg).iter("rect")
    return [{k: float(v) for k, v in rect.items() if k != "class"} for rect in found if rect.get("class") == kind]


def test_equal_width_bars_have_the_bins_place_and_height() -> None:
    bins = equal_width_bins()
    bars = rects(equal_width_chart(bins, "x"), "accuracy-bar")
    bottom = max(bar["y"] + bar["height"] for bar in bars)
    per_unit = (bars[-1]["x"] - bars[0]["x"]) / (bins[-1].low - bins[0].low)
    for row, bar in zip(bins, bars, strict=True):
        assert bar["height"] == pytest.approx(236 * row.accuracy, abs=0.02)
        assert bar["y"] + bar["height"] == pytest.approx(bottom, abs=0.02)
        assert bar["x"] - bars[0]["x"] == pytest.approx(per_unit * (row.low - bins[0].low), abs=0.02)


def test_places_lie_over_the_bars_of_their_bins() -> None:
    bins = equal_width_bins()
    plain, marked = equal_width_chart(bins, "x"), equal_width_chart(bins, "x", places=15)
    assert rects(plain, "place") == []
    places = rects(marked, "place")
    assert len(places) == 15
    for row, bar in zip(bins, rects(marked, "accuracy-bar"), strict=True):
        place = places[round(row.low * 15)]
        assert place["x"] < bar["x"]
        assert place["x"] + place["width"] > bar["x"] + bar["width"]
        assert place["width"] == pytest.approx(302 / 15, abs=0.01)
    assert plain == re.sub(r'<rect class="place"[^>]*>', "", marked)


def test_equal_width_gaps_say_which_is_higher() -> None:
    bins = equal_width_bins()
    svg = equal_width_chart(bins, "x")
    for kind, sign in (("over", 1), ("under", -1)):
        expected = [sign * (row.confidence - row.accuracy) for row in bins]
        heights = [rect["height"] / 236 for rect in rects(svg, kind)]
        assert heights == pytest.approx([gap for gap in expected if gap > 0], abs=1e-3)
        assert heights


def test_counts_are_written_and_drawn() -> None:
    bins = equal_width_bins()
    svg = equal_width_chart(bins, "x")
    written = [text.text for text in ElementTree.fromstring(svg).iter("text") if text.get("class") == "count"]
    assert written == [str(row.count) for row in bins]
    heights = [rect["height"] for rect in rects(svg, "count-bar")]
    most = max(row.count for row in bins)
    assert heights == pytest.approx([max(heights) * row.count / most for row in bins], abs=0.02)


def test_intervals_span_what_they_say() -> None:
    bins = equal_width_bins()
    lines = ElementTree.fromstring(equal_width_chart(bins, "x")).iter("line")
    lengths = [float(one.attrib["y1"]) - float(one.attrib["y2"]) for one in lines if one.get("class") == "interval"]
    expected = [high - low for low, high in (wilson_interval(row.accuracy, row.count) for row in bins)]
    assert lengths == pytest.approx([236 * one for one in expected], abs=0.02)


def test_the_small_chart_has_the_same_bars_and_no_intervals() -> None:
    bins = equal_width_bins()
    svg = small_equal_width_chart(bins, "x")
    heights = [bar["height"] for bar in rects(svg, "accuracy-bar")]
    assert heights == pytest.approx([130 * row.accuracy for row in bins], abs=0.02)
    assert "interval" not in svg
    assert 'class="count"' not in svg


def severity_points(members: int, first: int = 1) -> list[Severity]:
    return [
        Severity(number, Rates(0.9 - 0.1 * number, 0.85), tuple(Rates(0.5, 0.6) for _ in range(members)), bins=())
        for number in range(first, 6)
    ]


def test_severity_points_lie_at_their_values() -> None:
    points = severity_points(members=0)
    svg = ElementTree.fromstring(severity_chart(points, [20, 40, 60, 80, 100], "x"))
    for kind, values in (
        ("accuracy-point", [point.ensemble.accuracy for point in points]),
        ("confidence-point", [point.ensemble.confidence for point in points]),
    ):
        circles = [one for one in svg.iter("circle") if one.get("class") == kind]
        heights = [(12 + 300 - float(one.attrib["cy"])) / 300 for one in circles]
        assert [0.2 + 0.8 * height for height in heights] == pytest.approx(values, abs=1e-4)
        places = [float(one.attrib["cx"]) for one in circles]
        assert np.diff(places) == pytest.approx(np.diff(places)[0], abs=0.02)


@pytest.mark.parametrize(("members", "lines"), [(0, 2), (4, 10)])
def test_each_model_has_a_line_of_each_kind(members: int, lines: int) -> None:
    svg = ElementTree.fromstring(severity_chart(severity_points(members), [0, 100], "x"))
    paths = [one.attrib["class"] for one in svg.iter("path")]
    assert len(paths) == lines
    assert sum("member-line" in kind for kind in paths) == 2 * members


@pytest.mark.parametrize(("first", "names"), [(0, ["clean", "1", "2", "3", "4", "5"]), (1, ["1", "2", "3", "4", "5"])])
def test_the_clean_set_has_its_own_tick(first: int, names: list[str]) -> None:
    svg = ElementTree.fromstring(severity_chart(severity_points(0, first), [0, 100], "x"))
    assert [one.text for one in svg.iter("text") if one.get("class") == "middle"] == names


def test_one_severity_has_its_place() -> None:
    (point,) = severity_points(members=1, first=5)
    svg = ElementTree.fromstring(severity_chart([point], [0, 100], "x"))
    assert [one.text for one in svg.iter("text") if one.get("class") == "middle"] == ["5"]


def test_severity_gaps_say_which_is_higher() -> None:
    svg = severity_chart(severity_points(members=0, first=0), [0, 100], "x")
    assert len(rects(svg, "under")) == 1  # 90 % right and 85 % sure, on the clean set
    assert len(rects(svg, "over")) == 5


@pytest.mark.parametrize("ticks", [[0, 20, 40, 60, 80, 100], [20, 40, 60, 80, 100]])
def test_the_shaded_area_of_the_equal_mass_chart_is_the_ece(ticks: list[int]) -> None:
    one = summary()
    svg = equal_mass_chart(reliability_of(one).mass15, ticks, "x")
    area = sum(rect["width"] * rect["height"] for kind in ("over", "under") for rect in rects(svg, kind))
    full_width = sum(rect["width"] for kind in ("over", "under") for rect in rects(svg, kind))
    full_height = 300 / (1 - ticks[0] / 100)
    assert area / (full_width * full_height) == pytest.approx(one.ensemble.ece_mass15, abs=2e-4)


def test_the_text_alternative_is_escaped() -> None:
    bins = equal_width_bins()
    svg = equal_width_chart(bins, 'a "b" <c> & d')
    assert "<c>" not in svg
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c> & d'


@pytest.mark.parametrize(
    ("lowest", "ticks"),
    [
        (0.0, [0, 20, 40, 60, 80, 100]),
        (0.47, [40, 60, 80, 100]),
        (0.62, [60, 70, 80, 90, 100]),
        (0.87, [85, 90, 95, 100]),
        (0.999, [99, 100]),
        (1.0, [99, 100]),
    ],
)
def test_percent_ticks(lowest: float, ticks: list[int]) -> None:
    assert percent_ticks(lowest) == ticks


@pytest.mark.parametrize("lowest", np.linspace(0, 1, 201).tolist())
def test_percent_ticks_are_few_and_reach_below(lowest: float) -> None:
    ticks = percent_ticks(lowest)
    assert 2 <= len(ticks) <= 6
    assert 0 <= ticks[0] <= 100 * lowest + 1e-9
    assert ticks[-1] == 100


@pytest.mark.parametrize(
    ("count", "text"),
    [(7, "7"), (999, "999"), (1000, "1.0k"), (9949, "9.9k"), (9950, "10k"), (45_400, "45k"), (750_000, "750k")],
)
def test_short_count(count: int, text: str) -> None:
    assert short_count(count) == text
