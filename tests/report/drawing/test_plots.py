from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from counterpoint.records.figures import Bin
from counterpoint.report.bins import wilson_interval
from counterpoint.report.drawing.plots import Axes, reliability_chart, series_chart
from counterpoint.report.drawing.series import Ink, Point, Series
from counterpoint.report.drawing.strokes import ticks_around_zero
from counterpoint.report.reliabilities import reliability_series

BINS = (Bin(0.4, 0.5, 30, 0.45, 0.5), Bin(0.8, 0.9, 120, 0.86, 0.75))
A, B = Ink("a", 0), Ink("b", 1)


def of_class(svg: str, kind: str) -> list[Element]:
    return [one for one in ElementTree.fromstring(svg).iter() if kind in one.get("class", "").split()]


def numbers(element: Element, *names: str) -> list[float]:
    return [float(element.get(name, "")) for name in names]


def test_reliability_is_accuracy_over_confidence() -> None:
    svg = reliability_chart([reliability_series(A, BINS, intervals=True)], [(A, BINS)], "x")
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
    first, _ = reliability_series(A, BINS, intervals=True).points
    assert first.words.replace("\N{NO-BREAK SPACE}", " ").splitlines() == [
        "bin: confidence 40.00 to 50.00 %",
        "mean confidence 45.00 %",
        "accuracy 50.00 % (95 % interval 33.2 to 66.8 %)",
        "over-confidence −5.00 points",
        "images: 30",
    ]
    without = reliability_series(A, BINS, intervals=False).points[0]
    assert without.interval is None
    assert "interval" not in without.words


def test_counts_of_several_runs_stand_side_by_side() -> None:
    other = (Bin(0.8, 0.9, 60, 0.88, 0.9),)
    svg = reliability_chart([], [(A, BINS), (B, other)], "x", small=True)
    bars = of_class(svg, "count-bar")
    heights = [numbers(bar, "height")[0] for bar in bars]
    assert heights == pytest.approx([28 * count / 120 for count in (30, 120, 60)], abs=0.01)
    ours, theirs = (numbers(bar, "x", "width") for bar in bars[1:])
    assert ours[0] + ours[1] == pytest.approx(theirs[0], abs=0.02)


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
