import math
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.metrics import collapse_verdict, disagreement, factor_correlation, independent_disagreement


def layers(members: int, seed: int = 0) -> list[np.ndarray]:
    """Factors as BatchEnsemble draws them, N(1, 0.5²), in layers of different widths."""
    rng = np.random.default_rng(seed)
    return [rng.normal(1, 0.5, size=(members, channels)) for channels in (64, 256, 512, 1024)]


@pytest.mark.parametrize("members", [2, 4, 8])
def test_independent_draws(members: int) -> None:
    found = factor_correlation(layers(members))
    assert found.independent == -1 / (members - 1)
    assert found.plain == pytest.approx(0, abs=0.05)
    assert found.closest == pytest.approx(found.independent, abs=0.08)


def test_identical_members() -> None:
    found = factor_correlation([np.repeat(layer[:1], 3, axis=0) for layer in layers(4)])
    assert found.plain == pytest.approx(1)
    assert found.closest == 1


def test_constant_factors_are_identical_members() -> None:
    assert factor_correlation([np.ones((3, 8))]).plain == factor_correlation([np.ones((3, 8))]).closest == 1


def test_two_members_that_became_one() -> None:
    alike = [layer[[0, 0, 1, 2]] for layer in layers(3)]
    found = factor_correlation(alike)
    assert found.closest == pytest.approx(1)
    assert found.plain == pytest.approx(1 / 6, abs=0.05)  # one of six pairs


def test_a_common_part_shows_in_the_plain_correlation_only() -> None:
    """Half of the variance is common to all members: correlation 0.5; removing the mean over members removes it."""
    common = layers(1, seed=1)
    found = factor_correlation([layer + shared for layer, shared in zip(layers(4), common, strict=True)])
    assert found.plain == pytest.approx(0.5, abs=0.05)
    assert found.closest == pytest.approx(found.independent, abs=0.08)


def test_by_hand() -> None:
    """One layer, mean 0. Rows (2, 0), (−1, 1), (−1, −1): cosines −1/√2, −1/√2, 0; each channel's mean is 0 already."""
    found = factor_correlation([[[2.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]])
    assert found.plain == pytest.approx(-math.sqrt(2) / 3)
    assert found.closest == pytest.approx(0, abs=1e-12)


def test_a_layer_counts_by_its_channels_not_by_its_scale() -> None:
    unscaled = layers(4)
    scaled = [factor * layer + 3 for factor, layer in zip((1, 100, 0.01, 7), unscaled, strict=True)]
    assert vars(factor_correlation(unscaled)) == pytest.approx(vars(factor_correlation(scaled)))


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("error", [0.05, 0.4, 1.0])
def test_independent_disagreement_is_what_independent_members_show(error: float, classes: int) -> None:
    rng = np.random.default_rng(0)
    wrong_MN = rng.random((2, 40_000)) < error
    predicted_MN = np.where(wrong_MN, rng.integers(1, classes, size=wrong_MN.shape), 0)
    shown = disagreement(np.eye(classes)[predicted_MN])
    assert independent_disagreement(error, classes) == pytest.approx(shown, abs=0.012)


@pytest.mark.parametrize(
    ("disagreement", "kl", "says"),
    [
        (0.001, 0.0, "are nearly identical"),
        (0.008, 0.009, "are nearly identical"),
        (0.008, 0.02, "differ a little"),  # they agree on the classes, not on the probabilities
        (0.01, 0.0, "differ a little"),
        (0.044, 0.5, "differ a little"),
        (0.05, 0.0, "differ clearly"),
        (0.19, 1.0, "differ clearly"),
    ],
)
def test_verdicts_at_10_percent_error(disagreement: float, kl: float, says: str) -> None:
    """Independent members of two classes and error 0.1 disagree on 1 − 0.81 − 0.01 = 0.18 of the images."""
    verdict = collapse_verdict(disagreement, 0.1, kl, num_classes=2)
    assert verdict.startswith(
        f"The members {says}: two of them disagree on {100 * disagreement:.1f}\N{NO-BREAK SPACE}% of the images"
    )
    assert "would disagree on 18.0\N{NO-BREAK SPACE}%" in verdict


def test_without_errors_there_is_no_verdict() -> None:
    assert collapse_verdict(0.0, 0.0, 0.001, num_classes=10).startswith("No member is wrong on these images")


def test_members_that_agree_everywhere_are_not_said_to_disagree() -> None:
    """A rounded share of 0.0% would contradict the words."""
    assert collapse_verdict(0.0, 0.1, 0.02, num_classes=10) == (
        "The members differ a little in their confidence: they predict the same class on every image, and the mean KL "
        "divergence between two members is 0.02 nats."
    )
    assert collapse_verdict(0.0, 0.1, 0.001, num_classes=10).startswith(
        "The members are nearly identical: they predict"
    )
    assert "two of them disagree on less than 0.1\N{NO-BREAK SPACE}% of" in collapse_verdict(
        0.0004, 0.1, 0.02, num_classes=10
    )
    assert "two of them disagree on 0.1\N{NO-BREAK SPACE}% of" in collapse_verdict(0.0006, 0.1, 0.02, num_classes=10)


@pytest.mark.parametrize(
    ("factors", "says"),
    [
        ([], "same number, 2 or more"),
        ([np.ones((1, 3))], r"\[1\] members"),
        ([np.ones((2, 3)), np.ones((3, 3))], r"\[2, 3\] members"),
        ([np.ones(3)], "2 axes"),
        ([np.full((2, 3), math.nan)], "holds nan"),
    ],
)
def test_nonsense_factors_are_refused(factors: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        factor_correlation(factors)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((1.2, 0.1, 0.1, 10), "holds 1.2"),
        ((0.1, math.nan, 0.1, 10), "holds nan"),
        ((0.1, 0.1, -0.1, 10), "kl is -0.1"),
        ((0.1, 0.1, math.inf, 10), "kl is inf"),
        ((0.1, 0.1, 0.1, 1), "num_classes is 1"),
    ],
)
def test_nonsense_figures_are_refused(arguments: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        collapse_verdict(*arguments)


def test_an_error_in_percent_and_a_single_class_are_refused() -> None:
    with pytest.raises(InputError, match="error holds 10"):
        independent_disagreement(10, num_classes=10)
    with pytest.raises(InputError, match="num_classes is 1"):
        independent_disagreement(0.1, num_classes=1)
