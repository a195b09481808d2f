"""The three aggregates (docs/paper.md, 13) against plain loops.

The calibration of the cells differs, so that the aggregates differ too.
"""

import numpy as np
import pytest

from counterpoint.metrics import ImageScores, aggregate, aurc, ece, ece_rms, noise_floor
from counterpoint.metrics.shift import aggregate_with_floors
from counterpoint.records.codec import encode

SEVERITIES = 5


def cell(rng: np.random.Generator, accuracy: float, images: int = 400) -> ImageScores:
    confidence = rng.uniform(0.3, 1.0, images)
    return ImageScores(confidence, rng.random(images) < accuracy, rng.exponential(size=images), rng.random(images))


@pytest.fixture
def grid() -> dict[str, list[ImageScores]]:
    """Over-confident under one corruption, under-confident under the other, worse with severity."""
    rng = np.random.default_rng(0)
    return {
        "fog": [cell(rng, 0.9 - 0.15 * severity) for severity in range(SEVERITIES)],
        "snow": [cell(rng, 0.99 - 0.05 * severity) for severity in range(SEVERITIES)],
    }


def joined(cells: list[ImageScores], name: str) -> np.ndarray:
    return np.concatenate([getattr(scores, name) for scores in cells])


@pytest.mark.parametrize(("key", "metric"), [("ece", ece), ("ece_rms", ece_rms)])
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_each_aggregate_is_what_it_says(
    grid: dict[str, list[ImageScores]], key: str, metric: object, binning: str
) -> None:
    def of(cells: list[ImageScores]) -> float:
        return metric(joined(cells, "confidence"), joined(cells, "correct"), binning=binning)  # type: ignore[operator]

    found = {kind: getattr(figures, f"{key}_{binning}15") for kind, figures in aggregate(grid).items()}
    everything = [scores for cells in grid.values() for scores in cells]
    assert found == {
        "by-corruption": pytest.approx((of(grid["fog"]) + of(grid["snow"])) / 2),
        "by-cell": pytest.approx(sum(of([scores]) for scores in everything) / 10),
        "pooled": pytest.approx(of(everything)),
    }
    assert len({round(value, 4) for value in found.values()}) == 3, "a mistaken aggregate would show"


def test_means_are_the_same_in_every_aggregate(grid: dict[str, list[ImageScores]]) -> None:
    everything = [scores for cells in grid.values() for scores in cells]
    for figures in aggregate(grid).values():
        assert figures.error == pytest.approx(1 - joined(everything, "correct").mean())
        assert figures.nll == pytest.approx(joined(everything, "nll").mean())
        assert figures.brier == pytest.approx(joined(everything, "brier").mean())
        overconfidence = joined(everything, "confidence").mean() - joined(everything, "correct").mean()
        assert figures.overconfidence == pytest.approx(overconfidence)


def test_aurc_and_floors_are_summed_up_like_the_calibration_errors(grid: dict[str, list[ImageScores]]) -> None:
    def area(cells: list[ImageScores]) -> float:
        return aurc(joined(cells, "confidence"), joined(cells, "correct"))

    def floor(cells: list[ImageScores]) -> float:
        image = np.tile(np.arange(400), len(cells))
        confidence, correct = joined(cells, "confidence"), joined(cells, "correct")
        return noise_floor(confidence, correct, 15, "mass", images=image).ece_rms_mean

    everything = [scores for cells in grid.values() for scores in cells]
    for of, found in (
        (area, {kind: figures.aurc for kind, figures in aggregate(grid).items()}),
        (floor, {kind: figures.ece_rms_mass15_floor for kind, figures in aggregate_with_floors(grid).items()}),
    ):
        assert found == {
            "by-corruption": pytest.approx((of(grid["fog"]) + of(grid["snow"])) / 2),
            "by-cell": pytest.approx(sum(of([scores]) for scores in everything) / 10),
            "pooled": pytest.approx(of(everything)),
        }
        assert found["pooled"] != pytest.approx(found["by-cell"])


def test_floors_change_nothing_else(grid: dict[str, list[ImageScores]]) -> None:
    figures = encode(aggregate_with_floors(grid))
    for of_way in figures.values():
        for name in ("width", "rms_width", "mass", "rms_mass"):
            assert of_way.pop(f"ece_{name}15_floor") > 0
    assert figures == encode(aggregate(grid))
