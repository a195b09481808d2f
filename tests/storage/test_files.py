import errno
import os
import stat
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.storage.files import read_json, write_atomically, write_json


def test_a_written_file_is_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert [(p.name, p.read_bytes()) for p in path.parent.iterdir()] == [("file", b"two")]


@pytest.mark.parametrize("stage", ["fsync", "replace"])
def test_a_failure_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, stage, fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"old")]


def test_a_folder_that_cannot_be_synced_takes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some network file systems say. Another error of the sync is raised."""
    fsync, number = os.fsync, errno.EINVAL

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_atomically(tmp_path / "file", b"one")
    assert (tmp_path / "file").read_bytes() == b"one"
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        write_atomically(tmp_path / "file", b"two")


def test_two_processes_of_the_same_number_write_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in two containers that share a folder: one writes the whole file while the other is in the middle of it."""
    path, fsync = tmp_path / "file", os.fsync

    def meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        write_atomically(path, b"two")
        assert path.read_bytes() == b"two"
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    write_atomically(path, b"one")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"one")]


def test_json_comes_back_and_nonsense_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": [1, 2.5, None, "é"]})
    assert read_json(path) == {"a": [1, 2.5, None, "é"]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, float("nan"))
    assert read_json(path) == {"a": [1, 2.5, None, "é"]}


def test_a_files_name_that_is_no_text_comes_back(tmp_path: Path) -> None:
    name = os.fsdecode(b"photos-\xff-\xc3\xa9")
    write_json(tmp_path / "x.json", {"source": name})
    assert (tmp_path / "x.json").read_text("utf-8") == '{\n "source": "photos-\\udcff-é"\n}\n'
    assert read_json(tmp_path / "x.json") == {"source": name}


def test_reading_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.json does not exist"):
        read_json(tmp_path / "absent.json")
    cut = tmp_path / "cut.json"
    cut.write_text('{"a": ')
    with pytest.raises(InputError, match=r"cut\.json is damaged or is not a JSON file"):
        read_json(cut)
