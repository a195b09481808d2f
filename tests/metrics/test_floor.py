import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

from counterpoint.errors import InputError
from counterpoint.metrics import ece, ece_rms, noise_floor
from counterpoint.metrics.calibration import Binning


def exact_floor(confidence: list[float], bins: int, binning: Binning) -> tuple[float, float, float]:
    """Mean and standard deviation of the ECE and mean ECE-rms over every possible outcome, with its probability."""
    mean = square = rms = 0.0
    for correct in product([0, 1], repeat=len(confidence)):
        chance = math.prod(c if right else 1 - c for c, right in zip(confidence, correct, strict=True))
        value = ece(confidence, correct, bins, binning)
        mean, square = mean + chance * value, square + chance * value**2
        rms += chance * ece_rms(confidence, correct, bins, binning)
    return mean, math.sqrt(square - mean**2), rms


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_the_mean_over_every_possible_outcome(binning: Binning) -> None:
    confidence = [0.2, 0.35, 0.5, 0.5, 0.8, 0.9, 0.95, 0.99]
    mean, sd, rms = exact_floor(confidence, 4, binning)
    floor = noise_floor(confidence, [1] * 8, 4, binning, simulations=20_000)
    assert floor.ece_mean == pytest.approx(mean, abs=4 * sd / math.sqrt(20_000))
    assert floor.ece_sd == pytest.approx(sd, rel=0.03)
    assert floor.ece_rms_mean == pytest.approx(rms, abs=4 * floor.ece_rms_sd / math.sqrt(20_000))


def test_one_image_of_confidence_a_half() -> None:
    """Right or wrong, it is off by one half: the floor is the observed value and does not scatter."""
    floor = noise_floor([0.5], [1])
    assert (floor.ece_mean, floor.ece_sd, floor.ece_excess) == (0.5, 0, 0)
    assert (floor.ece_rms_mean, floor.ece_rms_sd, floor.ece_rms_excess) == (0.5, 0, 0)


def test_sure_images_have_no_noise() -> None:
    floor = noise_floor([0.0, 1.0, 1.0], [0, 1, 0])
    assert floor.ece_mean == floor.ece_sd == 0
    assert floor.ece_excess == pytest.approx(1 / 3)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("kind", ["sure", "spread"])
def test_a_perfectly_calibrated_model_shows_the_floor(population: Any, kind: str, binning: Binning) -> None:
    rng = np.random.default_rng(0)
    model = population(kind)
    excess = []
    for _ in range(60):
        confidence, correct = model.draw(2000, rng)
        floor = noise_floor(confidence, correct, 15, binning)
        excess.append([floor.ece_excess / floor.ece_sd, floor.ece_rms_excess / floor.ece_rms_sd])
    assert np.abs(np.mean(excess, axis=0)).max() < 4 / math.sqrt(60)
    assert np.std(excess, axis=0) == pytest.approx(1, abs=0.4)


def test_an_over_confident_model_lies_far_above_it(population: Any) -> None:
    confidence, correct = population("spread", shift=0.1).draw(5000, np.random.default_rng(0))
    floor = noise_floor(confidence, correct)
    assert floor.ece_excess == pytest.approx(ece(confidence, correct) - floor.ece_mean)
    assert floor.ece_rms_excess == pytest.approx(ece_rms(confidence, correct) - floor.ece_rms_mean)
    assert floor.ece_excess > 10 * floor.ece_sd


def test_the_order_of_images_changes_no_bit_and_the_seed_does() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.integers(0, 30, 500) / 30, rng.random(500) < 0.5
    order = rng.permutation(500)
    assert noise_floor(confidence, correct) == noise_floor(confidence[order], correct[order])
    assert noise_floor(confidence, correct) != noise_floor(confidence, correct, seed=1)


def dependent_entries(
    temperature: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Confidence, correct and image of 300 images in 15 cells, and what a calibrated model would have right.

    Difficulty and luck are mostly an image's own, so that its entries depend on each other. At a temperature below 1
    the model is over-confident.
    """
    shape = (300, 15)

    def shared() -> np.ndarray:
        return np.sqrt(0.8) * rng.standard_normal((300, 1)) + np.sqrt(0.2) * rng.standard_normal(shape)

    odds = 2.5 - 0.2 * np.arange(15) + 2 * shared()
    confidence, luck = expit(odds / temperature), ndtr(shared())
    image = np.repeat(np.arange(300)[:, None], 15, axis=1)
    return confidence.ravel(), (luck < expit(odds)).ravel(), image.ravel(), (luck < confidence).ravel()


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_a_calibrated_model_with_dependent_entries_shows_the_floor(temperature: float, binning: Binning) -> None:
    """Also where the observed model is far off. As independent draws the same entries have a floor that is too low."""
    rng = np.random.default_rng(0)
    shown: list[list[float]] = []
    floors: list[list[float]] = []
    independent: list[list[float]] = []
    for seed in range(150):
        confidence, correct, image, calibrated = dependent_entries(temperature, rng)
        shown.append([metric(confidence, calibrated, 15, binning) for metric in (ece, ece_rms)])
        for found, images in ((floors, image), (independent, None)):
            floor = noise_floor(confidence, correct, 15, binning, simulations=50, seed=seed, images=images)
            found.append([floor.ece_mean, floor.ece_rms_mean])
    shown_mean, floor_mean, independent_mean = (np.mean(one, axis=0) for one in (shown, floors, independent))
    assert floor_mean / shown_mean == pytest.approx(1, abs=0.1)  # the mean of 150 draws is known to 2.5 %
    assert (independent_mean / shown_mean).max() < 0.9


def test_copies_of_an_image_prove_nothing_new() -> None:
    """Each image four times: the floor is that of the images, as often as they are there."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.1, 1, 300)
    correct = rng.random(300) < confidence
    once = noise_floor(confidence, correct, simulations=4000)
    copied = noise_floor(np.tile(confidence, 4), np.tile(correct, 4), simulations=4000, images=np.tile(range(300), 4))
    assert copied.ece_mean == pytest.approx(once.ece_mean, rel=0.01)
    assert copied.ece_sd == pytest.approx(once.ece_sd, rel=0.05)
    assert copied.ece_rms_mean == pytest.approx(once.ece_rms_mean, rel=0.02)


def test_images_with_one_entry_each_are_independent() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(200), rng.random(200) < 0.5
    found = noise_floor(confidence, correct, images=rng.permutation(200))
    assert vars(found) == pytest.approx(vars(noise_floor(confidence, correct)))


def test_a_bin_without_scatter_counts_as_independent() -> None:
    """All entries have the same confidence and are right, so that nothing but a rounding error is left."""
    found = noise_floor([0.7] * 30, [1] * 30, images=[0] * 30)
    assert found == noise_floor([0.7] * 30, [1] * 30)


@pytest.mark.parametrize("simulations", [0, 1, 2.5, "200"])
def test_simulations_must_be_several(simulations: Any) -> None:
    with pytest.raises(InputError, match="whole number, 2 or more"):
        noise_floor([0.5], [1], simulations=simulations)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="holds nan"):
        noise_floor([math.nan], [1])
    with pytest.raises(InputError, match="must be 0 or 1"):
        noise_floor([0.5], [2])
    with pytest.raises(InputError, match=r"images has shape \(3,\); there are 2 predictions"):
        noise_floor([0.5, 0.6], [1, 0], images=[0, 0, 1])
    with pytest.raises(InputError, match="image numbers must be integers"):
        noise_floor([0.5, 0.6], [1, 0], images=[0.5, 1.5])
