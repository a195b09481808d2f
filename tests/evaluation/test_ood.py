"""Images of another data set: which one is taken, and how well confidence tells them apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterpoint.evaluation.image_groups
from counterpoint.evaluation.image_groups import load_outside
from counterpoint.evaluation.results import outside_record
from counterpoint.storage.arrays import write_array
from tests.made_runs import MakeRun

CLEAN_MNK = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 40))


def test_auroc_counts_pairs(make_run: MakeRun) -> None:
    run = make_run(dataset="cifar10")
    logits_MNK = np.random.default_rng(1).normal(size=(2, 25, 3)).astype(np.float16)
    write_array(run.folder / "logits" / "ood.npy", logits_MNK)
    exponentials = np.exp(logits_MNK.astype(np.float64))
    outside_MNK = exponentials / exponentials.sum(axis=2, keepdims=True)

    def auroc(inside_NK: np.ndarray, outside_NK: np.ndarray) -> float:
        return float(np.mean([[a > b for b in outside_NK.max(1)] for a in inside_NK.max(1)]))

    found = outside_record(run, CLEAN_MNK)
    assert found is not None
    assert (found.dataset, found.images) == ("cifar100", 25)
    assert found.auroc.ensemble == pytest.approx(auroc(CLEAN_MNK.mean(0), outside_MNK.mean(0)))
    assert found.auroc.members == pytest.approx([auroc(CLEAN_MNK[i], outside_MNK[i]) for i in range(2)])


def test_without_another_set_there_is_none(make_run: MakeRun) -> None:
    assert outside_record(make_run(), CLEAN_MNK) is None


def test_the_other_cifar_is_taken_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(counterpoint.evaluation.image_groups, "load", lambda *arguments: asked.append(arguments))
    (tmp_path / "cifar-100-python").mkdir()
    for dataset in ("cifar100", "digits", "cifar10"):
        load_outside(dataset, tmp_path)
    assert asked == [("cifar100", tmp_path)], "for cifar10 alone: no cifar10 is there, and digits have no other set"
