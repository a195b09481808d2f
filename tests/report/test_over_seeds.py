"""Differences over seeds in words and tables."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.evaluation.over_seeds import compare_experiments
from counterpoint.records.files import write_record
from counterpoint.records.images import Images
from counterpoint.records.over_seeds import ComparedExperiments
from counterpoint.report.over_seeds import comparison_in_words, comparison_over_seeds
from counterpoint.report.tables import Table
from tests.made_trainings import ENSEMBLE, SINGLE, trained, write_trainings

Made = tuple[list[str], list[Table]]


def made(compared: ComparedExperiments) -> Made:
    (comparison,) = compared.against
    return [*comparison_in_words(compared.ours, comparison)], [*comparison_over_seeds(compared.ours, comparison)]


def texts(table: Table) -> dict[str, list[str]]:
    return {row.label: [entry.text for entry in row.entries] for row in table.rows}


@pytest.fixture
def pairs(tmp_path: Path) -> Made:
    ours = write_trainings(tmp_path / "ours", {0: 0.10, 1: 0.12, 2: 0.17}, name=ENSEMBLE)
    other = write_trainings(tmp_path / "other", {0: 0.13, 1: 0.14, 2: 0.19})
    return made(compare_experiments(ours, [other]))


def test_what_the_seeds_decide_is_said(pairs: Made) -> None:
    words, _ = pairs
    assert words[:2] == [f"A: {ENSEMBLE}, seeds 0, 1 and 2", f"B: {SINGLE}, seeds 0, 1 and 2"]
    assert words[2].startswith("A and B differ in num_members (4, none), epochs (250, 200)")
    assert "On clean images A has a lower error, NLL and ECE than B, over seeds." in words
    assert "On corrupted images A has a lower error and ECE than B, over seeds." in words
    assert "On corrupted images all seeds agree in NLL and Brier, so nothing says how far others would differ." in words
    assert "On the outside images of “letters” A has a higher AUROC than B, over seeds." in words
    assert words[-1].startswith("With 3 pairs of seeds an interval reaches 4.3 standard errors to each side, so only")
    assert not any("paired" in sentence for sentence in words)


def test_the_figures_and_each_pair_are_shown(pairs: Made) -> None:
    _, (figures, clean, corrupted, outside) = pairs
    assert "in pairs of equal seeds; mean ± standard deviation" in figures.caption
    rows = texts(figures)
    assert rows["clean: error, %"] == ["13.00 ± 3.61", "15.33 ± 3.21", "−2.33 ± 0.58", "−3.77 to −0.90"]
    assert rows["clean: NLL, nats"] == ["0.260 ± 0.072", "0.307 ± 0.064", "−0.047 ± 0.012", "−0.075 to −0.018"]
    assert rows["clean: ECE, %"][0] == "1.30 ± 0.36", "it is debiased"
    assert rows["-C: ECE, %"][0] == "6.50 ± 1.80"
    assert rows["-C: Brier"] == ["0.400 ± 0.000", "0.400 ± 0.000", "0.000 ± 0.000", "none"]
    assert rows["letters: AUROC"][2:] == ["+0.023 ± 0.006", "+0.009 to +0.038"]
    assert clean.caption == "A − B of each pair on clean images"
    assert [column.label for column in clean.columns] == ["seed", "error, points", "NLL, nats", "Brier", "ECE, points"]
    assert texts(clean) == {
        "0": ["−3.00", "−0.060", "0.000", "−0.30"],
        "1": ["−2.00", "−0.040", "0.000", "−0.20"],
        "2": ["−2.00", "−0.040", "0.000", "−0.20"],
    }
    assert texts(corrupted)["1"] == ["−10.00", "0.000", "0.000", "−1.00"]
    assert texts(outside)["0"] == ["+0.030"]


def test_two_groups_show_each_run(tmp_path: Path) -> None:
    ours = write_trainings(tmp_path / "ours", {0: 0.10, 1: 0.12}, "epochs=9")
    other = write_trainings(tmp_path / "other", {0: 0.13, 1: 0.04, 2: 0.19})
    words, (figures, clean, *_) = made(compare_experiments(ours, [other]))
    assert words[:4] == [
        f"A: {SINGLE} (ours), seeds 0 and 1",
        f"B: {SINGLE} (other), seeds 0, 1 and 2",
        "A and B differ in epochs (9, 200).",
        "A and B do not have the same seeds, so their runs are not paired: they are two groups.",
    ]
    assert "On clean images the seeds do not decide error, NLL and ECE: these intervals hold 0." in words
    assert words[-1].startswith("With 2 and 3 seeds an interval reaches 3.9 standard errors")
    assert "as two groups of seeds (Welch)" in figures.caption
    assert clean.caption == "Each run on clean images"
    assert [column.label for column in clean.columns] == ["seed", "error, %", "NLL, nats", "Brier", "ECE, %"]
    assert {label: row[0] for label, row in texts(clean).items()} == {
        "A, 0": "10.00",
        "A, 1": "12.00",
        "B, 0": "13.00",
        "B, 1": "4.00",
        "B, 2": "19.00",
    }


def test_enough_seeds_need_no_warning(tmp_path: Path) -> None:
    ours = write_trainings(tmp_path / "ours", {seed: 0.1 + 0.01 * seed for seed in range(5)})
    other = write_trainings(tmp_path / "other", {seed: 0.1 - 0.01 * seed for seed in range(5)})
    words, _ = made(compare_experiments(ours, [other]))
    assert words[:3] == [
        f"A: {SINGLE} (ours), seeds 0 to 4",
        f"B: {SINGLE} (other), seeds 0 to 4",
        "A and B have the same settings.",
    ]
    assert not any("standard errors" in sentence for sentence in words)


def test_images_that_are_not_the_same_are_said_to_be_left_out(tmp_path: Path) -> None:
    ours = write_trainings(tmp_path / "ours", {0: 0.1, 1: 0.1}, name=ENSEMBLE)
    other = write_trainings(tmp_path / "other", {0: 0.1, 1: 0.1})
    sentence = "A and B were not evaluated on the same {} images, so these are left out."
    changes: list[tuple[Callable[[Any], Any], list[str]]] = [
        (lambda one: replace(one, corrupted=replace(one.corrupted, images=60)), [sentence.format("corrupted")]),
        (lambda one: replace(one, corrupted=None), []),
        (lambda one: replace(one, evaluated_on=Images("cifar10", "test", 60)), [sentence.format("clean")]),
    ]
    for changed, expected in changes:
        for seed in (0, 1):
            write_record(other / f"paper-{seed}.json", changed(trained(seed, 0.1)))
        words, _ = made(compare_experiments(ours, [other]))
        assert [one for one in words if "left out" in one] == expected


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    ours = write_trainings(tmp_path / "ours", {0: 0.1, 1: 0.1}, name=ENSEMBLE)
    (ours / "paper-2").mkdir()
    (ours / "paper-2" / "run.json").touch()
    words, _ = made(compare_experiments(ours, [write_trainings(tmp_path / "other", {0: 0.1, 1: 0.1})]))
    assert words[0] == f"A: {ENSEMBLE}, seeds 0 and 1 (left out, not evaluated yet: paper-2)"
    assert "reaches" not in words[-1], "there is no interval"


def test_the_ece_is_said_to_be_as_it_is_where_an_older_result_has_no_other() -> None:
    rows = Path(__file__).parents[2] / "results" / "cifar100"
    words, (figures, *_) = made(compare_experiments(rows / "single-am-bern-0.875", [rows / "single"]))
    assert {"clean: ECE, %", "-C: ECE (not debiased), %"} <= texts(figures).keys()
    assert "On clean images A has a lower NLL and a higher error, Brier and ECE than B, over seeds." in words
    assert words[-1].startswith("With 2 pairs of seeds an interval reaches 12.7 standard errors to each side, so only")
