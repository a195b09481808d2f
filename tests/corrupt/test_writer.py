import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from counterpoint.corrupt import VERSION, corrupt, frost_source, read_about, read_cell, write_corrupted_set, writer
from counterpoint.corrupt.pixels import Images
from counterpoint.errors import InputError, StoppedError

NAMES = ("gaussian_noise", "frost", "contrast")
LABELS = np.array([3, 1, 4, 1, 5, 9], np.uint8)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four images per piece, so that six images are two pieces; the size is private, for it must never matter."""
    monkeypatch.setattr(writer, "_BYTES_PER_PIECE", 4 * 32 * 32 * 3)


def write(images: Images, folder: Path, **options: object) -> None:
    arguments = {"dataset": "made up", "names": NAMES, "seed": 5, "workers": 1} | options
    write_corrupted_set(images, LABELS, folder, **arguments)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("labels", [[3, 1, 4], torch.tensor([3, 1, 4])])
def test_labels_may_be_a_list_or_a_tensor(labels: Any, tmp_path: Path, made_up: Images) -> None:
    write_corrupted_set(made_up[:3], labels, tmp_path, dataset="made up", names=["contrast"])
    assert np.load(tmp_path / "labels.npy").tolist() == [3, 1, 4] * 5


def test_the_layout_is_the_official_one(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path)
    assert set(contents(tmp_path)) == {".lock", "about.json", "labels.npy", *(f"{name}.npy" for name in NAMES)}
    assert np.array_equal(np.load(tmp_path / "labels.npy"), np.concatenate([LABELS] * 5))
    for name in NAMES:
        whole = np.load(tmp_path / f"{name}.npy")
        assert whole.shape == (30, 32, 32, 3)
        assert whole.dtype == np.uint8
        for severity in range(1, 6):
            expected = corrupt(made_up, name, severity, seed=5)
            assert np.array_equal(whole[6 * (severity - 1) : 6 * severity], expected)
            assert np.array_equal(read_cell(tmp_path, name, severity, 6), expected)


def test_about_says_where_the_set_comes_from(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path, seed=np.int64(5))
    about = read_about(tmp_path)
    assert about is not None
    assert (about.dataset, about.seed, about.version) == ("made up", 5, VERSION)
    assert about.frost == frost_source()
    assert about.constants == "cifar-c"
    assert about.images_md5 == hashlib.md5(made_up.tobytes()).hexdigest()
    files = contents(tmp_path)
    assert about.finished == {name: hashlib.md5(files[f"{name}.npy"]).hexdigest() for name in NAMES}


def test_a_set_is_made_with_the_constants_it_names(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path, names=("contrast",), constants="imagenet-c")
    about = read_about(tmp_path)
    assert about is not None
    assert about.constants == "imagenet-c"
    expected = corrupt(made_up, "contrast", 4, constants="imagenet-c")
    assert np.array_equal(read_cell(tmp_path, "contrast", 4, 6), expected)
    with pytest.raises(InputError, match="constants 'imagenet-c', not 'cifar-c'"):
        write(made_up, tmp_path, names=("contrast",))


def test_a_small_set_starts_no_processes(tmp_path: Path, made_up: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    @contextmanager
    def in_this_process(workers: int) -> Iterator[Callable[..., Any]]:
        started.append(workers)
        yield map

    monkeypatch.setattr("counterpoint.corrupt.writer.parallel_map", in_this_process)
    monkeypatch.setattr("counterpoint.processes.usable_cpus", lambda: 7)
    write(made_up, tmp_path / "small", workers=None)
    write(made_up, tmp_path / "as asked for", workers=3)
    monkeypatch.setattr("counterpoint.corrupt.writer._SMALL_SET", 0)
    write(made_up, tmp_path / "large", workers=None)
    assert started == [1, 3, 7]


def test_any_number_of_workers_writes_the_same_bytes(tmp_path: Path, made_up: Images) -> None:
    threads = os.environ.get("OMP_NUM_THREADS")
    write(made_up, tmp_path / "one")
    write(made_up, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert os.environ.get("OMP_NUM_THREADS") == threads


def test_progress_counts_to_the_end(tmp_path: Path, made_up: Images) -> None:
    calls: list[tuple[str, int, int]] = []
    write(made_up, tmp_path, names=NAMES[:2], progress=lambda *call: calls.append(call))
    assert [done for _, done, _ in calls] == [6 * cell + piece for cell in range(10) for piece in (4, 6)]
    assert {total for _, _, total in calls} == {60}
    assert [name for name, _, _ in calls] == ["gaussian_noise"] * 10 + ["frost"] * 10


def test_a_stop_keeps_the_corruptions_that_are_done(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path / "whole")
    answers = iter([False, True])
    with pytest.raises(StoppedError):
        write(made_up, tmp_path / "stopped", should_stop=lambda: next(answers))
    done = tmp_path / "stopped" / f"{NAMES[0]}.npy"
    assert sorted(path.name for path in done.parent.glob("*.npy")) == [done.name, "labels.npy"]
    before = done.stat().st_mtime_ns
    write(made_up, tmp_path / "stopped")
    assert done.stat().st_mtime_ns == before
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_an_interrupted_run_is_continued(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path / "straight")

    def interrupt(name: str, done: int, _total: int) -> None:
        if name == "frost" and done > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(made_up, tmp_path / "broken", progress=interrupt)
    assert set(contents(tmp_path / "broken")) == {".lock", "about.json", "labels.npy", "gaussian_noise.npy"}
    kept = (tmp_path / "broken" / "gaussian_noise.npy").stat().st_mtime_ns
    names: set[str] = set()
    write(made_up, tmp_path / "broken", progress=lambda name, _done, _total: names.add(name))
    assert names == {"frost", "contrast"}
    assert (tmp_path / "broken" / "gaussian_noise.npy").stat().st_mtime_ns == kept
    assert contents(tmp_path / "broken") == contents(tmp_path / "straight")


KILLED = """
import os, signal, sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
import numpy as np
from counterpoint.corrupt import write_corrupted_set

