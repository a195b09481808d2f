"""Who may hold a folder: one alone, or several together. A second handle counts as a second process."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.storage.locks import LOCK_FILE, in_turn, is_locked, locked, shared

if sys.platform != "win32":
    import fcntl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")

REFUSAL = "another process is here; wait for it"
IN_A_CHILD = """
import sys
from pathlib import Path
from counterpoint.errors import InputError
from counterpoint.storage.locks import locked

try:
    with locked(Path(sys.argv[1]), "refused in the child"):
        print("held")
except InputError as error:
    print(error)
"""


def lock_in_a_child(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", IN_A_CHILD, folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_holder_is_refused_with_the_text_it_brought(tmp_path: Path) -> None:
    with (
        locked(tmp_path, "not said: it is the first"),
        pytest.raises(InputError, match=f"^{REFUSAL}$"),
        locked(tmp_path, REFUSAL),
    ):
        pytest.fail("it was let in")


def test_a_second_process_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    with locked(tmp_path, REFUSAL):
        assert lock_in_a_child(tmp_path) == "refused in the child"
    assert lock_in_a_child(tmp_path) == "held"


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    for held in (locked(tmp_path, REFUSAL), in_turn(tmp_path, lambda: None), shared(tmp_path, lambda: None)):
        with pytest.raises(InputError, match=rf"{tmp_path} is on a file system without locks \(.*\), so that"), held:
            pytest.fail("it was let in")


def test_a_folder_is_free_again_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with locked(tmp_path, REFUSAL):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    with locked(tmp_path, REFUSAL):
        pass


def test_a_folder_is_made_where_there_is_none_and_keeps_its_lock_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with locked(folder, REFUSAL):
        pass
    assert [entry.name for entry in folder.iterdir()] == [LOCK_FILE]


def test_folders_do_not_lock_each_other(tmp_path: Path) -> None:
    with locked(tmp_path / "first", REFUSAL), locked(tmp_path / "second", REFUSAL):
        pass


def test_only_the_one_who_is_alone_cleans_up(tmp_path: Path) -> None:
    cleaned: list[str] = []
    with shared(tmp_path, lambda: cleaned.append("first")):
        assert cleaned == ["first"], "before the work begins"
        with shared(tmp_path, lambda: cleaned.append("second")):
            pass
        assert cleaned == ["first"]
    with shared(tmp_path, lambda: cleaned.append("third")):
        pass
    assert cleaned == ["first", "third"]


def test_a_shared_folder_cannot_be_held_alone(tmp_path: Path) -> None:
    with (
        shared(tmp_path, lambda: None),
        shared(tmp_path, lambda: None),
        pytest.raises(InputError, match=REFUSAL),
        locked(tmp_path, REFUSAL),
    ):
        pytest.fail("it was let in")


def test_whoever_comes_in_turn_waits_for_the_one_before(tmp_path: Path) -> None:
    child = """
import sys
from pathlib import Path
from counterpoint.storage.locks import in_turn

with in_turn(Path(sys.argv[1]), lambda: print("waiting", flush=True)):
    print("held", flush=True)
"""
    command = [sys.executable, "-c", child, str(tmp_path)]
    with locked(tmp_path, REFUSAL):
        second = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert second.stdout
        assert second.stdout.readline() == "waiting\n"
        assert second.poll() is None
    assert second.communicate(timeout=60)[0] == "held\n"


def test_whoever_is_alone_does_not_wait(tmp_path: Path) -> None:
    with (
        in_turn(tmp_path / "new", lambda: pytest.fail("there is nobody to wait for")),
        pytest.raises(InputError, match=REFUSAL),
        locked(tmp_path / "new", REFUSAL),
    ):
        pytest.fail("it was let in")


def test_it_can_be_asked_whether_a_folder_is_held(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    assert not list(tmp_path.iterdir())
    with in_turn(tmp_path, lambda: None):
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
    with locked(tmp_path, "not said: asking held it for a moment only"):
        assert is_locked(tmp_path)
