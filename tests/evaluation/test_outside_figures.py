"""The figures on outside images, from the saved logits: which sets there are, and how well they are told apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import counterpoint.evaluation.image_groups
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.image_groups import load_outside
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.outside_figures import outside_figures
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.metrics import ood_auroc_interval
from counterpoint.recalibration.apply import apply
from counterpoint.records.files import read_evaluated, read_results
from counterpoint.records.outside import Outside, Separation
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from counterpoint.storage.files import read_json, write_json
from tests.made_runs import MakeRun, evaluated

CLEAN_MNK = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 40))


def add_outside(run: Run, name: str, images: int, *, key: str | None = "a key", seed: int = 1) -> np.ndarray:
    """Leave what an evaluation of outside images leaves. Their probabilities come back."""
    path = run.folder / "logits" / "about.json"
    members = len(np.load(run.folder / "logits" / "clean.npy"))
    logits_MNK = np.random.default_rng(seed).normal(size=(members, images, 3)).astype(np.float32)
    about = read_json(path)
    if key is None:
        write_json(path, about | {"ood": {"dataset": name, "images": images}})
        write_array(run.folder / "logits" / "ood.npy", logits_MNK.astype(np.float16))
        logits_MNK = logits_MNK.astype(np.float16)
    else:
        listed = about.get("outside", {}) | {name: {"images": images, "key": key}}
        write_json(path, about | {"outside": listed})
        write_array(run.folder / "logits" / "outside" / f"{name}.npy", logits_MNK)
    exponentials = np.exp(logits_MNK.astype(np.float64))
    return exponentials / exponentials.sum(axis=2, keepdims=True)


def figures(run: Run, clean_MNK: np.ndarray = CLEAN_MNK) -> dict[str, Outside]:
    return outside_figures(run, read_about(run), clean_MNK)[0]


def entropy(probs_NK: np.ndarray) -> np.ndarray:
    return np.array([-sum(p * np.log(p) for p in row) for row in probs_NK])


def told_apart(found: Separation, known: np.ndarray, outside: np.ndarray) -> None:
    """By a number that is higher for known images, against scikit-learn and a loop over thresholds."""
    truth = [1] * len(known) + [0] * len(outside)
    assert found.auroc == pytest.approx(roc_auc_score(truth, np.concatenate([known, outside])))
    threshold = max(t for t in known if (known >= t).mean() >= 0.95)
    assert found.fpr95 == (outside >= threshold).mean()


def test_the_figures_of_both_kinds_of_sets(make_run: MakeRun) -> None:
    run = make_run(dataset="cifar10")
    sets = {"cifar100": add_outside(run, "cifar100", 25, key=None), "photos": add_outside(run, "photos", 30, seed=2)}
    found = figures(run)
    assert {name: (one.images, one.key) for name, one in found.items()} == {
        "cifar100": (25, None),
        "photos": (30, "a key"),
    }
    for name, outside_MNK in sets.items():
        one, pair = found[name], (CLEAN_MNK, outside_MNK)
        by_confidence = [probs_MNK.mean(axis=0).max(axis=1) for probs_MNK in pair]
        told_apart(one.ensemble, *by_confidence)
        interval = ood_auroc_interval(*by_confidence)
        assert (one.ensemble.auroc_low, one.ensemble.auroc_high) == (interval.low, interval.high)
        assert one.ensemble.mean_confidence == pytest.approx(by_confidence[1].mean())
        assert one.signals is not None
        of_mean = [entropy(probs_MNK.mean(axis=0)) for probs_MNK in pair]
        told_apart(one.signals["entropy_of_mean"], *(-values for values in of_mean))
        of_members = [np.mean([entropy(member) for member in probs_MNK], axis=0) for probs_MNK in pair]
        apart = [whole - each for whole, each in zip(of_mean, of_members, strict=True)]
        told_apart(one.signals["mutual_information"], *(-values for values in apart))
        assert len(one.members) == 2
        for member, known_NK, outside_NK in zip(one.members, *pair, strict=True):
            told_apart(member, known_NK.max(axis=1), outside_NK.max(axis=1))
            assert member.mean_confidence == pytest.approx(outside_NK.max(axis=1).mean())


def test_a_single_network_is_scored_by_confidence_alone(make_run: MakeRun) -> None:
    run = make_run(members=1)
    add_outside(run, "photos", 30)
    found = figures(run, CLEAN_MNK[:1])["photos"]
    assert found.signals is None
    assert found.members[0].auroc == found.ensemble.auroc


def test_without_outside_images_there_are_no_figures(make_run: MakeRun) -> None:
    assert figures(make_run()) == {}


def test_a_set_whose_file_was_removed_is_forgotten(make_run: MakeRun) -> None:
    run = make_run()
    for name in ("letters", "photos"):
        add_outside(run, name, 9)
    (run.folder / "logits" / "outside" / "letters.npy").unlink()
    assert list(figures(run)) == ["photos"]


def test_logits_of_another_number_of_images_are_refused(make_run: MakeRun) -> None:
    run = make_run()
    add_outside(run, "photos", 9)
    write_array(run.folder / "logits" / "outside" / "photos.npy", np.zeros((2, 8, 3), np.float32))
    with pytest.raises(InputError, match=r"photos\.npy has 8 images, and its set has 9"):
        figures(run)


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "a/b", "a\\b", ""])
def test_a_strangers_names_do_not_lead_out_of_the_folder(make_run: MakeRun, name: str) -> None:
    run = make_run()
    path = run.folder / "logits" / "about.json"
    write_json(path, read_json(path) | {"outside": {name: {"images": 3}}})
    with pytest.raises(InputError, match=r"about\.json is damaged .*outside has .*cannot be part of a file's name"):
        read_about(run)


def test_a_threshold_says_how_many_outside_images_it_keeps(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    logits = {name: np.log(add_outside(run, name, 50, seed=seed)) for seed, name in enumerate(("letters", "photos"))}
    evaluated(run)
    found = threshold_run(run, 0.5)
    assert list(found.outside) == ["letters", "photos"]
    for name, logits_MNK in logits.items():
        confidence = apply(found.recalibration, logits_MNK).ensemble_NK.max(axis=1)
        assert found.outside[name].kept == (confidence >= found.promise.chosen.threshold).sum()
        assert (found.outside[name].images, found.outside[name].key) == (50, "a key")
    assert found.outside["photos"].kept > 0
    add_outside(run, "photos", 40, key="other images")
    assert list(threshold_run(run, 0.5).outside) == ["letters"], "results.json is of other images of this name"


def test_the_other_cifar_is_taken_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(counterpoint.evaluation.image_groups, "load", lambda *arguments: asked.append(arguments))
    (tmp_path / "cifar-100-python").mkdir()
    for dataset in ("cifar100", "digits", "cifar10"):
        load_outside(dataset, tmp_path)
    assert asked == [("cifar100", tmp_path)], "for cifar10 alone: no cifar10 is there, and digits have no other set"


def test_two_runs_are_compared_on_outside_images_that_both_have(make_run: MakeRun) -> None:
    ours, theirs = (make_run(seed=seed) for seed in (1, 2))
    for seed, run in enumerate((ours, theirs)):
        add_outside(run, "photos", 30, seed=seed)
        add_outside(run, "letters", 20, seed=2 + seed)
        add_outside(run, f"only {seed}", 10, seed=4)
        add_outside(run, "others", 10, key=f"key {seed}", seed=4)
        add_outside(run, "cifar100", 25, key=None, seed=6 + seed)
        evaluated(run)
    (found,) = compare_run(ours.folder, [theirs.folder]).against
    assert set(found.outside) == {"photos", "letters", "cifar100"}
    results = [read_results(run.folder / "results.json").outside for run in (ours, theirs)]
    for name, one in found.outside.items():
        assert one.images == results[0][name].identity
        aurocs = [of_run[name].ensemble.auroc for of_run in results]
        assert one.auroc.difference == pytest.approx(aurocs[0] - aurocs[1], abs=1e-12)
        assert one.auroc.low < one.auroc.difference < one.auroc.high


def test_a_comparison_on_other_outside_images_is_left_out(make_run: MakeRun) -> None:
    ours, theirs = (make_run(seed=seed) for seed in (1, 2))
    for run in (ours, theirs):
        for name in ("photos", "letters"):
            add_outside(run, name, 30)
        evaluated(run)
    compare_run(ours.folder, [theirs.folder])
    assert read_evaluated(ours.folder).notes == ()
    add_outside(ours, "photos", 30, key="another")
    add_outside(ours, "new", 30)
    evaluated(ours)
    found = read_evaluated(ours.folder)
    assert found.compared is not None
    assert list(found.compared.against[0].outside) == ["letters"]
    (note,) = found.notes
    assert "compared.json does not cover photos, which changed in a later evaluation" in note
    (again,) = compare_run(ours.folder, [theirs.folder]).against
    assert list(again.outside) == ["letters"]


def test_known_images_must_be_the_same(make_run: MakeRun) -> None:
    ours, theirs = (make_run(seed=seed) for seed in (1, 2))
    for run in (ours, theirs):
        add_outside(run, "photos", 30)
    path = theirs.folder / "logits" / "about.json"
    about = read_json(path)
    write_json(path, about | {"clean": {**about["clean"], "key": "others"}})
    for run in (ours, theirs):
        evaluated(run)
    with pytest.raises(InputError, match="give runs evaluated on the same images"):
        compare_run(ours.folder, [theirs.folder])
