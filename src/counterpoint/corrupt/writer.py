"""Writing a whole corrupted set: in parallel, and going on where an interrupted run stopped."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.corrupt.cells import About, claim, file_md5, finished_file, holds, read_cell, working_in, write_about
from counterpoint.corrupt.constants import choose_constants
from counterpoint.corrupt.frost import FrostDir, frost_source
from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import CORRUPTIONS, SEVERITIES, VERSION, check_cell, check_images, corrupt
from counterpoint.errors import InputError, StoppedError, whole_number
from counterpoint.processes import count_workers, parallel_map
from counterpoint.records.images import Constants

Written = Callable[[str, int, int], None]

_BYTES_PER_PIECE = 1 << 21
_SMALL_SET = 1 << 23  # bytes; fewer are corrupted sooner than processes start


def write_corrupted_set(
    images_NHWC: Images,
    labels_N: ArrayLike,
    out_dir: Path | str,
    *,
    dataset: str,
    names: Sequence[str] = CORRUPTIONS,
    seed: int = 0,
    workers: int | None = None,
    constants: Constants | None = None,
    frost_dir: FrostDir | None = None,
    progress: Written = lambda _name, _done, _total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Write the corruptions `names` of the images to `out_dir`, in the official layout; those already there are kept.

    `workers` processes are started, by default one per CPU unless the set is small. A script that calls this therefore
    needs the usual `if __name__ == "__main__":`. With `workers=1` the work is done in this process.

    `constants` are those of `corrupt`; about.json records which they were.

    `progress(name, done, total)` counts the images written, of all corruptions together. `should_stop` is asked before
    each corruption. If it says so, StoppedError is raised, and the same call goes on.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint.corrupt import write_corrupted_set
    >>> images, labels = np.full((2, 8, 8, 3), 128, np.uint8), np.array([0, 1])
    >>> write_corrupted_set(images, labels, Path("mine-C"), dataset="mine", names=["contrast"])
    >>> sorted(path.name for path in Path("mine-C").glob("*.npy"))
    ['contrast.npy', 'labels.npy']
    """
    out_dir, labels_N = Path(out_dir), np.asarray(labels_N)
    _check(images_NHWC, labels_N, names, seed)
    constants = choose_constants(constants, *images_NHWC.shape[1:3])
    is_small = len(names) * len(SEVERITIES) * images_NHWC.nbytes < _SMALL_SET
    workers = count_workers(1 if workers is None and is_small else workers)
    images_md5 = hashlib.md5(np.ascontiguousarray(images_NHWC).data).hexdigest()
    wanted = About(dataset, images_md5, int(seed), VERSION, frost_source(frost_dir), constants=constants)
    about = claim(out_dir, wanted)
    unfinished = [name for name in names if not _is_finished(out_dir, name, len(images_NHWC))]
    done, total = 0, len(unfinished) * len(SEVERITIES) * len(images_NHWC)
    with working_in(out_dir), parallel_map(workers) as in_parallel:
        with finished_file(out_dir / "labels.npy") as temporary, temporary.open("wb") as file:
            np.save(file, np.tile(labels_N, len(SEVERITIES)))
        for name in unfinished:
            if should_stop():
                raise StoppedError
            how = _How(name, int(seed), constants, frost_dir)
            with finished_file(out_dir / f"{name}.npy") as temporary:
                for written in in_parallel(_write_piece, _pieces(images_NHWC, temporary, how)):
                    done += written
                    progress(name, done, total)
                md5 = file_md5(temporary)
            about = replace(about, finished=about.finished | {name: md5})
            write_about(out_dir, about)


def _check(images_NHWC: Images, labels_N: NDArray[np.integer], names: Sequence[str], seed: int) -> None:
    check_images(images_NHWC)
    whole_number("seed", seed)
    for name in names:
        check_cell(name, SEVERITIES[0])
    if labels_N.shape != (len(images_NHWC),):
        raise InputError(
            f"labels have the shape {labels_N.shape}; there must be one label for each of the {len(images_NHWC)} images"
        )


def _is_finished(folder: Path, name: str, n_images: int) -> bool:
    if not holds(folder, [name]):
        return False
    read_cell(folder, name, SEVERITIES[0], n_images)
    return True


@dataclass(frozen=True)
class _How:
    """What all pieces of a file have in common."""

    name: str
    seed: int
    constants: Constants
    frost_dir: FrostDir | None


@dataclass(frozen=True)
class _Piece:
    """Consecutive images of one cell, and where they go in the file."""

    images_NHWC: Images
    path: Path
    how: _How
    severity: int
    start: int
    bytes_from_end: int  # negative; counted from the end, so that the length of the file's header does not matter


def _pieces(images_NHWC: Images, path: Path, how: _How) -> Iterator[_Piece]:
    """Create the file and say what is to be written to it."""
    number, image_bytes = len(images_NHWC), images_NHWC[0].nbytes
    rows = len(SEVERITIES) * number
    np.lib.format.open_memmap(path, "w+", np.uint8, (rows, *images_NHWC.shape[1:]))
    step = max(1, _BYTES_PER_PIECE // image_bytes)
    for severity in SEVERITIES:
        for start in range(0, number, step):
            place = ((severity - 1) * number + start - rows) * image_bytes
            yield _Piece(images_NHWC[start : start + step], path, how, severity, start, place)


def _write_piece(piece: _Piece) -> int:
    how = piece.how
    corrupted = corrupt(
        piece.images_NHWC,
        how.name,
        piece.severity,
        how.seed,
        piece.start,
        constants=how.constants,
        frost_dir=how.frost_dir,
    )
    with piece.path.open("r+b") as file:
        file.seek(piece.bytes_from_end, os.SEEK_END)
        file.write(corrupted.data)
    return len(corrupted)
