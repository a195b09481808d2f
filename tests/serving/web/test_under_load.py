"""`counterpoint serve` as a process of its own: many at once, large and hostile uploads, bounded memory, Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar

import pytest

from counterpoint.runs.folder import Run
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.address import Address
from counterpoint.serving.web.asking import Asked, predicted
from tests.images.pictures import bomb
from tests.interrupts import interrupts_heard
from tests.serving.web.conftest import Answer, ask, picture

MEBIBYTE = 1 << 20
NO_ANSWER = Answer(0, b"")

Value = TypeVar("Value")


class Process:
    """A server that was started from the command line."""

    def __init__(self, run: Run, folder: Path, *options: str) -> None:
        self._folder = folder
        arguments = ["serve", str(run.folder), "--port", "0", "--device", "cpu", *options]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "COUNTERPOINT_DATA": str(folder), "COLUMNS": "200"}
        with (folder / "err").open("w") as err, interrupts_heard():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "counterpoint", *arguments],
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                env=environment,
            )
        self.words = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.words += line
            if found := re.search(r"serving at http://127\.0\.0\.1:(\d+)", line):
                self.address = Address("127.0.0.1", int(found[1]))
                return
        pytest.fail(f"it did not start: {self.err()}")

    def err(self) -> str:
        return (self._folder / "err").read_text()

    def memory(self, what: str = "VmHWM") -> int:
        """Its resident memory at most so far, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kibibytes,) = re.findall(rf"{what}:\s+(\d+) kB", status)
        return int(kibibytes) // 1024

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def server(whole_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc to read a process's memory from")
    started = Process(whole_run, tmp_path_factory.mktemp("process"))
    with started.process:
        yield started
        started.process.kill()


def at_once(work: Callable[[Value], Answer], values: Sequence[Value]) -> list[Answer]:
    with ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(work, values))


def test_a_hundred_at_once(server: Process, whole_predictor: Predictor) -> None:
    contents = [picture(64, seed=seed) for seed in range(100)]
    before = server.memory()
    answers = at_once(lambda content: ask(server.address, "/predict", content), contents)
    statuses = Counter(answer.status for answer in answers)
    assert set(statuses) <= {200, 503}
    assert statuses[200] >= 33, "one is computed and 32 may wait"
    for content, answer in zip(contents, answers, strict=True):
        if answer.status == 200:
            assert answer.json == predicted(whole_predictor, content, Asked())
        else:
            assert "try again" in answer.json["error"]
            assert answer.headers["retry-after"] == "2"
    assert server.memory() - before < 100


def test_large_pictures_are_decoded_one_at_a_time(server: Process) -> None:
    content = picture(4096, mode="RGBA")  # about 260 MB while it is decoded
    before = server.memory("VmRSS")
    answers = at_once(lambda content: ask(server.address, "/predict", content), [content] * 6)
    assert [answer.status for answer in answers] == [200] * 6
    assert server.memory() - before < 500
    assert server.memory("VmRSS") - before < 200, "it is given back"


def test_uploads_together_are_bounded(server: Process) -> None:
    def upload(_: int) -> Answer:
        try:
            return ask(server.address, "/predict", bytes(31 * MEBIBYTE))
        except (OSError, HTTPException):
            return NO_ANSWER  # it was refused while this client was still sending

    before = server.memory("VmRSS")
    statuses = Counter(answer.status for answer in at_once(upload, range(12)))
    assert set(statuses) <= {400, 503, NO_ANSWER.status}
    assert statuses[400] >= 1, "zeros are no picture"
    assert server.memory("VmRSS") - before < 250


def test_hostile_uploads_get_an_answer(server: Process) -> None:
    for content in (b"", b"no picture", picture()[:300], bomb(), bomb(13_000, 13_000), b"\x89PNG\r\n\x1a\n" * 1000):
        answer = ask(server.address, "/look", content, method="POST")
        assert answer.status == 400
        assert answer.json["error"]


def test_it_lives_on_and_says_what_it_is(server: Process, digit: bytes, whole_predictor: Predictor) -> None:
    assert ask(server.address, "/predict", digit).json == predicted(whole_predictor, digit, Asked())
    assert "4 members of resnet, 10 classes, images of 32 × 32 pixels in grey" in server.words
    assert f"sure from a confidence of {whole_predictor.correction.sure_from}" in server.words
    assert "warning" not in server.words
    assert server.err() == ""


def test_control_c_ends_it_cleanly(server: Process) -> None:
    assert server.end() == 130
    assert server.process.stdout is not None
    assert server.process.stdout.read() == "stopped\n"
    assert server.err() == ""
    with pytest.raises(ConnectionRefusedError):
        ask(server.address)
