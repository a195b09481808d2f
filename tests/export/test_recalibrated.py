"""The recalibration of an exported file against `recalibration.apply`, which computes it in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from counterpoint.export.network import recalibrated_probs
from counterpoint.recalibration.apply import apply
from counterpoint.recalibration.choose import NONE
from counterpoint.records.recalibrated import Parameter, Recalibration
from tests.export.kinds import KINDS


def made_logits(scale: float = 4.0, members: int = 3, seed: int = 0) -> np.ndarray:
    shared_NK = np.random.default_rng(seed).normal(size=(50, 7))
    return scale * (shared_NK + np.random.default_rng(seed + 1).normal(size=(members, 50, 7)))


def largest_difference(recalibration: Recalibration, logits_MNK: np.ndarray) -> float:
    """From what `predict` says."""
    single = logits_MNK.astype(np.float32)
    expected = apply(recalibration, single.astype(np.float64))
    members = expected.members_MNK
    members = softmax(single.astype(np.float64), axis=2) if members is None else members
    got = recalibrated_probs(recalibration, torch.from_numpy(single))
    return max(
        float(np.abs(ours.numpy() - theirs).max())
        for ours, theirs in zip(got, (expected.ensemble_NK, members), strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_what_predict_applies(kind: str) -> None:
    assert largest_difference(KINDS[kind], made_logits()) < 2e-6


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_changes_something(kind: str) -> None:
    logits_MNK = made_logits()
    plain, ours = (apply(one, logits_MNK).ensemble_NK for one in (NONE, KINDS[kind]))
    assert (np.abs(plain - ours).max() > 0.01) == (kind != "none")


@given(
    log_temperature=st.floats(np.log(0.05), np.log(20)),
    slope=st.floats(0, 50),
    kind=st.sampled_from(sorted(KINDS)),
    scale=st.floats(0, 30),
    members=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=150)
def test_also_for_parameters_that_a_fit_can_find(
    log_temperature: float, slope: float, kind: str, scale: float, members: int, seed: int
) -> None:
    like = KINDS[kind]
    count = members if like.acts == "per-member" else 1
    recalibration = Recalibration(
        like.acts,
        like.fitted_on,
        (Parameter(log_temperature),) * count,
        tuple(type(one)(one.signal, Parameter(slope)) for one in like.slopes),
    )
    # A temperature of 0.05 makes twenty times as much of the rounding of a logit of 100.
    assert largest_difference(recalibration, made_logits(scale, members, seed)) < 5e-5


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("log_temperature", [-100.0, 100.0])
def test_nothing_overflows_at_the_ends_of_what_a_record_may_hold(kind: str, log_temperature: float) -> None:
    recalibration = Recalibration(KINDS[kind].acts, "clean", (Parameter(log_temperature),))
    assert largest_difference(recalibration, made_logits(20.0)) < 1e-6


def test_members_that_agree_wholly_show_no_disagreement() -> None:
    logits_MNK = np.repeat(made_logits(members=1), 4, axis=0)
    assert largest_difference(KINDS["by disagreement"], logits_MNK) < 1e-5
    sure_MNK = np.zeros((2, 3, 5))
    sure_MNK[:, :, 0] = 500.0  # the other probabilities are 0 in float32
    assert largest_difference(KINDS["by both"], sure_MNK) < 1e-6
