"""The command line as a user meets it. Where the process itself matters, a command has one of its own."""

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image
from rich.console import Console

from counterpoint.cli import main
from counterpoint.data import DATASETS
from tests.cli.conftest import Call
from tests.interrupts import interrupts_heard
from tests.small import few_digits

COUNTERPOINT = [sys.executable, "-m", "counterpoint"]
TINY = ["--set", "steps=2", "--set", "width=2", "--device", "cpu"]


def run(*arguments: str) -> str:
    """What a command prints."""
    return subprocess.run([*COUNTERPOINT, *arguments], check=True, capture_output=True, text=True, timeout=180).stdout


@contextmanager
def few_digits_beside(folder: Path) -> Iterator[None]:
    """The digits have few test images, and their corrupted set is in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUNTERPOINT_DATA", str(folder / "data"))
        patch.setitem(DATASETS, "digits", lambda _: few_digits(20))
        yield


@pytest.fixture(scope="module")
def finished(call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/test_wheel.py gives the same commands to new processes, and has all digits."""
    folder = tmp_path_factory.mktemp("cli")
    with few_digits_beside(folder):
        assert call("train", "digits/quickstart", "--out", folder / "run", *TINY).status == 0
        done = call("evaluate", folder / "run", "--cell-images", 5, "--device", "cpu")
    assert done.status == 0, done.err
    assert "member 4" in done.out
    return folder


def test_train_evaluate_report(finished: Path, call: Call) -> None:
    results = json.loads((finished / "run" / "results.json").read_text())
    assert results["run"]["command"].startswith("counterpoint train digits/quickstart --out")
    done = call("report", finished / "run", "--out", finished / "report.html")
    assert done.status == 0, done.err
    assert str(finished / "report.html") in done.out
    assert "digits/quickstart" in (finished / "report.html").read_text()
    assert call("report", finished / "run", "--out", finished / "report.csv").status == 0
    assert (finished / "report.csv").read_text().startswith("run,experiment,seed")
    assert "digits/quickstart" in (finished / "report.csv").read_text()


def test_a_finished_run_says_so(finished: Path, call: Call) -> None:
    done = call("train", "digits/quickstart", "--out", finished / "run", *TINY)
    assert done.status == 0
    assert "finished" in done.out


