"""`counterpoint sweep` as a user meets it: a tiny training that is preempted on the way, and what is refused."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from counterpoint.launching import running
from counterpoint.records.progress import epochs_done
from counterpoint.runs.folder import load_run
from tests.cli.conftest import Call
from tests.images.collection import write_collection
from tests.processes_of import children, is_running

SETTINGS = "--set epochs=3 --set width=2 --set batch_size=64 --set policy.augmix=none --set train_on=all".split()
TINY = ("digits/single", *SETTINGS, "--device", "cpu")
RUN = "digits-single__seed=0"
FEW_TEST_IMAGES = """
import dataclasses, torch, counterpoint.data
digits = counterpoint.data.DATASETS["digits"](None)
few = dataclasses.replace(digits, test=digits.test.select(torch.arange(20)))
counterpoint.data.DATASETS["digits"] = lambda _: few
from counterpoint.cli import main
main()
"""


def preempt(folder: Path, ended: list[int]) -> None:
    """Ask the process that trains in `folder` to end, once its first epoch is done."""
    limit = time.monotonic() + 120
    while time.monotonic() < limit and not epochs_done(folder):
        time.sleep(0.02)
    ended += [pid for pid in children(os.getpid()) if is_running(pid, f"train digits/single --out {folder}")]
    for pid in ended:
        os.kill(pid, signal.SIGTERM)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process to end in /proc")
def test_a_preempted_run_goes_on_and_is_evaluated(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PROGRAM", ("-c", FEW_TEST_IMAGES))  # to make fewer corrupted images
    sweep, ended = ("sweep", *TINY, "--out", tmp_path, "--data", tmp_path / "data"), list[int]()
    status, out, _ = call(*sweep)
    assert (status, list(tmp_path.iterdir())) == (0, [])
    assert f"{RUN} waiting 1 run: 1 waiting --run runs those that are not finished" in out
    killer = threading.Thread(target=preempt, args=(tmp_path / RUN, ended))
    killer.start()
    status, out, err = call(*sweep, "--run")
    killer.join()
    assert (status, err) == (0, "")
    assert len(ended) == 1
    report = f"`counterpoint report {tmp_path}/*/results.json`"
    assert f"1 run: 1 finished next: {report}" in out
    started = [record["step"] for record in load_run(tmp_path / RUN).read_log() if record["event"] == "started"]
    assert started[0] == 0
    assert 22 <= started[1] < 66, "it went on from the checkpoint of the step at which it was asked to end"
    shown = call(*sweep).out.split()
    figures = shown[shown.index("finished") + 1 :][:4]
    assert all(0 < float(figure.removesuffix("%")) < 100 for figure in figures), "error and ECE, clean and on -C"
    (log,) = tmp_path.glob(".jobs/*/log.txt")
    before = log.read_bytes()
    assert call(*sweep, "--run").status == 0
    assert log.read_bytes() == before, "a finished run is not done again"
    assert (
        f"1 finished, 1 waiting --run runs those that are not finished, or continues them next, for those that are "
        f"finished: {report}" in call(*sweep, "--seeds", "0,1").out
    )
    monkeypatch.setattr(os, "access", lambda _, mode, **__: not mode & os.W_OK)  # a folder that cannot be written to
    for run in ((), ("--run",)):
        status, out, err = call(*sweep, *run)
        assert (status, err) == (0, "")
        assert "1 run: 1 finished" in out
    status, _, err = call(*sweep, "--seeds", "0,1", "--run")
    assert (status, "cannot be written (Permission denied)" in err) == (2, True)


OWN = "--set images.size=8 --set depth=8 --set width=2 --set num_members=none --set epochs=1 --device cpu".split()


def test_own_images_are_swept_over_and_decoded_once(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    photos = write_collection(tmp_path / "my photos", {"": 60})
    sweep = ("sweep", "--images", photos, "--vary", "learning_rate=0.1", "--vary", "learning_rate=0.05", *OWN)
    sweep = (*sweep, "--no-evaluate", "--out", "s", "--data", "data")
    shown = call(*sweep)
    assert (shown.status, shown.err) == (0, "")
    assert "my photos: images 42 to train on" in shown.out
    assert shown.out.count("to train on") == 1, "both rates want the same images"
    assert "2 runs: 2 waiting" in shown.out
    assert not Path("s").exists()
    (cached,) = [path for path in Path("data/images").iterdir() if path.name != "sources"]
    made = cached.stat().st_mtime_ns
    ended = call(*sweep, "--run")
    assert (ended.status, ended.err) == (0, "")
    assert "2 runs: 2 finished" in ended.out
    runs = [load_run(path.parent) for path in sorted(Path("s").glob("*/run.json"))]
    assert sorted(run.experiment.learning_rate for run in runs) == [0.05, 0.1]
    assert all(run.folder.name.startswith("my-photos__learning_rate=") for run in runs)
    assert {run.record["images"]["source"] for run in runs} == {str(photos)}
    assert cached.stat().st_mtime_ns == made
    assert not any("decoding" in log.read_text() for log in Path("s").glob(".jobs/*/log.txt"))
    assert "2 runs: 2 finished" in call(*sweep).out, "the experiment of each run is found again"


def test_recipes_for_own_images_have_runs_of_their_own(call: Call, tmp_path: Path) -> None:
    photos = write_collection(tmp_path / "photos", {"": 30})
    recipes = ("cifar10/single", "cifar10/batch-ensemble")
    shown = call("sweep", *recipes, "--images", photos, "--out", tmp_path / "s", "--data", tmp_path / "data")
    assert (shown.status, shown.err) == (0, "")
    assert "photos-cifar10-single__seed=0 waiting photos-cifar10-batch-ensemble__seed=0 waiting" in shown.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name an experiment (`counterpoint experiments` lists them), or give your own images with --images PATH"),
        (("--images", "nowhere"), "nowhere does not exist"),
        (("--images", "empty"), "empty"),
        (("--images", "one/a"), "one/a has no class folders"),
        (("digits/single", "--skip-bad"), "--skip-bad works only with your own images"),
        (("one",), "'one' is a path, and no experiment; for your own images write --images one"),
        (("--images", "one", "--vary", "images.size=0"), "images.size is 0"),
        (("--images", "one", "--set", "model=resnt"), "unknown model 'resnt'"),
    ],
)
def test_what_is_wrong_with_own_images_is_said_before_the_first_run(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "PROGRAM", ("-c", "raise SystemExit('it was run')"))
    for folder in ("empty", "one/a"):
        Path(folder).mkdir(parents=True)
    ended = call("sweep", *arguments, "--out", "s", "--data", "data", "--run")
    assert ended.status == 2
    assert message in ended.err
    assert not Path("s").exists()


def test_a_run_that_fails_is_shown_with_its_reason_and_its_log(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PROGRAM", ("-c", "import sys; sys.exit('error: it went wrong')"))
    sweep = ("sweep", "digits/single", "--seeds", "0,1", "--out", tmp_path)
    status, out, _ = call(*sweep, "--run")
    assert status == 1
    for name in (RUN, "digits-single__seed=1"):
        log = tmp_path / ".jobs" / name / "log.txt"
        assert f"{name} failed: it went wrong; its log is {log}" in out
        assert "counterpoint train digits/single" in log.read_text()
    assert "2 runs: 2 failed --run runs those that are not finished" in out
    assert call(*sweep).status == 1, "shown again"


def test_a_run_that_is_damaged_does_not_keep_the_others_from_running(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PROGRAM", ("-c", "import sys; sys.exit('error: it went wrong')"))
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / "run.json").write_text("{")
    status, out, err = call("sweep", "digits/single", "--seeds", "0,1", "--out", tmp_path, "--run")
    assert (status, err) == (1, "")
    assert f"{RUN} failed: {tmp_path / RUN / 'run.json'} is damaged or is not a JSON file" in out
    assert f"If you move {tmp_path / RUN} away, --run begins the run again" in out
    assert "digits-single__seed=1 failed: it went wrong; its log is" in out
    assert out.count("its log is") == 1, "only one of them was run"


def test_seeds_may_be_given_several_times(call: Call, tmp_path: Path) -> None:
    once = call("sweep", "digits/single", "--out", tmp_path, "--seeds", "3,1,4")
    assert once.out.count("waiting") == 4, "three runs and their number"
    assert call("sweep", "digits/single", "--out", tmp_path, "--seeds", "3,1", "--seeds", "4") == once


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--launcher", "pbs"), "unknown launcher 'pbs' (known: local, slurm)"),
        (("--partition", "long"), "--partition works only on a cluster; add --launcher slurm"),
        (("--gpus", "0", "--minutes", "9"), "--gpus, --minutes works only on a cluster"),
        (("--launcher", "slurm", "--sbatch", "account"), "--sbatch account: it must be NAME=VALUE"),
        (("--seeds", "0", "--seeds", ","), "they must be whole numbers separated by commas"),
        (("--seeds", "0-2"), "they must be whole numbers separated by commas"),
        (("--vary", "epochs"), "--vary epochs: it must be KEY=VALUE"),
    ],
)
def test_wrong_arguments(call: Call, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    status, _, err = call("sweep", "digits/single", "--out", tmp_path, *options)
    assert status == 2
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "file/s"), "file is a file, but a folder is needed there"),
        (("--out", "s", "--device", "tpu"), "device 'tpu' is not known; use auto, cpu, cuda or cuda:N"),
    ],
)
def test_what_would_fail_every_run_is_said_once(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    ended = call("sweep", "digits/single", *options, "--seeds", "0,1", "--run")
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert not Path("s").exists()


def test_the_device_of_a_cluster_need_not_be_here(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    cluster = ("--launcher", "slurm", "--device", "cuda:99", "--run")
    assert "--launcher slurm needs submitit" in call("sweep", "digits/single", "--out", tmp_path, *cluster).err


def test_the_states_of_a_sweep_are_shown_without_torch(tmp_path: Path) -> None:
    shown = "import sys; from counterpoint.cli import main\ntry: main()\nfinally: assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", shown, "sweep", "digits/single", "--out", str(tmp_path)], check=True)


@pytest.mark.parametrize("command", [("sweep", "digits/single"), ("reproduce", "table2", "--rows", "cifar10/single")])
def test_a_machine_without_slurm_is_told_so(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("counterpoint.cli.reproduce.check_data", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "submitit", None)
    status, _, err = call(*command, "--out", "runs", "--launcher", "slurm", "--run")
    assert status == 2
    assert "--launcher slurm needs submitit, which is not installed; pip install 'counterpoint[slurm]'" in err
    monkeypatch.setitem(sys.modules, "submitit", sys)  # any module that is there
    status, _, err = call(*command, "--out", "runs", "--launcher", "slurm", "--run")
    assert status == 2
    assert "sbatch was not found on this machine" in err
    assert not list(tmp_path.iterdir())
