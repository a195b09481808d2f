"""`counterpoint evaluate --logits` and what follows it, as a user meets them."""

from pathlib import Path

import pytest

from counterpoint.records.files import read_evaluated
from tests.cli.conftest import Call
from tests.made_predictions import made_arrays, save, shifted_arrays
from tests.made_runs import MakeRun, files_of

NO_NETWORK = "holds predictions of a model that was trained elsewhere, and no network"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arrays = made_arrays(images=200) | shifted_arrays(images=200) | {"name": "ours"}
    return save(tmp_path_factory.mktemp("given") / "p.npz", arrays)


def test_from_a_file_to_a_report(file: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("evaluate", "--logits", file, "--out", "a")
    assert (ended.status, ended.err) == (0, "")
    for words in ("ours on 200 unnamed data test images", "shifted images: 2 shifts, each at 2 severities: 4 cells of"):
        assert words in ended.out
    assert "Hospital-B: 1 shift of 30 test images, as given." in ended.out
    assert "written: a/results.json; next: `counterpoint report a`, or `counterpoint recalibrate a` to" in ended.out
    other = save(tmp_path / "q.npz", made_arrays(images=200, seed=4) | shifted_arrays(images=200, seed=4))
    assert call("evaluate", "--logits", other, "--out", "b").status == 0
    assert "NLL on shifted images" in call("recalibrate", "a").out
    assert "Keep" in call("threshold", "a", "--error", "30%").out
    compared = call("compare", "a", "b")
    assert "ours (a) − b, with 95 % intervals" in compared.out
    assert "shifted images" in compared.out
    again = call("evaluate", "a", "--recompute")
    assert (again.status, again.err) == (0, "")
    found = read_evaluated(Path("a"))
    assert found.recalibrated
    assert found.thresholded
    assert found.compared
    assert found.notes == ()
    assert call("report", "a", "b", "--out", "r.html").status == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert str(file.parent) not in page
    assert "counterpoint evaluate --logits p.npz --out a" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the folder of a run, or give a file of predictions with --logits FILE --out DIR"),
        (["--out", "o"], "name the folder of a run, or give a file of predictions with --logits FILE --out DIR"),
        (
            ["r", "--out", "o"],
            "--out works only with --logits FILE; leave it out: the results of r go into its own folder",
        ),
        (["--logits", "f"], "--logits f needs --out DIR, the folder for its results"),
        (["r", "--logits", "f", "--out", "o"], "give either a run (r) or --logits f, not both"),
        (["r", "--logits", "f"], "give either a run (r) or --logits f, not both"),
        (
            ["--logits", "f", "--out", "o", "--images", "i"],
            "--logits evaluates predictions as they are; leave --images out",
        ),
        (["--logits", "f", "--out", "o", "--recompute"], "leave --recompute out"),
        (
            ["--logits", "f", "--out", "o", "--sets", "validation-extra", "--device", "cpu", "--model", "vit"],
            "leave --sets, --model, --device out",
        ),
        (
            ["--logits", "f", "--out", "o", "--cell-images", "5", "--precision", "bf16"],
            "--cell-images, --precision out",
        ),
        (["--logits", "f", "--out", "o"], "f does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_contradictions_are_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("evaluate", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_is_one_line(call: Call, tmp_path: Path) -> None:
    file = save(tmp_path / "p.npz", made_arrays() | {"label": 3})
    ended = call("evaluate", "--logits", file, "--out", tmp_path / "o")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {file}: unknown array 'label'; did you mean 'labels'")
    assert not (tmp_path / "o").exists()


def test_a_run_is_not_replaced(file: Path, make_run: MakeRun, call: Call) -> None:
    folder = make_run().folder
    before = files_of(folder)
    ended = call("evaluate", "--logits", file, "--out", folder)
    assert ended.status == 2
    assert "holds a run that counterpoint trained, and it is never replaced; choose another folder" in ended.err
    assert files_of(folder) == before


def test_whatever_needs_a_network_is_refused(file: Path, make_run: MakeRun, call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "o"
    assert call("evaluate", "--logits", file, "--out", folder).status == 0
    for command in (
        ("evaluate", folder),
        ("predict", folder, "x.png"),
        ("train", "digits/quickstart", "--from", folder, "--out", tmp_path / "new"),
        ("train", "digits/quickstart", "--out", folder),
        ("recalibrate", make_run().folder, "--twin", folder),
    ):
        ended = call(*command)
        assert ended.status == 2, command
        assert NO_NETWORK in ended.err, command


def test_a_stop_says_how_to_go_on(file: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("counterpoint.evaluation.imported.importing.evaluate_logits", interrupted)
    ended = call("evaluate", "--logits", file, "--out", tmp_path / "o")
    assert ended.status == 130
    assert "stopped; the same command starts again" in ended.out


def test_help_says_how_a_file_is_given(call: Call) -> None:
    ended = call("evaluate", "--help")
    for words in ("--logits", "--out", "FILE", "DIR", "may come from anywhere"):
        assert words in ended.out
