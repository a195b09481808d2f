"""Decoded once, noticed when changed, whole or absent, and never copied."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.images import BadFile, DecodedImages, Decoding, building, decode, open_images
from tests.heard import Heard
from tests.images.pictures import bomb, colours, saved, write, write_classes

SMALL = Decoding(8)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return write_classes(tmp_path / "photos", {"a": 3, "b": 4})


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry per picture that this process decodes."""
    calls: list[int] = []

    def counting(content: bytes, decoding: Decoding) -> np.ndarray:
        calls.append(len(content))
        return decode(content, decoding)

    monkeypatch.setattr(building, "decode", counting)
    return calls


def opened(source: Path, decoding: Decoding = SMALL, **options: object) -> DecodedImages:
    arguments = {"cache": source.parent / "cache", "workers": 1} | options
    return open_images(source, decoding, **arguments)  # type: ignore[arg-type]


def pixels(images: DecodedImages) -> np.ndarray:
    return images.pixels_RCHW[images.rows_N]


def slowly(folder: Path, names: tuple[str, ...], decoding: Decoding = SMALL) -> np.ndarray:
    return np.stack([decode((folder / name).read_bytes(), decoding) for name in names])


def folders_of_images(cache: Path) -> list[Path]:
    return [folder for folder in cache.iterdir() if folder.name != "sources"]


def test_the_cache_holds_every_picture_decoded(photos: Path) -> None:
    images = opened(photos)
    assert isinstance(images.pixels_RCHW, np.memmap)
    assert images.pixels_RCHW.shape == (7, 3, 8, 8)
    assert np.array_equal(pixels(images), slowly(photos, images.listing.names))
    assert images.bad == ()
    assert [folder.name for folder in folders_of_images(photos.parent / "cache")] == [images.key]


def test_a_second_start_decodes_nothing(photos: Path, decoded: list[int]) -> None:
    first = opened(photos)
    assert len(decoded) == 7
    again = opened(photos)
    assert len(decoded) == 7
    assert again.key == first.key
    assert np.array_equal(pixels(again), pixels(first))


def test_the_same_images_elsewhere_are_the_same(photos: Path, decoded: list[int]) -> None:
    first = opened(photos)
    moved = photos.rename(photos.parent / "other name")
    assert opened(moved).key == first.key
    assert len(decoded) == 7


def test_any_change_is_noticed(photos: Path, decoded: list[int]) -> None:
    keys = {opened(photos).key}
    write(photos / "a" / "0.png", seed=50)
    changed = opened(photos)
    assert np.array_equal(pixels(changed), slowly(photos, changed.listing.names))
    keys.add(changed.key)
    write(photos / "b" / "new.png", seed=51)
    keys.add(opened(photos).key)
    (photos / "b" / "new.png").rename(photos / "b" / "renamed.png")
    keys.add(opened(photos).key)
    (photos / "b" / "renamed.png").rename(photos / "a" / "renamed.png")
    keys.add(opened(photos).key)
    (photos / "a" / "renamed.png").unlink()
    keys.add(opened(photos, Decoding(9)).key)
    keys.add(opened(photos, Decoding(8, grey=True)).key)
    assert len(keys) == 7
    before = len(decoded)
    assert opened(photos).key == changed.key
    assert len(decoded) == before, "what was there before is still there"


def test_grey_images_have_one_channel(photos: Path) -> None:
    images = opened(photos, Decoding(8, grey=True))
    assert images.pixels_RCHW.shape == (7, 1, 8, 8)
    assert np.array_equal(pixels(images), slowly(photos, images.listing.names, Decoding(8, grey=True)))


