"""Given predictions of images that belong together."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.imported.importing import evaluate_logits
from counterpoint.evaluation.pipeline import recompute_results
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.metrics import paired_differences
from counterpoint.runs.imported import load_any_run
from tests.made_predictions import made_labels, made_logits

IMAGES, GROUPS = 120, 24


def predictions(seed: int, **groups: Any) -> dict[str, Any]:
    """On clean, shifted and validation images."""
    rng, labels = np.random.default_rng(seed), made_labels(IMAGES)
    logits, other, shifted = (made_logits(labels, seed=int(rng.integers(1000))) for _ in range(3))
    return {
        "logits": logits,
        "labels": labels,
        "shift/fog/logits": shifted,
        "validation_logits": other,
        "validation_labels": labels,
        **groups,
    }


def test_groups_reach_every_figure(tmp_path: Path) -> None:
    named = np.array([f"patient {image % GROUPS}" for image in range(IMAGES)])
    together = {"groups": named, "validation_groups": np.arange(IMAGES) // 3}
    results = evaluate_logits(predictions(0, **together), tmp_path / "ours")
    evaluate_logits(predictions(1, **together), tmp_path / "theirs")
    alone = evaluate_logits(predictions(0), tmp_path / "alone")
    assert results.evaluated_on.groups is not None
    assert results.evaluated_on.groups.count == GROUPS
    assert results.validated_on is not None
    assert results.validated_on.groups is not None
    assert results.validated_on.groups.count == IMAGES // 3
    assert results.corrupted is not None
    assert alone.corrupted is not None
    assert results.corrupted.groups == results.evaluated_on.groups
    assert results.clean.ensemble == alone.clean.ensemble
    assert results.clean.honest != alone.clean.honest
    assert results.corrupted.aggregates.intervals != alone.corrupted.aggregates.intervals
    run = load_any_run(tmp_path / "ours")
    assert recompute_results(run).clean == results.clean

    ours, theirs = (read_scores(tmp_path / name) for name in ("ours", "theirs"))
    assert (np.asarray(ours.clean.group_N) == np.arange(IMAGES) % GROUPS).all()
    found = compare_run(tmp_path / "ours", [tmp_path / "theirs"]).against[0]
    assert found.corrupted is not None
    fog = ours.cells["fog"][0], theirs.cells["fog"][0]
    for (one, other), differences in (
        ((ours.clean, theirs.clean), found.clean),
        (fog, found.corrupted.mean),
        (fog, found.corrupted.severities[0]),
    ):
        assert differences is not None
        expected = paired_differences(one, other)["nll"]
        assert (differences.nll.low, differences.nll.high) == pytest.approx((expected.low, expected.high))
    with pytest.raises(InputError, match="in 24 groups"):
        compare_run(tmp_path / "ours", [tmp_path / "alone"])

    recalibrated = recalibrate_run(run)
    assert recalibrated.fitted_on.images.groups == results.validated_on.groups
    errors = [
        recalibrate_run(load_any_run(tmp_path / name)).ways["before"].recalibration.log_temperatures[0].standard_error
        for name in ("ours", "alone")
    ]
    assert errors[0] != errors[1]
    promise = threshold_run(run, 0.6).promise
    assert (promise.images, promise.drawn_from) == (30, 90), "three quarters of the groups"


def test_shifts_of_few_groups_do_not_stand_in_the_way_of_a_comparison(tmp_path: Path) -> None:
    for seed, name in enumerate(("ours", "theirs")):
        labels = made_labels(IMAGES)
        of_shift = {"logits": made_logits(labels, seed=seed), "labels": labels}
        few, many = ({f"shift/{k}/{n}": of_shift[n] for n in of_shift} for k in ("few", "many"))
        together = {"shift/few/groups": np.arange(IMAGES) % 9, "shift/many/groups": np.arange(IMAGES) % 10}
        together |= {"shift/labels": labels, "shift/groups": np.arange(IMAGES) % 9}  # of fog
        evaluate_logits(predictions(seed) | few | many | together, tmp_path / name)
    found = compare_run(tmp_path / "ours", [tmp_path / "theirs"]).against[0]
    assert (found.clean is None, found.corrupted, [*found.shifts]) == (False, None, ["many"])


def test_groups_of_one_image_each_change_nothing(tmp_path: Path) -> None:
    alone = evaluate_logits(predictions(0, groups=np.arange(IMAGES)[::-1]), tmp_path / "a")
    plain = evaluate_logits(predictions(0), tmp_path / "b")
    assert (alone.clean, alone.corrupted, alone.evaluated_on) == (plain.clean, plain.corrupted, plain.evaluated_on)
    assert not (tmp_path / "a" / "logits" / "groups.npy").exists()


def test_a_missing_file_of_groups_is_told(tmp_path: Path) -> None:
    evaluate_logits(predictions(0, groups=np.arange(IMAGES) % GROUPS), tmp_path / "ours")
    (tmp_path / "ours" / "logits" / "groups.npy").unlink()
    with pytest.raises(InputError, match=r"groups\.npy is missing; .*makes what is missing"):
        recompute_results(load_any_run(tmp_path / "ours"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"groups": np.arange(7)},
            r"'groups' is int64 \(7,\); it must have a whole number or a text for each of the 120",
        ),
        ({"groups": np.linspace(0, 1, IMAGES)}, r"'groups' is float64 \(120,\)"),
        ({"shift/groups": np.arange(IMAGES)}, "there is 'shift/groups', but no 'shift/labels' of the same images"),
        ({"shift/fog/groups": np.arange(IMAGES)}, "there is 'shift/fog/groups', but no 'shift/fog/labels'"),
    ],
)
def test_wrong_groups_are_refused_by_name(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_logits(predictions(0, **wrong), tmp_path / "out")
    assert not (tmp_path / "out").exists()
