"""The collapse check of a run: hand-made summaries, and factors that are alike or missing."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.logits import read_factors
from counterpoint.metrics import factor_correlation
from counterpoint.metrics.collapse import collapse_record
from counterpoint.records.figures import Summary
from counterpoint.storage.arrays import write_arrays
from tests.made_results import make_results
from tests.made_runs import MakeRun

RESULTS = make_results()


def summary(errors: tuple[float, ...], disagreement: float | None, kl: float | None) -> Summary:
    members = tuple(replace(RESULTS.clean.ensemble, error=error) for error in errors)
    return replace(RESULTS.clean, members=members, disagreement=disagreement, pairwise_kl=kl)


CLEAN = summary((0.1, 0.3), 0.12, 0.5)
assert RESULTS.corrupted is not None
CORRUPTED = replace(
    RESULTS.corrupted,
    cells={
        "fog": (summary((0.2, 0.2), 0.1, 0.3), summary((0.4, 0.6), 0.5, 1.0)),
        "snow": (summary((0.2, 0.6), 0.3, 0.5), summary((0.5, 0.5), 0.3, 2.0)),
    },
)


def test_each_severity_is_a_mean_over_corruptions(make_run: MakeRun) -> None:
    collapse = collapse_record(read_factors(make_run()), CLEAN, CORRUPTED, num_classes=3)
    assert collapse is not None
    # Two members of error e, alike in nothing, differ unless both are right, (1 − e)², or both choose the same of the
    # two wrong classes, e² / 2: 0.34 for e = 0.2, 0.56 for 0.4 and 0.625 for 0.5.
    assert astuple(collapse.clean) == pytest.approx((0.12, 0.5, 0.34))
    assert [astuple(between) for between in collapse.severities] == [
        pytest.approx((0.2, 0.4, (0.34 + 0.56) / 2)),
        pytest.approx((0.4, 1.5, 0.625)),
    ]
    assert collapse.verdict.startswith(
        "The members differ clearly: two of them disagree on 12.0\N{NO-BREAK SPACE}% of the images"
    )


def test_r_and_s_are_not_mixed_up(make_run: MakeRun) -> None:
    run = make_run(members=3)
    rng = np.random.default_rng(1)
    r, s = [rng.normal(size=(3, 10)), rng.normal(size=(3, 20))], [rng.normal(size=(3, 10))]
    write_arrays(run.folder / "logits" / "factors.npz", {"a.r": r[0], "a.s": s[0], "b.r": r[1]})
    collapse = collapse_record(read_factors(run), CLEAN, CORRUPTED, num_classes=3)
    assert collapse is not None
    for kind, layers in (("r", r), ("s", s)):
        expected = factor_correlation(layers)
        assert getattr(collapse, kind) == expected
    assert collapse.r != collapse.s


def test_identical_members_are_noticed(make_run: MakeRun) -> None:
    run = make_run()
    same = np.repeat(np.random.default_rng(0).normal(size=(1, 10)), 2, axis=0)
    write_arrays(run.folder / "logits" / "factors.npz", {"a.r": same, "a.s": same})
    collapse = collapse_record(read_factors(run), summary((0.1, 0.1), 0.0, 0.0), CORRUPTED, num_classes=3)
    assert collapse is not None
    assert collapse.verdict.startswith("The members are nearly identical")
    assert collapse.r is not None
    assert collapse.r.plain == pytest.approx(1)


def test_a_deep_ensemble_is_judged_by_its_predictions(make_run: MakeRun) -> None:
    run = make_run(ensemble="deep")
    write_arrays(run.folder / "logits" / "factors.npz", {})
    collapse = collapse_record(read_factors(run), CLEAN, CORRUPTED, num_classes=3)
    assert collapse is not None
    assert (collapse.r, collapse.s) == (None, None)
    assert collapse.verdict.startswith("The members differ clearly")


def test_a_single_network_cannot_collapse() -> None:
    assert collapse_record({}, summary((0.1,), None, None), None, num_classes=3) is None


def test_without_cells_there_are_no_severities(make_run: MakeRun) -> None:
    collapse = collapse_record(read_factors(make_run()), CLEAN, None, num_classes=3)
    assert collapse is not None
    assert collapse.severities == ()
    assert collapse.clean.disagreement == 0.12


def test_factors_that_are_missing_are_an_error(make_run: MakeRun) -> None:
    run = make_run()
    (run.folder / "logits" / "factors.npz").write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match=r"factors\.npz is missing or damaged .* `counterpoint evaluate"):
        collapse_record(read_factors(run), CLEAN, CORRUPTED, num_classes=3)