images, labels = np.load("images.npy"), np.array([3, 1, 4, 1, 5, 9], np.uint8)
def kill(name, *_):
    if name == "frost":
        os.kill(os.getpid(), signal.SIGKILL)
write_corrupted_set(images, labels, Path("set"), dataset="made up", names=("gaussian_noise", "frost", "contrast"),
                    seed=5, workers=1, progress=kill)
"""


def test_what_a_killed_run_left_behind_is_removed(tmp_path: Path, made_up: Images) -> None:
    np.save(tmp_path / "images.npy", made_up)
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (tmp_path / "set").glob(".frost.npy.*.part")
    (tmp_path / "set" / ".notes.part").write_text("not ours")
    write(made_up, tmp_path / "set")
    assert not left.exists()
    assert (tmp_path / "set" / ".notes.part").read_text() == "not ours"
    write(made_up, tmp_path / "straight")
    assert contents(tmp_path / "set") == contents(tmp_path / "straight") | {".notes.part": b"not ours"}


def test_two_at_once_leave_each_other_alone(tmp_path: Path, made_up: Images) -> None:
    def write_meanwhile(name: str, done: int, _total: int) -> None:
        if (name, done) == ("gaussian_noise", 4):
            write(made_up, tmp_path / "shared")

    write(made_up, tmp_path / "shared", progress=write_meanwhile)
    write(made_up, tmp_path / "alone")
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")


def test_a_file_that_was_removed_or_never_declared_finished_is_made_again(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path)
    before = contents(tmp_path)
    (tmp_path / "frost.npy").unlink()
    write(made_up, tmp_path)
    assert contents(tmp_path) == before


def test_another_seed_or_other_images_are_refused(tmp_path: Path, made_up: Images) -> None:
    write(made_up, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(InputError, match="holds a set with seed 5, not 6"):
        write(made_up, tmp_path, seed=6)
    with pytest.raises(InputError, match="holds a set with images_md5"):
        write(made_up[::-1], tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ("fogg",)}, "did you mean 'fog'"),
        ({"workers": 0}, "workers is 0; it must be 1 or more"),
        ({"seed": -1}, "seed is -1"),
        ({"constants": "cifar"}, r"unknown constants 'cifar'.*known: cifar-c, imagenet-c"),
    ],
)
def test_wrong_input_leaves_nothing_behind(
    tmp_path: Path, made_up: Images, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write(made_up, tmp_path / "set", **options)
    with pytest.raises(
        InputError, match=r"labels have the shape \(6,\); there must be one label for each of the 5 images"
    ):
        write(made_up[:5], tmp_path / "set")
    assert not (tmp_path / "set").exists()
