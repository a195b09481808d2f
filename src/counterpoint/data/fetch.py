"""Which data sets are on disk, and the download of those that are not.

A download is resumed after an interruption, checked, and put in place only when it is complete.
"""

import hashlib
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
from counterpoint.data.cifar import CIFAR10, CIFAR100, Cifar, find_cifar, load_cifar
from counterpoint.errors import InputError, unknown
from counterpoint.storage.files import check_folder_path
from counterpoint.storage.folders import download_command

Received = Callable[[int, int | None], None]
"""Called with how many bytes have arrived, and how many there are in all (None where the server does not say)."""

_TRIES = 4
_TIMEOUT_S = 30
_CHUNK = 1 << 18


@dataclass(frozen=True)
class Archive:
    """An official download: a tar with one folder in it."""

    url: str
    md5: str
    folder: str


@dataclass(frozen=True)
class Status:
    """What was found of one data set; `problem` is None when it is complete."""

    name: str
    where: str
    size: int
    problem: str | None


_TORONTO, _ZENODO = "https://www.cs.toronto.edu/~kriz", "https://zenodo.org/records"
ARCHIVES = {
    "cifar10": Archive(f"{_TORONTO}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", CIFAR10.binary_folder),
    "cifar100": Archive(
        f"{_TORONTO}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", CIFAR100.binary_folder
    ),
    "cifar10-c": Archive(f"{_ZENODO}/2535967/files/CIFAR-10-C.tar", "56bf5dcef84df0e2308c6dcbcbbd8499", "CIFAR-10-C"),
    "cifar100-c": Archive(
        f"{_ZENODO}/3555552/files/CIFAR-100-C.tar", "11f0ed0f1191edbf9fa23466ae6021d3", "CIFAR-100-C"
    ),
}

_CORRUPTED_SHAPE = (50_000, 32, 32, 3)


def check_download(name: str, archives: Mapping[str, Archive] = ARCHIVES) -> None:
    """Raise unless there is something to download under this name."""
    if name == "digits":
        raise InputError("the digits come with scikit-learn; there is nothing to download")
    if name not in archives:
        raise unknown("download", name, archives)


def fetch(
    name: str,
    root: Path,
    progress: Received = lambda *_: None,
    *,
    archives: Mapping[str, Archive] = ARCHIVES,
    back_off_s: float = 1.0,
) -> Path:
    """Download a data set into `root` and return its folder; nothing is done when the folder is already there."""
    check_download(name, archives)
    archive = archives[name]
    target = root / archive.folder
    if target.exists():
        return target
    check_folder_path(root)
    part = root / f"{archive.url.rpartition('/')[2]}.part"
    try:
        root.mkdir(parents=True, exist_ok=True)
        _download(archive.url, part, progress, back_off_s)
        _check_md5(part, archive)
        _unpack(part, archive, root)
    except (OSError, HTTPException, tarfile.TarError) as error:
        raise InputError(
            f"{name} could not be fetched from {archive.url} ({str(error).strip('<>')}); run the command again to "
            f"continue, or download and unpack it by hand so that {target} is there"
        ) from error
    part.unlink()
    return target


def _download(url: str, part: Path, progress: Received, back_off_s: float) -> None:
    """Try again as long as the file grows. Give up after a few tries in a row without a new byte."""
    failures, furthest = 0, _size(part)
    while True:
        try:
            return _go_on(url, part, progress)
        except (OSError, HTTPException) as error:
            if _size(part) > furthest:
                failures, furthest = 0, _size(part)
            failures += 1
            if failures == _TRIES or _is_final(error):
                raise
        time.sleep(back_off_s * 2 ** (failures - 1))


def _go_on(url: str, part: Path, progress: Received) -> None:
    """Ask for the bytes that `part` does not have yet. If the server sends all bytes, the file starts over."""
    start = _size(part)
    headers = {"User-Agent": "counterpoint"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S)
    except HTTPError as error:
        error.close()
        if error.code == 416:  # the server has no more bytes; the checksum tells whether ours are right
            return
        raise
    with response, part.open("ab" if response.status == 206 else "wb") as file:
        done, length = file.tell(), response.headers["Content-Length"]
        total = done + int(length) if length else None
        while chunk := response.read1(_CHUNK):
            done += file.write(chunk)
            progress(done, total)
    if total is not None and done < total:
        raise ConnectionError(f"the connection closed after {done:,} of {total:,} bytes")


def _is_final(error: Exception) -> bool:
    """Whether the server refused for good, as opposed to being busy or away."""
    return isinstance(error, HTTPError) and 400 <= error.code < 500 and error.code not in (408, 429)


def _check_md5(part: Path, archive: Archive) -> None:
    with part.open("rb") as file:
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if md5 != archive.md5:
        part.unlink()
        raise InputError(
            f"the file from {archive.url} has the md5 {md5}, but it must have {archive.md5}; it was removed: run the "
            "command again to download it"
        )


def _unpack(part: Path, archive: Archive, root: Path) -> None:
    with tempfile.TemporaryDirectory(dir=root, prefix=".unpacking-") as temporary:
        with tarfile.open(part) as tar:
            tar.extractall(temporary, filter="data")
        (Path(temporary) / archive.folder).rename(root / archive.folder)


def status(root: Path) -> list[Status]:
    """What `root` holds of each data set, every CIFAR file read and checked."""
    return [
        *(_cifar_status(cifar, root) for cifar in (CIFAR10, CIFAR100)),
        *(_corrupted_status(name, root) for name in ("cifar10-c", "cifar100-c")),
        Status("digits", "scikit-learn", 0, None),
    ]


def _cifar_status(cifar: Cifar, root: Path) -> Status:
    try:
        folder = find_cifar(cifar, root)
    except InputError:
        return _missing(cifar.name, root)
    try:
        load_cifar(cifar, root)
        problem = None
    except InputError as error:
        problem = str(error)
    return Status(cifar.name, str(folder), _size(folder), problem)


def _corrupted_status(name: str, root: Path) -> Status:
    folder = root / ARCHIVES[name].folder
    if not folder.is_dir():
        return _missing(name, root)
    shapes = dict.fromkeys(CORRUPTIONS + EXTRA_CORRUPTIONS, _CORRUPTED_SHAPE) | {"labels": _CORRUPTED_SHAPE[:1]}
    problems = (_array_problem(folder / f"{file}.npy", shape) for file, shape in shapes.items())
    return Status(name, str(folder), _size(folder), next(filter(None, problems), None))


def _missing(name: str, root: Path) -> Status:
    return Status(name, "not found", 0, f"not there; `{download_command(name, root)}` downloads it")


def _array_problem(path: Path, shape: tuple[int, ...]) -> str | None:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except (OSError, ValueError, EOFError, OverflowError) as error:
        return f"{path} cannot be read ({error}); remove its folder and download it again"
    return None if found == shape else f"{path} has shape {found} and must have {shape}"


def _size(path: Path) -> int:
    """The bytes of a file or of the files in a folder; 0 where there is none."""
    if path.is_dir():
        return sum(_size(inside) for inside in path.iterdir())
    return path.stat().st_size if path.exists() else 0
