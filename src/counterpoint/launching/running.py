"""Run a job: its commands one after another, each in a process of its own that may be ended from outside.

A process that was ended so is started again, and goes on from its checkpoint. An error ends the job. The reason is kept
beside its log.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from counterpoint.launching.job import Job, is_done
from counterpoint.storage.files import write_json
from counterpoint.storage.locks import in_turn
from counterpoint.storage.provenance import now

Outcome = Literal["finished", "stopped", "failed"]
PROGRAM = ("-m", "counterpoint")
RESTARTS = 3
_POLL_SECONDS = 0.2
# A signal that ended the process, or the status of a command that ended itself after a signal, as shells have it. The
# Ctrl-C of the terminal never reaches these processes.
_ENDED_FROM_OUTSIDE = {-signal.SIGTERM: "SIGTERM", 143: "SIGTERM", 130: "SIGINT", -signal.SIGINT: "SIGINT"}
if sys.platform != "win32":
    _ENDED_FROM_OUTSIDE[-signal.SIGKILL] = "SIGKILL"


class JobRunner:
    """Runs a job once, and can be told to end it."""

    def __init__(self, job: Job, *, own_session: bool = False, pause: float = 0.0) -> None:
        """With `own_session` the processes do not hear signals of this terminal, such as Ctrl-C.

        `pause` seconds are between an end from outside and the new start: the signal may be about to end this process
        too.
        """
        self.job = job
        self._own_session, self._pause = own_session, pause
        self._should_stop: Callable[[], bool] = lambda: False
        self._watch: Callable[[], None] = lambda: None
        self._child: subprocess.Popen[bytes] | None = None
        self.warned = False
        """Whether this process was asked to end. Then its child was asked too, and its last words do not count."""

    def run(self, should_stop: Callable[[], bool] = lambda: False, watch: Callable[[], None] = lambda: None) -> Outcome:
        """Run what is left of the job. `watch` and `should_stop` are called a few times a second."""
        self._should_stop, self._watch = should_stop, watch
        with in_turn(self.job.desk, lambda: None):
            if is_done(self.job):
                return "finished"
            self.job.failure.unlink(missing_ok=True)
            problem = self._run_with_restarts()
            if should_stop():
                return "stopped"
            if problem is None and not is_done(self.job):
                problem = "its commands ended without an error, but their results are missing"
            if problem is None:
                return "finished"
            write_json(self.job.failure, {"reason": problem, "time": now()})
            return "failed"

    def end(self, seconds: float) -> None:
        """Ask the process that is under way to end with a checkpoint, and wait so long for that at most.

        This may be called by a signal's handler, inside `run`, whose own wait for the process is then not disturbed.
        """
        if self._child is None or self._child.returncode is not None:
            return
        os.kill(self._child.pid, signal.SIGTERM)
        limit = time.monotonic() + seconds
        while time.monotonic() < limit and not _has_ended(self._child.pid):
            time.sleep(_POLL_SECONDS)

    def _run_with_restarts(self) -> str | None:
        """Why the job failed; None if it did not."""
        endings: list[str] = []
        while len(endings) <= RESTARTS:
            status, words = self._run_commands()
            if status == 0 or self._should_stop():
                return None
            if status not in _ENDED_FROM_OUTSIDE and not self.warned:
                return words
            endings.append(_ENDED_FROM_OUTSIDE.get(status, "SIGTERM"))
            self.warned = False
            time.sleep(self._pause)
        memory = "; the system does that when memory is short" if "SIGKILL" in endings else ""
        return f"it was ended from outside {len(endings)} times ({', '.join(endings)}){memory}"

    def _run_commands(self) -> tuple[int, str]:
        """The status of the first command that failed, or of the last command, and the last words that it printed."""
        status, words = 0, ""
        for command in self.job.commands:
            with self.job.log.open("ab") as log:
                log.write(f"--- {now()} {shlex.join(('counterpoint', *command))}\n".encode())
                log.flush()
                begin = log.tell()
                status = self._run_command(command, log)
            if status != 0:
                words = _last_words(self.job.log, begin) or f"it ended with status {status}"
                break
            if self._should_stop():
                break
        return status, words

    def _run_command(self, command: tuple[str, ...], log: IO[bytes]) -> int:
        with _not_passed_on():
            self._child = subprocess.Popen(
                [*program(self.job.processes), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"},
                start_new_session=self._own_session,
            )
        try:
            return self._wait(self._child)
        except BaseException:
            self._child.kill()  # a signal that ends this process at once is meant for that one too
            self._child.wait()
            raise

    def _wait(self, child: "subprocess.Popen[bytes]") -> int:
        asked = False
        while True:
            try:
                return child.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                self._watch()
            if self._should_stop() and not asked:
                child.terminate()
                asked = True


def program(processes: int) -> tuple[str, ...]:
    """What comes before a command's arguments. Several processes are started by torchrun."""
    if processes == 1:
        return (sys.executable, *PROGRAM)
    return (sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", *PROGRAM)


@contextmanager
def _not_passed_on() -> Iterator[None]:
    """Processes that are started inside do not hear SIGUSR1 and SIGUSR2, which would end them without a checkpoint.

    Clusters send these to all processes of a job before they end it, and this process then ends the other one. A mask
    is inherited. Here it only delays a signal.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_ended(pid: int) -> bool:
    """Whether a child has ended. Its status stays there for the wait that is under way."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:  # the wait was faster
        return True


def _last_words(log: Path, begin: int) -> str:
    """The error that a command ended with, or else the last line that it printed."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = [line.strip(" │") for line in file.read().decode(errors="replace").splitlines()]
    errors = [line for line in lines if line.startswith("error: ")]
    spoken = [line for line in lines if any(map(str.isalnum, line))]
    return (errors or spoken or [""])[-1].removeprefix("error: ")