def test_the_time_to_read_images_counts_towards_max_minutes(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images that are decoded for the first time may take longer than a training."""
    seconds = itertools.chain([0.0], itertools.repeat(120.0))
    monkeypatch.setattr("counterpoint.cli.train.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    tiny = ("--set", "steps=3", "--set", "width=2", "--set", "batch_size=8", "--device", "cpu")
    ended = call("train", "digits/single", "--out", tmp_path / "run", *tiny, "--max-minutes", 2)
    assert "stopped with a checkpoint" in ended.out


def test_ctrl_c_ends_with_a_checkpoint(tmp_path: Path) -> None:
    command = [*COUNTERPOINT, "train", "digits/single", "--out", str(tmp_path / "run"), "--set", "epochs=500"]
    training = subprocess.Popen([*command, "--device", "cpu"], stdout=subprocess.PIPE, text=True)
    log = tmp_path / "run" / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and "epoch" in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    training.send_signal(signal.SIGINT)
    output, _ = training.communicate(timeout=60)
    assert training.returncode == 130
    assert "stopped with a checkpoint" in output
    assert list((tmp_path / "run" / "checkpoints").glob("step-*.safetensors"))


def test_ctrl_c_keeps_the_corruptions_that_are_finished(tmp_path: Path) -> None:
    command = [*COUNTERPOINT, "corrupt", "digits", "--out", str(tmp_path / "set"), "--workers", "2", "--extra"]
    with interrupts_heard():
        corrupting = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    deadline = time.monotonic() + 120
    while not (tmp_path / "set" / "gaussian_noise.npy").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(corrupting.pid, signal.SIGINT)  # as a terminal does: to the workers too
    output, errors = corrupting.communicate(timeout=60)
    assert corrupting.returncode == 130
    assert "stopped; finished corruptions are kept, and the same command continues" in output
    assert errors == ""
    assert (tmp_path / "set" / "gaussian_noise.npy").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has other names of files")
@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"?"), ("utf-8:strict", b"?"), ("utf-8:surrogateescape", b"\xff")]
)
def test_what_a_terminal_cannot_show_ends_no_command(tmp_path: Path, encoding: str, shown: bytes) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff"
    ended = subprocess.run(
        [*map(os.fsencode, COUNTERPOINT), b"data", b"--data", folder],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
        timeout=60,
    )
    assert b"/" + shown in ended.stdout
    listed = subprocess.run(
        [*COUNTERPOINT, "experiments", "cifar10"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=60,
    )
    assert (b"AugMix 1?4" if encoding == "ascii" else "AugMix 1–4".encode()) in listed.stdout


@pytest.mark.parametrize("sets", [("--sets", ""), ("--sets=",)])
def test_no_sets_are_given_as_an_empty_argument(call: Call, sets: tuple[str, ...]) -> None:
    assert "nowhere does not exist" in call("evaluate", "nowhere", *sets).err


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        (["train", "digits/single", "--out", "", *TINY], "--out"),
        (["train", "digits/single", *TINY, "--out="], "--out="),
        (["train", "digits/single", "--images", "", "--out", "run"], "--images"),
        (["sweep", "digits/single", "--out", "", "--run"], "--out"),
        (["reproduce", "all", "--results", ""], "--results"),
        (["demo", "--out", ""], "--out"),
        (["bench", "step", "cifar10/single", "--out", ""], "--out"),
        (["corrupt", "digits", "--data", ""], "--data"),
        (["evaluate", ""], "evaluate"),
        (["report", "run", ""], "run"),
        ([""], "counterpoint"),
    ],
)
def test_an_empty_argument_is_not_the_current_folder(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call(*arguments)
    assert ended.status == 2
    assert ended.err.startswith(f"error: the argument after {after} is empty, as a shell gives for a variable")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "digits/quickstrt", "--out", "x"], "did you mean 'digits/quickstart'"),
        (["train", "digits/single", "--out", "x", "--set", "epoch=3"], "unknown key 'epoch'; did you mean 'epochs'"),
        (["train", "digits/single", "--out", "x", "--set", "epochs=many"], "epochs=many: it must be a whole number"),
        (["train", "digits/single", "--out", "x", "--device", "tpu"], "device 'tpu' is not known"),
        (["train", "digits/single", "--out", "x", "--model", "resnet50"], "unknown model 'resnet50'; did you mean"),
        (["train", "digits/single", "--out", "x", "--model", "wide-resnet-11-1"], "it must be 6n + 4: 10, 16, 22, 28"),
        (
            ["train", "digits/single", "--out", "x", "--model", "nowhere:f"],
            "the model nowhere:f needs a module 'nowhere'",
        ),
        (
            ["train", "digits/single", "--out", "x", "--model", "vit", "--set", "model_options.patch_size=5"],
            "images of 32×32 pixels do not divide into patches of 5×5",
        ),
        (
            ["views", "digits/single", "--model", "vit", "--set", "width=8"],
            "width is a setting of resnet and has no effect on vit; change vit with",
        ),
        (["train", "cifar10/single", "--out", "x"], "cifar10 is not in"),
        (["train", "digits/single"], "Missing option '--out'"),
        (
            ["train", "digits/single", "--out", "x", "--max-minutes", "0"],
            "--max-minutes is 0; it must be a number of 0.2 or more",
        ),
        (["train", "digits/single", "--out", "x", "--seed", "1.5"], "--seed is 1.5; it must be a whole number of 0 or"),
        (["serve", "x", "--port", "70000"], "--port is 70000; it must be a whole number from 0 to 65,535"),
        (["evaluate", "nowhere"], "nowhere does not exist"),
        (["evaluate", "nowhere", "--sets", "corupted"], "unknown set of images 'corupted'; did you mean 'corrupted'?"),
        (["recalibrate", "nowhere"], "nowhere does not exist"),
        (["threshold", "nowhere", "--error", "1%"], "nowhere does not exist"),
        (["compare", "nowhere", "elsewhere"], "nowhere does not exist"),
        (["report", "nowhere"], "nowhere does not exist"),
        (["report", "nowhere", "--format", "pdf"], "unknown report format 'pdf'"),
        (["report", "nowhere", "--out", "r.pdf"], "'r.pdf' does not end in .html, .csv, .md, .json"),
        (["report", "nowhere", "--out", "."], ". is a folder; give a file name"),
        (["reproduce", "table1", "--run"], "cifar10 is not in"),
        (["reproduce", "table1", "--results", "file"], "file is a file, but a folder is needed there"),
        (["reproduce", "table1", "--out", "file"], "file is a file, but a folder is needed there"),
        (["reproduce", "table1", "--run", "--page", "."], ". is a folder; give a file name"),
        (["reproduce", "table1", "--run", "--page", "file/page.md"], "file is a file, but a folder is needed there"),
        (["reproduce", "table1", "--export-parts", "file"], "file is a file, but a folder is needed there"),
        (["report", "nowhere", "--out", "file/report.html"], "file is a file, but a folder is needed there"),
        (["views", "digits/single", "--out", "file/a.png"], "file is a file, but a folder is needed there"),
        (["corrupt", "digits", "--atlas", "file/a.png"], "file is a file, but a folder is needed there"),
        (["train", "cifar10/single", "--out", "x", "--data", "file"], "file is a file, but a folder is needed there"),
        (["evaluate", "--logits", ".", "--out", "x"], ". is a folder, and an .npz file is needed"),
        (["reproduce", "table1", "--part-mib", "5"], "--part-mib works only with --export-parts FOLDER"),
        (["bench", "step", "--out", "file/a.json"], "file is a file, but a folder is needed there"),
        (["reproduce", "table1", "--max-minutes", "5"], "--max-minutes needs --run"),
        (["data", "--data", "file"], "file is a file, but a folder is needed there"),
        (["data", "cifar10", "--data", "file/x"], "file is a file, but a folder is needed there"),
        (["data", "imagenet"], "unknown download 'imagenet'"),
        (["data", "digits"], "come with scikit-learn"),
        (["data", "cifar10", "imagenet"], "unknown download 'imagenet'"),
        (["demo", "--device", "tpu"], "device 'tpu' is not known"),
        (["views", "digits/quickstart", "--count", "5000"], "5000 images cannot be shown; give 1 to"),
        (["views", "cifar10/single", "--out", "views.txt"], "a picture cannot be written as 'views.txt'"),
        (
            ["train", "file", "--out", "x"],
            "'file' is a path, and no experiment; for your own images write --images file",
        ),
        (["train", "xyz", "--out", "x"], "unknown experiment 'xyz'; `counterpoint experiments` lists the known ones"),
        (["evaluate", "."], ". is not a run folder (there is no run.json)"),
        (["views", "quick"], "unknown experiment 'quick'; did you mean 'digits/quickstart'?"),
        (["views", "cifar10"], "unknown experiment 'cifar10'; `counterpoint experiments cifar10` lists"),
        (["corrupt", "cifar11"], "unknown data set 'cifar11'"),
        (["corrupt", "digits", "--atlas", "a.png", "--image", "450"], "digits has test images 0 to 449"),
        (
            ["corrupt", "--atlas", "a.png", "--image", "cat.png"],
            "cat.png is neither a test image's number nor a picture",
        ),
        (["corrupt", "cifar10", "--atlas", "a.gif"], "a picture cannot be written as 'a.gif'"),
        (["corrupt", "digits", "--constants", "cifar"], "unknown --constants 'cifar'; did you mean 'cifar-c'?"),
        (["corrupt", "digits", "--out", "file"], "file is a file, but a folder is needed there"),
        (["corrupt"], "name a data set to corrupt"),
        (["corrupt", "digits", "--image", "3"], "--image works only for an atlas; add --atlas FILE"),
        (
            ["corrupt", "digits", "--atlas", "a.png", "--extra", "--workers", "2"],
            "--extra and --workers cannot be used with --atlas",
        ),
        (["experiments", "imagenet"], "unknown word in an experiment's name 'imagenet'"),
        (["experiments", "CIFAR10", "singel"], "unknown word in an experiment's name 'singel'; did you mean 'single'"),
        (["experiments", "cifar10", "digits"], "no experiment has 'cifar10' and 'digits' in its name"),
        (["settings", "EPOCHS"], "unknown setting 'EPOCHS'; did you mean 'epochs'"),
        (["trian"], "No such command 'trian'"),
        (["experiments", "[/b]"], "unknown word in an experiment's name '[/b]'"),
        (
            ["train", "digits/single", "--out", "file/x"],
            "file is a file, but a folder is needed there; give another path",
        ),
        (["train", "digits/single", "--out", "x", "--engine", "fast"], "the fast engine needs a GPU and a resnext29"),
        (["train", "digits/single", "--out", "x", "--engine", "quick"], "unknown engine 'quick'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_exit_with_2_and_say_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("counterpoint.cli.terminal.progress.console", Console(force_terminal=True))
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["counterpoint", *arguments])
    for name, value in {"COUNTERPOINT_DATA": str(tmp_path / "data"), "COLUMNS": "200", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == "", "no progress bar before an error that comes first"
    assert not (tmp_path / "x" / "run.json").exists()
    assert not (tmp_path / "data").exists()


def test_words_of_an_experiment_may_be_one_argument(call: Call) -> None:
    assert call("experiments", "cifar10 single") == call("experiments", "cifar10", "single")


def test_a_file_that_cannot_be_put_in_its_place_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(_: Path) -> None:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), "o/.fog.npy.0.part", None, "o/fog.npy")

    monkeypatch.setattr("counterpoint.data.fetch.status", rename)
    assert "o/fog.npy cannot be read or written (Is a directory)" in call("data").err


def test_lists(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = call("experiments").out
    assert "cifar100/am-bern-0.875+adv/test" in listed
    assert "on: split holds some training images out" in listed
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path))
    shown = call("data").out
    assert "counterpoint data cifar10-c" in shown
    assert "scikit-learn" in shown


def test_pictures(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path))
    assert call("views", "digits/quickstart", "--out", tmp_path / "views.png").status == 0
    assert call("corrupt", "--atlas", tmp_path / "atlas.png").status == 0
    Image.open(tmp_path / "views.png").crop((0, 0, 120, 90)).save(tmp_path / "mine.png")
    picture = call("corrupt", "--atlas", tmp_path / "own.png", "--image", tmp_path / "mine.png")
    assert picture.status == 0, picture.err
    assert "95/95" in picture.out, "a large picture takes minutes"
    assert (tmp_path / "views.png").read_bytes()[:4] == (tmp_path / "atlas.png").read_bytes()[:4] == b"\x89PNG"


def test_corrupt_writes_the_official_layout_once(finished: Path, call: Call) -> None:
    folder = finished / "data" / "regenerated" / "digits-C-seed0"
    assert [path.name for path in folder.parent.iterdir()] == ["digits-C-seed0-first-5"], "evaluate needed five images"
    made = []
    for _ in range(2):
        with few_digits_beside(finished):
            done = call("corrupt", "digits")
        assert done.status == 0, done.err
        assert "frost from texture" in done.out
        made.append({path.name: path.stat().st_mtime_ns for path in folder.glob("*_*.npy")})
    assert made[0]
    assert made[0] == made[1]


def test_help_and_version(call: Call) -> None:
    assert "Show the version" in run("--help")
    assert run("--version").strip() == "0.1.0"
    for command in ("export", "serve"):
        assert f"pip install 'counterpoint[{command}]'" in call(command, "--help").out
    for command in ("train", "evaluate", "recalibrate", "threshold", "compare"):
        help_ = call(command, "--help").out
        assert f"Usage: counterpoint {command} " in help_
        assert "list[" not in help_


def test_report_needs_no_torch(finished: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from counterpoint.cli import main; main()"
    command = [sys.executable, "-c", code, "report", str(finished / "run"), "--out", str(finished / "no-torch.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("set_before", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_torchs_threads_do_not_wait_in_busy_loops(set_before: str | None, expected: str) -> None:
    """With four other programs on two cores, a short training took 16 s, and 160 s with busy loops."""
    code = (
        "import atexit, os, sys; from counterpoint.cli import main; "
        "print('torch' in sys.modules, os.environ.get('OMP_WAIT_POLICY')); "
        "atexit.register(lambda: print(os.environ['OMP_WAIT_POLICY'])); main()"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    if set_before is not None:
        environment["OMP_WAIT_POLICY"] = set_before
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, timeout=60, env=environment
    )
    first, *_, last = done.stdout.splitlines()
    assert first == f"False {set_before}", "it is early enough: torch is not imported yet"
    assert last == expected
