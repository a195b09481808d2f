"""A full disk, and a folder that may not be written to. The errors are the system's own."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from counterpoint.corrupt.cells import About, claim
from counterpoint.errors import InputError
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import check_folder, load_run
from counterpoint.storage.files import check_file_path, write_atomically
from counterpoint.storage.locks import locked
from counterpoint.training.loop import Options, train
from tests.small import TINY, noise_data

ON_CPU = Options(device="cpu")
DATA = noise_data(36, 4)

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    """From now on files of such names lie on a disk that is full."""
    real = Path.open

    def full(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        is_full = path.name.startswith(prefix) and mode in ("wb", "a")  # to read it would never end
        return real(Path("/dev/full") if is_full else path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)


def test_a_full_disk_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"old")
    fill_the_disk(monkeypatch, ".file")
    with pytest.raises(
        InputError, match=r"the disk is full: .*file cannot be written; free some space, then give the same"
    ):
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.parametrize("prefix", [".step-", "log.jsonl"])
def test_training_on_a_full_disk_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    assert not train(TINY, tmp_path / "run", DATA, options=ON_CPU, should_stop=lambda: True)
    with monkeypatch.context() as patched:
        fill_the_disk(patched, prefix)
        with pytest.raises(InputError, match=rf"the disk is full: .*{prefix.strip('.')}"):
            train(TINY, tmp_path / "run", DATA, options=ON_CPU)
    kept = latest_checkpoint(tmp_path / "run")
    assert kept is not None
    assert kept.step == 1
    assert train(TINY, tmp_path / "run", DATA, options=ON_CPU)
    assert [line["epoch"] for line in load_run(tmp_path / "run").read_log() if line["event"] == "epoch"] == [1, 2, 3]


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this process may read and not write to. Root gives its rights up for that."""
    folder, user = Path(tempfile.mkdtemp()), os.geteuid()
    folder.chmod(0o555)
    os.seteuid(65534 if user == 0 else user)
    yield folder
    os.seteuid(user)
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_is_named(read_only: Path) -> None:
    said = r"cannot be written \(Permission denied\); choose a folder that you may write to"
    with pytest.raises(InputError, match=rf"{read_only / 'run'} {said}"):
        train(TINY, read_only / "run", DATA, options=ON_CPU)
    with pytest.raises(InputError, match=rf"{read_only / 'a' / 'run'} {said}"):
        check_folder(read_only / "a" / "run")
    with pytest.raises(InputError, match=rf"{read_only} {said}"):
        check_file_path(read_only / "file", "file")
    with pytest.raises(InputError, match=rf"{read_only / 'a'} {said}"):
        check_file_path(read_only / "a" / "file", "file")
    with pytest.raises(InputError, match=rf"{read_only} {said}"), locked(read_only, "not said"):
        pass
    with pytest.raises(InputError, match=rf"{read_only / 'file'} {said}"):
        write_atomically(read_only / "file", b"new")
    with pytest.raises(InputError, match=rf"{read_only / 'set'} {said}"):
        claim(read_only / "set", About("digits", "0", 0, "1", "texture"))
    assert not list(read_only.iterdir())
