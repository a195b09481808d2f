"""From pictures of patients to a comparison: every command on images that belong together."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterpoint.evaluation.scores import read_scores
from counterpoint.metrics import ImageScores, intervals_over_cells, paired_differences
from counterpoint.records.files import read_evaluated, read_results
from tests.cli.conftest import Call
from tests.images.collection import pattern

SMALL = (
    "--set images.size=16 --set depth=8 --set width=8 --set num_members=2 --set epochs=4 --set batch_size=32 "
    "--set learning_rate=0.05 --device cpu --no-validate"
).split()
PARTS = {"train": 16, "val": 16, "test": 14}
"""How many patients each part has."""


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def write_patients(folder: Path, parts: dict[str, int], column: str = "group") -> Path:
    """A CSV file of two to four pictures of each patient, whose class they share. Every third patient that is not
    trained on has a wrong label."""
    rng, lines, number = np.random.default_rng(0), [f"path,label,part,{column}"], 0
    folder.mkdir()
    for part, patients in parts.items():
        for patient in range(patients):
            is_wrong = part != "train" and patient % 3 == 2
            label = ("across", "upright")[(patient + is_wrong) % 2]
            for _ in range(2 + patient % 3):
                pattern(patient % 2, 24, 24, rng).save(folder / f"{number}.png")
                lines.append(f"{number}.png,{label},{part},{part} {patient}")
                number += 1
    # Those of a patient need not stand together.
    lines[1:] = [lines[1 + place] for place in rng.permutation(len(lines) - 1)]
    table = folder / "patients.csv"
    table.write_text("\n".join(lines))
    return table


def without_groups(scores: ImageScores) -> ImageScores:
    return replace(scores, group_N=None)


def test_patients_from_training_to_the_report(tmp_path: Path, call: Call) -> None:
    table = write_patients(tmp_path / "patients", PARTS)
    for seed in ("0", "1"):
        trained = call("train", "--images", table, "--out", f"run-{seed}", "--seed", seed, *SMALL)
        assert trained.status == 0, trained.err
        assert "in 46 groups" in trained.out
        assert "intervals and thresholds count them as one draw" in trained.out
        evaluated = call("evaluate", f"run-{seed}", "--cell-images", "38", "--device", "cpu")
        assert evaluated.status == 0, evaluated.err
        assert "test images in 14 groups" in evaluated.out
        assert "are over 14 groups of images that belong together" in evaluated.out

    results = read_results(Path("run-0/results.json"))
    assert results.evaluated_on.groups is not None
    assert (results.evaluated_on.images, results.evaluated_on.groups.count) == (41, 14)
    assert results.validated_on is not None
    assert results.validated_on.groups is not None
    assert results.validated_on.groups.count == 16
    assert results.corrupted is not None
    assert results.corrupted.groups is not None

    ours, other = (read_scores(Path(f"run-{seed}")) for seed in (0, 1))
    assert ours.clean.groups is not None
    assert sorted(ours.clean.groups.sizes_G.tolist()) == sorted(2 + patient % 3 for patient in range(14))
    assert ours.cells["fog"][0].groups is not None
    assert len(ours.cells["fog"][0].groups) == results.corrupted.groups.count
    intervals = results.corrupted.aggregates.intervals
    assert intervals is not None
    expected = intervals_over_cells(ours.cells)
    assert (intervals.error.low, intervals.error.high) == pytest.approx((expected["error"].low, expected["error"].high))
    alone = intervals_over_cells({name: [*map(without_groups, cells)] for name, cells in ours.cells.items()})
    assert expected["error"] != alone["error"]

    compared = call("compare", "run-0", "run-1")
    assert compared.status == 0, compared.err
    assert "with 95 % intervals over 14 groups" in " ".join(compared.out.split())
    found = json.loads(Path("run-0/compared.json").read_text())["against"][0]["clean"]["error"]
    difference = paired_differences(ours.clean, other.clean)["error"]
    assert (found["low"], found["high"]) == pytest.approx((difference.low, difference.high))
    assert difference != paired_differences(without_groups(ours.clean), without_groups(other.clean))["error"]

    recalibrated = call("recalibrate", "run-0")
    assert recalibrated.status == 0, recalibrated.err
    assert "one standard error over 16 groups" in " ".join(recalibrated.out.split())
    refused = call("threshold", "run-0", "--error", "10%")
    assert refused.status == 2
    assert "cannot be promised with 12 groups (one image of each counts; the other 4 validation groups" in refused.err
    promised = call("threshold", "run-0", "--error", "95%")
    assert promised.status == 0, promised.err
    words = " ".join(promised.out.split())
    assert "on images like the validation images, drawn one from each new group" in words
    promise = json.loads(Path("run-0/threshold.json").read_text())["promise"]
    assert promise["images"] == 12
    assert 24 <= promise["drawn_from"] <= 48

    assert call("report", "run-0", "run-1", "--out", "report.html").status == 0
    page = Path("report.html").read_text(encoding="utf-8")
    for words in ("95 %, over 14 groups", "41 images in 14 groups", "drawn one from each new group"):
        assert words in page, words
    assert "95 %, over images" not in page
    again = call("evaluate", "run-0", "--recompute")
    assert again.status == 0, again.err
    assert read_evaluated(Path("run-0")).results.corrupted == results.corrupted


def test_few_patients_give_figures_without_intervals(tmp_path: Path, call: Call) -> None:
    table = write_patients(tmp_path / "patients", PARTS | {"val": 3, "test": 6})
    for seed in ("0", "1"):
        assert call("train", "--images", table, "--out", f"run-{seed}", "--seed", seed, *SMALL).status == 0
        evaluated = call("evaluate", f"run-{seed}", "--sets", "", "--device", "cpu")
        assert evaluated.status == 0, evaluated.err
        said = " ".join(evaluated.out.split())
        assert "no intervals and no noise floors on clean images: they need at least 10 groups" in said
    assert read_results(Path("run-0/results.json")).clean.honest is None
    compared = call("compare", "run-0", "run-1")
    assert compared.status == 2
    assert "the images are of 6 groups, and an interval over groups needs at least 10" in compared.err
    assert call("recalibrate", "run-0").status == 0
    thresholded = call("threshold", "run-0", "--error", "95%")
    assert thresholded.status == 2
    assert "there are 3 validation groups, and a threshold needs at least 4" in thresholded.err
    assert call("report", "run-0", "--out", "report.html").status == 0


def test_other_groups_of_the_same_images_are_not_compared(tmp_path: Path, call: Call) -> None:
    """The pictures and their parts are the same, but in the second list nothing belongs together."""
    table = write_patients(tmp_path / "patients", PARTS)
    assert call("train", "--images", table, "--out", "first", *SMALL).status == 0
    assert call("evaluate", "first", "--sets", "", "--device", "cpu").status == 0
    table.write_text(table.read_text().replace("part,group", "part,patient"))
    assert call("train", "--images", table, "--out", "second", *SMALL).status == 0
    assert call("evaluate", "second", "--sets", "", "--device", "cpu").status == 0
    compared = call("compare", "first", "second")
    assert compared.status == 2
    assert "in 14 groups" in compared.err
    before = read_results(Path("first/results.json"))
    again = call("evaluate", "first", "--sets", "", "--device", "cpu")
    assert again.status == 0, again.err
    found = read_results(Path("first/results.json"))
    assert (before.evaluated_on.groups is None, found.evaluated_on.groups) == (False, None)
    assert not Path("first/logits/groups.npy").exists()
    assert call("compare", "first", "second").status == 0
