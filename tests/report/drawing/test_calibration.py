import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from counterpoint.metrics import score_set, summarise
from counterpoint.records.figures import Bin, Summary
from counterpoint.report.bins import reliability_of, wilson_interval
from counterpoint.report.drawing.calibration import (
    RunBins,
    equal_width_chart,
    reliability_chart,
    reliability_series,
    short_count,
)
from counterpoint.report.drawing.series import Ink

BINS = (Bin(0.4, 0.5, 30, 0.45, 0.5), Bin(0.8, 0.9, 120, 0.86, 0.75))
A, B = Ink("a", 0), Ink("b", 1)


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


def of_class(svg: str, kind: str) -> list[Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if kind in one.get("class", "").split()]


def numbers(element: Element, *names: str) -> list[float]:
    return [float(element.get(name, "")) for name in names]


def test_reliability_is_accuracy_over_confidence() -> None:
    svg = reliability_chart([RunBins(A, BINS)], "x")
    for row, point, interval in zip(BINS, of_class(svg, "point"), of_class(svg, "interval"), strict=True):
        x, y = 46 + 302 * row.confidence, 12 + 236 * (1 - row.accuracy)
        assert numbers(point, "data-x", "data-y") == pytest.approx([x, y], abs=0.01)
        low, high = (12 + 236 * (1 - end) for end in wilson_interval(row.accuracy, row.count))
        assert numbers(interval, "y1", "y2") == pytest.approx([low, high], abs=0.01)
    (diagonal,) = of_class(svg, "perfect")
    assert numbers(diagonal, "x1", "y1", "x2", "y2") == [46, 248, 348, 12]
    small, large = of_class(svg, "marker")
    assert numbers(small, "r") < numbers(large, "r")


def test_a_point_says_its_bin() -> None:
    first, _ = reliability_series(RunBins(A, BINS), intervals=True)[0].points
    assert first.words.replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        "bin: confidence 40.00 to 50.00 %",
        "mean confidence 45.00 %",
        "accuracy 50.00 % (95 % interval 33.2 to 66.8 %)",
        "over-confidence −5.00 points",
        "images: 30",
    ]
    without = reliability_series(RunBins(A, BINS), intervals=False)[0].points[0]
    assert without.interval is None
    assert "interval" not in without.words


def test_counts_of_several_runs_stand_side_by_side() -> None:
    other = (Bin(0.8, 0.9, 60, 0.88, 0.9),)
    svg = reliability_chart([RunBins(A, BINS), RunBins(B, other)], "x", small=True)
    bars = of_class(svg, "count-bar")
    heights = [numbers(bar, "height")[0] for bar in bars]
    assert heights == pytest.approx([28 * count / 120 for count in (30, 120, 60)], abs=0.01)
    ours, theirs = (numbers(bar, "x", "width") for bar in bars[1:])
    assert ours[0] + ours[1] == pytest.approx(theirs[0], abs=0.02)


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


def test_the_text_alternative_is_escaped() -> None:
    bins = equal_width_bins()
    svg = equal_width_chart(bins, 'a "b" <c> & d')
    assert "<c>" not in svg
    assert ElementTree.fromstring(svg).get("aria-label") == 'a "b" <c> & d'


@pytest.mark.parametrize(
    ("count", "text"),
    [(7, "7"), (999, "999"), (1000, "1.0k"), (9949, "9.9k"), (9950, "10k"), (45_400, "45k"), (750_000, "750k")],
)
def test_short_count(count: int, text: str) -> None:
    assert short_count(count) == text
