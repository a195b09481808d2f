"""Runs are told apart by their names, or by the settings that differ."""

from typing import Any

import pytest

from counterpoint import config
from counterpoint.experiments import EXPERIMENTS
from counterpoint.records.results import Imported, Results
from counterpoint.report.naming import joined_labels, run_labels, settings_apart
from tests.report.made import MakeEvaluated, changed, changed_all

SINGLE, ENSEMBLE = "cifar10/single", "cifar10/batch-ensemble"


def made(make_evaluated: MakeEvaluated, *settings: str, name: str = SINGLE, seed: int = 0) -> Results:
    saved = config.to_dict(config.override(EXPERIMENTS[name], settings))
    return changed(make_evaluated(name, members=1, seed=seed), "results.config", saved).results


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ([{}], [SINGLE]),
        ([{}, {"name": ENSEMBLE}], [SINGLE, ENSEMBLE]),
        ([{}, {"seed": 3}], [f"{SINGLE} (seed 0)", f"{SINGLE} (seed 3)"]),
        (
            [{"settings": ["learning_rate=0.05"]}, {}, {"seed": 1}, {"name": ENSEMBLE}],
            [
                f"{SINGLE} (learning_rate 0.05, seed 0)",
                f"{SINGLE} (learning_rate 0.1, seed 0)",
                f"{SINGLE} (learning_rate 0.1, seed 1)",
                ENSEMBLE,
            ],
        ),
        ([{}, {}], [f"{SINGLE} (run 1)", f"{SINGLE} (run 2)"]),
        (
            [{"settings": ["policy.augmix.severity=1"]}, {}],
            [f"{SINGLE} (policy.augmix on)", f"{SINGLE} (policy.augmix none)"],
        ),
        (
            [
                {"name": ENSEMBLE, "settings": ["policy.augmix.severity=1,2,3,4.5", "decay_batchnorm=false"]},
                {"name": ENSEMBLE, "settings": ["policy.augmix.severity=3,3,3,3"]},
            ],
            [
                f"{ENSEMBLE} (policy.augmix.severity 1,2,3,4.5, decay_batchnorm false)",
                f"{ENSEMBLE} (policy.augmix.severity 3,3,3,3, decay_batchnorm true)",
            ],
        ),
    ],
    ids=str,
)
def test_labels(make_evaluated: MakeEvaluated, runs: list[dict[str, Any]], labels: list[str]) -> None:
    results = [made(make_evaluated, *run.pop("settings", ()), **run) for run in map(dict, runs)]
    assert run_labels(results) == labels


def test_few_settings_are_named_and_labels_stay_unique(make_evaluated: MakeEvaluated) -> None:
    settings = [f"{key}=7" for key in ("cardinality", "base_width", "epochs", "batch_size")]
    runs = [made(make_evaluated, *settings), made(make_evaluated), made(make_evaluated, *settings[:3])]
    labels = run_labels(runs)
    assert labels[0] == f"{SINGLE} (cardinality 7, base_width 7, epochs 7, run 1)"
    assert labels[2].endswith("epochs 7, run 3)")
    assert "run" not in labels[1]


def test_many_settings_give_way_to_folders(make_evaluated: MakeEvaluated) -> None:
    settings = ["epochs=7", "batch_size=7", "momentum=0.5"]
    many = [made(make_evaluated, *settings), made(make_evaluated)]
    assert run_labels(many, ["a", "b"]) == [f"{SINGLE} (a)", f"{SINGLE} (b)"]
    few = [made(make_evaluated, *settings[:2], seed=1), made(make_evaluated)]
    assert run_labels(few, ["a", "b"])[0] == f"{SINGLE} (epochs 7, batch_size 7, seed 1)", "the seed is no setting"
    alike = [made(make_evaluated), made(make_evaluated)]
    assert run_labels(alike, ["a", "b"]) == [f"{SINGLE} (a)", f"{SINGLE} (b)"]
    assert run_labels(alike, ["a", "a"]) == [f"{SINGLE} (run 1)", f"{SINGLE} (run 2)"]
    assert run_labels(alike, ["a", ""]) == [f"{SINGLE} (run 1)", f"{SINGLE} (run 2)"]


def test_all_settings_that_differ_from_runs_of_the_same_name(make_evaluated: MakeEvaluated) -> None:
    settings = ["epochs=7", "batch_size=7", "momentum=0.5", "decay_batchnorm=false"]
    runs = [made(make_evaluated, *settings), made(make_evaluated), made(make_evaluated, name=ENSEMBLE)]
    first, second, other = settings_apart(runs)
    assert first == "epochs 7, batch_size 7, momentum 0.5, decay_batchnorm false"
    assert second == "epochs 200, batch_size 128, momentum 0.9, decay_batchnorm true"
    assert other == ""


def test_settings_of_another_version_and_of_other_models(make_evaluated: MakeEvaluated) -> None:
    old = [
        changed(make_evaluated("a", members=1), "results.config", {"odd": odd, "same": 1}).results for odd in (1, None)
    ]
    assert run_labels(old) == ["a (odd 1)", "a (odd none)"]
    elsewhere = [
        changed_all(
            make_evaluated("a", members=1),
            {
                "results.run": None,
                "results.config": {},
                "results.imported": Imported(file=file, sha256=file, command="c", finished="then"),
            },
        ).results
        for file in ("One.npz", "two.npz")
    ]
    assert run_labels(elsewhere) == ["a (file One.npz)", "a (file two.npz)"]


def test_a_common_name_is_said_once() -> None:
    assert joined_labels(["a", "b", "c"], ["a", "b", "c"]) == "a, b and c"
    assert joined_labels(["a", "a"], ["a (seed 0)", "a (seed 1)"]) == "a: seed 0 and seed 1"
    assert joined_labels(["a"], ["a"]) == "a"
