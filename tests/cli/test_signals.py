"""Ctrl-C and the request to end: a checkpoint, and a status that tells them apart. Real signals, to this process."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import counterpoint.training.loop
from counterpoint.cli.terminal.progress import console
from counterpoint.cli.terminal.signals import exit_when_terminated, stop_on_signal
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.runs.checkpoints import latest_checkpoint
from tests.cli.conftest import Call
from tests.interrupts import interrupts_heard
from tests.small import few_digits

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
TINY = ("--set", "steps=4", "--set", "width=2", "--set", "batch_size=8", "--device", "cpu")


@pytest.fixture(autouse=True)
def handlers_put_back() -> Iterator[None]:
    before = [signal.getsignal(number) for number, _ in SIGNALS]
    yield
    assert [signal.getsignal(number) for number, _ in SIGNALS] == before


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Has something done inside the step of this number, before the update."""

    def plan(step: int, happens: Callable[[], None]) -> None:
        update = counterpoint.training.loop.update

        def slow(engine: Any, *arguments: Any) -> None:
            if engine.state.step + 1 == step:
                happens()
            update(engine, *arguments)

        monkeypatch.setattr(counterpoint.training.loop, "update", slow)

    return plan


def send_while_computing(number: int) -> None:
    """The signal comes while torch computes, and Python hears of it when that has ended."""
    sender = threading.Thread(target=lambda: os.kill(os.getpid(), number))
    matrix = torch.ones(700, 700)
    sender.start()
    for _ in range(20):
        matrix = (matrix @ matrix).clamp_(max=1)
    sender.join()


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_in_a_slow_step_ends_training_with_a_checkpoint(
    tmp_path: Path, call: Call, in_step: Callable[..., None], number: int, status: int
) -> None:
    in_step(3, lambda: send_while_computing(number))
    ended = call("train", "digits/single", "--out", tmp_path / "run", *TINY)
    assert ended.status == status
    assert "stopping after this step; once more ends it at once" in ended.out
    assert "stopped with a checkpoint in" in ended.out
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert checkpoint is not None
    assert checkpoint.step == 3
    assert call("train", "digits/single", "--out", tmp_path / "run", *TINY).status == 0


def test_a_second_signal_ends_at_once(tmp_path: Path, call: Call, in_step: Callable[..., None]) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    in_step(3, twice)
    assert call("train", "digits/single", "--out", tmp_path / "run", *TINY).status == 130
    assert latest_checkpoint(tmp_path / "run") is None


@pytest.fixture
def tiny_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("counterpoint.cli.demo.run.load", lambda *_: few_digits(20))
    monkeypatch.setattr("counterpoint.cli.demo.run.corrupted_set", lambda *_, **__: None)
    tiny = [replace(experiment, steps=2, width=2, batch_size=8) for experiment in QUICKSTART]
    monkeypatch.setattr("counterpoint.cli.demo.run.QUICKSTART", tiny)


@pytest.mark.usefixtures("tiny_demo")
@pytest.mark.parametrize("step", [1, 2], ids=["first", "last"])
@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_the_demo_with_a_checkpoint(
    tmp_path: Path, call: Call, in_step: Callable[..., None], step: int, number: int, status: int
) -> None:
    in_step(step, lambda: os.kill(os.getpid(), number))
    ended = call("demo", "--out", tmp_path / "demo", "--device", "cpu")
    assert ended.status == status
    assert "the same command continues from there" in ended.out
    assert [run.name for run in (tmp_path / "demo").iterdir()] == ["digits-quickstart"], "no other training begins"
    checkpoint = latest_checkpoint(tmp_path / "demo" / "digits-quickstart")
    assert checkpoint is not None
    assert checkpoint.step == step


@pytest.mark.usefixtures("tiny_demo")
@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_between_the_trainings_ends_the_demo_too(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    monkeypatch.setattr("counterpoint.cli.demo.run.corrupted_set", lambda *_, **__: os.kill(os.getpid(), number))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    try:
        ended = call("demo", "--out", tmp_path / "demo", "--device", "cpu")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.status == status
    assert ended.err == ""


def test_other_threads_leave_signals_alone() -> None:
    def enter() -> None:
        with exit_when_terminated():
            entered.append(signal.getsignal(signal.SIGTERM))

    entered: list[Any] = []
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [before]


def test_a_stop_knows_its_signal(capsys: pytest.CaptureFixture[str]) -> None:
    with stop_on_signal() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        assert stop.status == 143
    assert "once more ends it at once" in capsys.readouterr().out


def test_a_stop_is_asked_for_where_nobody_reads() -> None:
    before = console.when_unread
    with stop_on_signal() as stop:
        console.when_unread()
        assert stop.status == 141
    with stop_on_signal() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        console.when_unread()
        assert stop.status == 143, "Ctrl-C may end the reader too, and came first"
    assert console.when_unread is before


@pytest.mark.parametrize(
    "command", [("--version",), ("settings",), ("settings", "--help"), ("train", "--no-such-option")]
)
def test_output_that_nobody_reads_ends_a_command_quietly(command: tuple[str, ...]) -> None:
    with start(*command, stderr=subprocess.STDOUT if "--no-such-option" in command else subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr is None or process.stderr.read() == b""


def test_ctrl_c_that_ends_the_reader_too_leaves_a_checkpoint(tmp_path: Path) -> None:
    """As in `counterpoint train … | tee log.txt`, where Ctrl-C reaches both."""
    out, log = tmp_path / "run", tmp_path / "run" / "log.jsonl"
    with interrupts_heard(), start("train", "digits/single", "--out", out, "--set", "width=2") as process:
        assert process.stdout is not None
        process.stdout.close()
        while not log.exists() or '"epoch"' not in log.read_text():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert latest_checkpoint(out) is not None


def test_a_closed_terminal_leaves_a_checkpoint(tmp_path: Path) -> None:
    """The system sends SIGHUP to the process that leads the terminal, and every word to the terminal is an error."""
    ours, its = os.openpty()
    out, log = tmp_path / "run", tmp_path / "run" / "log.jsonl"
    words = [sys.executable, "-m", "counterpoint", "train", "digits/single", "--out", str(out), "--set", "width=2"]
    lead = (
        "import fcntl, os, signal, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # the tests may run after `nohup`
    )
    become = [sys.executable, "-c", f"{lead}; os.execv(sys.executable, sys.argv[1:])", *words]
    with subprocess.Popen(become, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        while not log.exists() or '"event": "epoch"' not in log.read_text():
            assert process.poll() is None, os.read(ours, 1 << 20)
            if select.select([ours], [], [], 0.05)[0]:
                os.read(ours, 1 << 20)
        os.close(ours)
        assert process.wait() == 129
    assert latest_checkpoint(out) is not None


def test_the_end_of_the_terminal_comes_twice_and_is_ignored_after_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_set()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.status == 129
    finally:
        signal.signal(signal.SIGHUP, before)


def start(*command: object, stderr: int | None = None) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "counterpoint", *map(str, command)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, env=buffered)