def test_the_version_of_the_decoding_is_part_of_the_key(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = opened(photos).key
    monkeypatch.setattr("counterpoint.images.stored.VERSION", 2)
    assert opened(photos).key != key


def test_many_pieces_by_several_processes_are_the_same_bytes(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(photos / "a" / "9.png", b"no picture")
    monkeypatch.setattr(building, "_MOST_AT_ONCE", 3)
    heard = Heard()
    alone = opened(photos, skip_bad=True, watcher=heard)
    assert [count for count in heard.counts if count[0] == "decoding images"] == [
        ("decoding images", done, 8) for done in (3, 6, 8)
    ]
    together = opened(photos, cache=tmp_path / "second", skip_bad=True, workers=2)
    assert together.key == alone.key
    assert together.bad == alone.bad
    one, two = (folder / alone.key for folder in (tmp_path / "cache", tmp_path / "second"))
    for name in ("pixels.npy", "rows.npy", "about.json"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def spoil(photos: Path) -> list[str]:
    """Add what is no image in four ways."""
    write(photos / "a" / "0a text.png", b"no picture at all")
    write(photos / "a" / "1cut.png", saved(colours(40, 40))[:900])
    write(photos / "b" / "2bomb.png", bomb())
    write(photos / "loose.png")
    return ["loose.png", "a/0a text.png", "a/1cut.png", "b/2bomb.png"]


def test_bad_files_are_listed_with_their_reasons(photos: Path) -> None:
    spoil(photos)
    with pytest.raises(InputError) as refused:
        opened(photos)
    message = str(refused.value).splitlines()
    assert message[0] == f"4 files of {photos} cannot be used:"
    assert message[1] == "  loose.png: lies in no class folder"
    assert message[2].startswith("  a/0a text.png: is no picture of a known format")
    assert message[3].startswith("  a/1cut.png: is damaged or cut short (image file is truncated")
    assert message[4].startswith("  b/2bomb.png: claims more than 178,956,970 pixels")
    assert message[5] == "repair or remove them, or leave them out with --skip-bad (skip_bad=True)"


def test_of_many_bad_files_ten_are_listed(photos: Path) -> None:
    for number in range(12):
        write(photos / "a" / f"{number}.txt", b"text %d" % number)
    with pytest.raises(InputError, match=r"^12 files of(.|\n)*… and 2 more\n") as refused:
        opened(photos)
    assert len(str(refused.value).splitlines()) == 1 + 10 + 1 + 1


def test_bad_files_can_be_left_out(photos: Path) -> None:
    good = opened(photos, cache=photos.parent / "before")
    names = spoil(photos)
    images = opened(photos, skip_bad=True)
    assert [name for name, _ in images.bad] == names
    assert images.listing.names == good.listing.names
    assert images.listing.labels == good.listing.labels
    assert np.array_equal(pixels(images), pixels(good))
    assert images.key == good.key, "the images that are used are the same"


def test_bad_files_are_decoded_once_and_removing_them_decodes_nothing(photos: Path, decoded: list[int]) -> None:
    names = spoil(photos)
    with pytest.raises(InputError, match="4 files"):
        opened(photos)
    assert len(decoded) == 10
    with pytest.raises(InputError, match="4 files"):
        opened(photos)
    skipped = opened(photos, skip_bad=True)
    for name in names:
        (photos / name).unlink()
    cleaned = opened(photos)
    assert len(decoded) == 10
    assert cleaned.key == skipped.key
    assert np.array_equal(pixels(cleaned), slowly(photos, cleaned.listing.names))


def test_a_class_that_loses_all_its_images_is_refused(photos: Path) -> None:
    write(photos / "c" / "only.png", b"no picture")
    with pytest.raises(InputError, match=r"the class 'c' of .* has no images"):
        opened(photos, skip_bad=True)


def test_a_source_without_any_image_is_refused(tmp_path: Path) -> None:
    for label in "ab":
        write(tmp_path / "photos" / label / "text.png", label.encode())
    for _ in range(2):
        with pytest.raises(InputError, match="2 files of"):
            opened(tmp_path / "photos")
        with pytest.raises(InputError, match="has no images"):
            opened(tmp_path / "photos", skip_bad=True)


def test_twins_in_two_parts_are_refused_before_anything_is_decoded(tmp_path: Path, decoded: list[int]) -> None:
    folder = tmp_path / "photos"
    write_classes(folder / "train", {"a": 2, "b": 2})
    shutil.copytree(folder / "train" / "b", folder / "test" / "b")
    with pytest.raises(InputError, match=r"train/b/0.png in train and test/b/0.png in test .*\(2 such pairs in all\)"):
        opened(folder)
    assert decoded == []


def test_twin_rows_of_an_archive_are_refused(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    images[3] = images[1]
    np.savez(tmp_path / "set.npz", images=images, labels=[0, 1, 0, 1], part=["train", "train", "val", "test"])
    with pytest.raises(InputError, match=r"set.npz\[1\] in train and set.npz\[3\] in test"):
        opened(tmp_path / "set.npz")


@pytest.mark.parametrize(("channels", "workers"), [((), 1), ((1,), 1), ((3,), 1), ((4,), 1), ((3,), 2)], ids=str)
def test_an_archive_is_decoded_like_pictures(
    tmp_path: Path, channels: tuple[int, ...], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_MOST_AT_ONCE", 2)
    rows = np.random.default_rng(0).integers(0, 256, (5, 10, 12, *channels), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", images=rows, labels=[0, 1, 0, 1, 1])
    images = opened(tmp_path / "set.npz", workers=workers)
    pictures = [row[..., 0] if channels == (1,) else row for row in rows]
    assert np.array_equal(pixels(images), np.stack([decode(saved(picture), SMALL) for picture in pictures]))


def test_an_archive_of_strips_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", images=np.zeros((2, 1, 90_000), np.uint8), labels=[0, 1])
    with pytest.raises(InputError, match=r"2 files of(.|\n)*\[0\]: would be resized to"):
        opened(tmp_path / "set.npz", Decoding(224))


def test_a_file_that_changes_between_hash_and_decoding_ends_the_work(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = building._check_space

    def change(*arguments: object) -> None:
        write(photos / "b" / "1.png", seed=90)
        check(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(building, "_check_space", change)
        with pytest.raises(InputError, match=r"1.png of .* changed while it was read; run this again"):
            opened(photos)
    assert folders_of_images(photos.parent / "cache") == []
    images = opened(photos)
    assert np.array_equal(pixels(images), slowly(photos, images.listing.names))


def test_too_little_room_on_the_disk_is_said_before_the_work(
    photos: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(photos)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match=r"the decoded images take 0.0 MB and .* has 0.0 MB left; make room"):
        opened(photos)
    assert decoded == []


def test_a_cache_that_cannot_be_written_is_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the cache .*file cannot be used .*; name another folder"):
        opened(photos, cache=write(tmp_path / "file"))


def test_a_damaged_cache_is_refused(photos: Path) -> None:
    folder = photos.parent / "cache" / opened(photos).key
    with (folder / "pixels.npy").open("r+b") as file:
        file.truncate(500)
    with pytest.raises(InputError, match=r"pixels.npy is missing or damaged .*; remove the folder"):
        opened(photos)
    shutil.rmtree(folder)
    assert np.array_equal(pixels(opened(photos)), slowly(photos, opened(photos).listing.names))


def test_what_is_read_cannot_change_the_file(photos: Path) -> None:
    opened(photos).pixels_RCHW[:] = 7
    assert np.array_equal(pixels(opened(photos)), slowly(photos, opened(photos).listing.names))


def test_workers_must_be_some(photos: Path) -> None:
    with pytest.raises(InputError, match="workers is 0"):
        opened(photos, workers=0)


KILLED = """
import os, signal, sys
from pathlib import Path
from counterpoint.images import Decoding, building, open_images
from counterpoint.watching import Watcher

class Killer(Watcher):
    def counted(self, work, done, total):
        if work == "decoding images":
            os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    building._MOST_AT_ONCE = 2
    open_images(Path("photos"), Decoding(8), cache=Path("cache"), workers=int(sys.argv[1]), watcher=Killer())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_leaves_nothing_that_is_read(photos: Path, workers: int, decoded: list[int]) -> None:
    script = photos.parent / "killed.py"
    script.write_text(KILLED)
    # The workers hold the pipe open: it ends when they have ended too, although nobody told them to.
    killed = subprocess.run(
        [sys.executable, script, str(workers)], cwd=photos.parent, stdout=subprocess.PIPE, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL
    cache = photos.parent / "cache"
    assert folders_of_images(cache) == []
    (left,) = cache.glob("sources/*/building")
    images = opened(photos)
    assert not left.exists()
    assert len(decoded) == 7
    assert np.array_equal(pixels(images), slowly(photos, images.listing.names))


def test_an_interrupted_build_starts_anew(photos: Path, decoded: list[int]) -> None:
    class Interrupter(Heard):
        def counted(self, work: str, done: int, total: int) -> None:
            super().counted(work, done, total)
            if work == "decoding images":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opened(photos, watcher=Interrupter())
    assert folders_of_images(photos.parent / "cache") == []
    assert np.array_equal(pixels(opened(photos)), slowly(photos, opened(photos).listing.names))
    assert len(decoded) == 14


WAITING = """
import sys
from pathlib import Path
from counterpoint.images import Decoding, building, open_images
from counterpoint.watching import Watcher

class Slow(Watcher):
    def counted(self, work, done, total):
        if work == "decoding images":
            print("decoding", flush=True)
            sys.stdin.readline()
    def noted(self, text):
        print(text, flush=True)

images = open_images(Path("photos"), Decoding(8), cache=Path("cache"), workers=1, watcher=Slow())
print(images.key, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_of_two_processes_one_waits_and_decodes_nothing(photos: Path) -> None:
    command = [sys.executable, "-c", WAITING]
    with (
        subprocess.Popen(command, cwd=photos.parent, stdin=-1, stdout=-1, text=True) as first,
        subprocess.Popen(command, cwd=photos.parent, stdin=-1, stdout=-1, text=True) as second,
    ):
        lines = {process: process.stdout.readline() for process in (first, second) if process.stdout}
        (worker,) = (process for process, line in lines.items() if line == "decoding\n")
        (waiter,) = (process for process, line in lines.items() if "waiting for another process that reads" in line)
        assert waiter.poll() is None
        key, _ = worker.communicate("go on\n", timeout=60)
        assert waiter.communicate(timeout=60)[0] == key, "it said no word of decoding"
    assert key.strip() == opened(photos).key


def test_names_of_any_kind_can_be_used(tmp_path: Path) -> None:
    photos = write_classes(tmp_path / "фото [1]", {"猫": 1, "a b": 1})
    if sys.platform == "linux":
        write(Path(os.fsdecode(os.fsencode(photos / "猫") + b"/\xff.png")), seed=9)
        write(Path(os.fsdecode(os.fsencode(photos / "猫") + b"/\xfe.png")), b"bad")
    images = opened(photos, skip_bad=True)
    assert np.array_equal(pixels(images), slowly(photos, images.listing.names))
    assert images.listing.classes == ("a b", "猫")
    if sys.platform == "linux":
        assert images.bad == (BadFile("猫/\udcfe.png", images.bad[0].reason),)
        with pytest.raises(InputError) as refused:
            opened(photos)
        assert "猫/\\udcfe.png: is no picture" in str(refused.value)
