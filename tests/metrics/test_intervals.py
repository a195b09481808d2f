"""What test inversion takes a plug-in value to be distributed like."""

import math

import pytest

from counterpoint.metrics.intervals import Scatter


def test_share_below() -> None:
    exponential = Scatter(truth=0.1, mean=0.2, variance=0.04)  # a gamma distribution of shape 1
    assert exponential.share_below(0.0) == 0
    assert exponential.share_below(0.3) == pytest.approx(1 - math.exp(-1.5))
    step = Scatter(truth=0.1, mean=0.2, variance=0.0)
    assert [step.share_below(value) for value in (0.1, 0.2, 0.3)] == [0, 0.5, 1]
