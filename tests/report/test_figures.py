from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from counterpoint.metrics import summarise
from counterpoint.report.figures import equal_mass_figure, equal_width_figure, percent_ticks, short_count


def summary() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(4, 0.3), size=(1, 300))
    labels = np.where(rng.random(300) < 0.8, probs[0].argmax(1), rng.integers(4, size=300))
    return summarise(probs, labels)


def rects(svg: str, kind: str) -> list[dict[str, float]]:
    """The rectangles of a class as numbers."""
    found = ElementTree.fromstring(svg).iter("rect")
    return [{k: float(v) for k, v in rect.items() if k != "class"} for rect in found if rect.get("class") == kind]


def test_equal_width_bars_have_the_bins_place_and_height() -> None:
    bins = summary()["reliability"]["width15"]
    bars = rects(equal_width_figure(bins, "x"), "accuracy-bar")
    bottom = max(bar["y"] + bar["height"] for bar in bars)
    per_unit = (bars[-1]["x"] - bars[0]["x"]) / (bins[-1]["low"] - bins[0]["low"])
    for row, bar in zip(bins, bars, strict=True):
        assert bar["height"] == pytest.approx(236 * row["accuracy"], abs=0.02)
        assert bar["y"] + bar["height"] == pytest.approx(bottom, abs=0.02)
        assert bar["x"] - bars[0]["x"] == pytest.approx(per_unit * (row["low"] - bins[0]["low"]), abs=0.02)


def test_equal_width_gaps_say_which_way() -> None:
    bins = summary()["reliability"]["width15"]
    svg = equal_width_figure(bins, "x")
    for kind, sign in (("over", 1), ("under", -1)):
        expected = [sign * (row["confidence"] - row["accuracy"]) for row in bins]
        heights = [rect["height"] / 236 for rect in rects(svg, kind)]
        assert heights == pytest.approx([gap for gap in expected if gap > 0], abs=1e-3)
        assert heights


def test_counts_are_written_and_drawn() -> None:
    bins = summary()["reliability"]["width15"]
    svg = equal_width_figure(bins, "x")
    written = [text.text for text in ElementTree.fromstring(svg).iter("text") if text.get("class") == "count"]
    assert written == [str(row["count"]) for row in bins]
    heights = [rect["height"] for rect in rects(svg, "count-bar")]
    most = max(row["count"] for row in bins)
    assert heights == pytest.approx([max(heights) * row["count"] / most for row in bins], abs=0.02)


@pytest.mark.parametrize("ticks", [[0, 20, 40, 60, 80, 100], [20, 40, 60, 80, 100]])
def test_the_shaded_area_of_the_equal_mass_figure_is_the_ece(ticks: list[int]) -> None:
    one = summary()
    svg = equal_mass_figure(one["reliability"]["mass15"], ticks, "x")
    area = sum(rect["width"] * rect["height"] for kind in ("over", "under") for rect in rects(svg, kind))
    full_width = sum(rect["width"] for kind in ("over", "under") for rect in rects(svg, kind))
    full_height = 300 / (1 - ticks[0] / 100)
    assert area / (full_width * full_height) == pytest.approx(one["ensemble"]["ece_mass15"], abs=2e-4)


def test_the_text_alternative_is_escaped() -> None:
    bins = summary()["reliability"]["width15"]
    svg = equal_width_figure(bins, 'a "b" <c> & d')
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
