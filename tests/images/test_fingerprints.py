import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from counterpoint.images import fingerprints, list_images
from counterpoint.images.decode import VERSION
from counterpoint.images.fingerprints import Index, fingerprint, read_index, write_index
from counterpoint.watching import SILENT
from tests.heard import Heard
from tests.images.pictures import write, write_classes


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were written just now count as settled; otherwise each test would have to wait."""
    monkeypatch.setattr(fingerprints, "_SETTLED_NS", -(10**12))


class Found(NamedTuple):
    hashes: dict[str, str]
    bad: list[str]
    read: int


def read_again(source: Path, index_file: Path) -> Found:
    """The hashes as a new process would find them, the names of the bad files, and how many files were read."""
    heard, index = Heard(), read_index(index_file)
    hashes, bad = fingerprint(list_images(source), index, heard)
    write_index(index_file, index)
    return Found(hashes, [name for name, _ in bad], heard.counts[-1][1] if heard.counts else 0)


def slowly(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*.png")
    }


def test_each_file_is_read_once(tmp_path: Path) -> None:
    folder, index = write_classes(tmp_path / "images", {"a": 70, "b": 3}), tmp_path / "index.json"
    assert read_again(folder, index) == (slowly(folder), [], 73)
    assert read_again(folder, index) == (slowly(folder), [], 0)


def test_a_changed_added_or_renamed_file_is_read(tmp_path: Path) -> None:
    folder, index = write_classes(tmp_path / "images", {"a": 3, "b": 3}), tmp_path / "index.json"
    read_again(folder, index)
    write(folder / "a" / "0.png", seed=77)
    assert read_again(folder, index) == (slowly(folder), [], 1)
    write(folder / "b" / "new.png", seed=78)
    (folder / "a" / "1.png").rename(folder / "a" / "one.png")
    (folder / "a" / "2.png").unlink()
    assert read_again(folder, index) == (slowly(folder), [], 2)


def test_a_change_that_keeps_size_and_time_is_noticed_by_the_time_of_change(tmp_path: Path) -> None:
    folder, index = write_classes(tmp_path / "images", {"a": 1, "b": 1}), tmp_path / "index.json"
    read_again(folder, index)
    path = folder / "a" / "0.png"
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert read_again(folder, index)[0] == slowly(folder)


def test_what_was_written_just_now_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_SETTLED_NS", 10**12)
    folder, index = write_classes(tmp_path / "images", {"a": 1, "b": 1}), tmp_path / "index.json"
    read_again(folder, index)
    assert read_again(folder, index).read == 2


def test_files_that_cannot_be_read_are_bad(tmp_path: Path) -> None:
    write(tmp_path / "a.png")
    (tmp_path / "folder").mkdir()
    table = tmp_path / "list.csv"
    table.write_text("path,label\na.png,cat\ngone.png,dog\nfolder,dog\n")
    hashes, bad = fingerprint(list_images(table), Index(), SILENT)
    assert list(hashes) == ["a.png"]
    assert [tuple(file) for file in bad] == [
        ("gone.png", "cannot be read (No such file or directory)"),
        ("folder", "is no ordinary file"),
    ]


def test_rows_of_an_archive_are_hashed_by_their_pixels(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (130, 4, 5), dtype=np.uint8)
    images[129] = images[0]
    path, index = tmp_path / "set.npz", tmp_path / "index.json"
    np.savez(path, images=images, labels=np.arange(130) % 2)
    found = read_again(path, index)
    assert list(found.hashes.values()) == [hashlib.sha256(row.tobytes()).hexdigest() for row in images]
    assert (found.bad, found.read) == ([], 130)
    assert read_again(path, index) == found._replace(read=0)
    np.savez(path, images=images[:100], labels=np.arange(100) % 2)
    assert read_again(path, index).read == 100


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 1, "hashes": {"a": 3}, "bad": {}}', '{"version": 0}'])
def test_an_index_that_cannot_be_used_costs_time_and_nothing_else(tmp_path: Path, content: str) -> None:
    folder, index = write_classes(tmp_path / "images", {"a": 1, "b": 1}), tmp_path / "index.json"
    index.write_text(content)
    assert read_again(folder, index)[0] == slowly(folder)
    assert json.loads(index.read_text())["version"] == VERSION


@pytest.mark.skipif(os.name != "posix", reason="names are text there")
def test_a_name_that_is_no_text_can_be_indexed(tmp_path: Path) -> None:
    folder, index = write_classes(tmp_path / "images", {"a": 1, "b": 1}), tmp_path / "index.json"
    write(Path(os.fsdecode(os.fsencode(folder / "a") + b"/\xff.png")), seed=9)
    found = read_again(folder, index)
    assert (len(found.hashes), found.bad, found.read) == (3, [], 3)
    assert read_again(folder, index) == found._replace(read=0)
