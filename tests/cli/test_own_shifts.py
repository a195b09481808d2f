"""`evaluate --shift` and `--outside`, as a user does it: from pictures to the page, and what is refused."""

from pathlib import Path

import pytest

from counterpoint.records.files import read_results
from tests.cli.conftest import Call
from tests.images.collection import write_collection

SMALL = "images.size=16 depth=8 width=8 num_members=2 epochs=4 batch_size=16".split()


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def test_from_shifted_pictures_to_the_page(tmp_path: Path, call: Call) -> None:
    write_collection(tmp_path / "photos", {"train": 90, "val": 40, "test": 12})
    write_collection(tmp_path / "hospital", {"": 9}, seed=1)
    for severity in (1, 2):
        write_collection(tmp_path / "fog", {str(severity): 6}, seed=1 + severity)
    settings = [argument for setting in SMALL for argument in ("--set", setting)]
    trained = call("train", "--images", "photos", "--out", "run", "--no-validate", *settings, "--device", "cpu")
    assert trained.status == 0, trained.err
    shifts = ["--shift", "hospital=hospital", "--shift", "fog=fog"]
    write_collection(tmp_path / "letters", {"": 20}, seed=9)
    outside = ["--outside", "letters=letters"]
    ended = call("evaluate", "run", "--sets", "", *shifts, *outside, "--device", "cpu")
    assert ended.status == 0, ended.err
    assert "and on hospital and fog;" in ended.out
    assert "hospital: 9 images, named with --shift (key " in ended.out
    assert "fog: 6 images at each of 2 severities, named with --shift (key " in ended.out
    assert "letters: 20 images, named with --outside (key " in ended.out
    assert "mutual information" in ended.out
    results = read_results(Path("run/results.json"))
    assert (list(results.shifts), list(results.outside)) == (["hospital", "fog"], ["letters"])
    for command, said in (
        (["recalibrate", "run"], "with and without recalibration, on other shifted images"),
        (["threshold", "run", "--error", "90%"], "fog, severity 2"),
        (["threshold", "run", "--error", "90%"], "so none should be kept. The threshold keeps"),
        (["evaluate", "run", "--recompute"], "hospital: 9 images"),
        (["report", "run", "--out", "report.html"], "report.html"),
    ):
        ended = call(*command)
        assert ended.status == 0, ended.err
        assert said in ended.out
    page = Path("report.html").read_text(encoding="utf-8")
    assert "photos on hospital" in page
    assert "at the threshold, %" in page
    assert str(tmp_path) not in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--shift", "fog"], "--shift fog: it must be NAME=PATH"),
        (["run", "--shift", "=folder"], "it must be NAME=PATH"),
        (["run", "--shift", "fog="], "it must be NAME=PATH"),
        (["run", "--shift", "fog=a", "--shift", "fog=b"], "--shift fog is given twice, with a and b"),
        (["run", "--outside", "photos"], "--outside photos: it must be NAME=PATH, such as --outside animals="),
        (["run", "--outside", "a=b", "--outside", "a=c"], "--outside a is given twice, with b and c"),
        (["run", "--skip-bad"], "--skip-bad works only with --shift NAME=PATH or --outside NAME=PATH"),
        (["run", "--recompute", "--outside", "photos=a"], "--recompute uses the saved logits as they are"),
        (["--logits", "a.npz", "--out", "b", "--outside", "photos=a"], "leave --outside out"),
        (["run", "--recompute", "--shift", "fog=a"], "--recompute uses the saved logits as they are"),
        (["--logits", "a.npz", "--out", "b", "--shift", "fog=a"], "leave --shift out"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], said: str, call: Call) -> None:
    ended = call("evaluate", *arguments)
    assert ended.status == 2
    assert said in ended.err
