import dataclasses
import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from counterpoint.data.cifar import CIFAR10, CIFAR100, Batch, Cifar, load_cifar
from counterpoint.errors import InputError

PUBLISHED_MD5 = {
    "cifar-10-batches-py/data_batch_1": "c99cafc152244af753f735de768cd75f",
    "cifar-10-batches-py/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "cifar-10-batches-py/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "cifar-10-batches-py/data_batch_4": "634d18415352ddfa80567beed471001a",
    "cifar-10-batches-py/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
    "cifar-100-python/train": "16019d7e3df5f24257cddd939b257f8d",
    "cifar-100-python/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
}
VERSIONS = [(cifar, version) for cifar in (CIFAR10, CIFAR100) for version in ("binary", "python")]
EACH_VERSION = pytest.mark.parametrize(
    ("cifar", "version"), VERSIONS, ids=[f"{cifar.name}-{version}" for cifar, version in VERSIONS]
)


class Rows(NamedTuple):
    """The images and labels of one file."""

    pixels: list[bytes]
    labels: list[int]


def draw_rows(cifar: Cifar, images: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    pixels = [rng.integers(0, 256, 3072, dtype=np.uint8).tobytes() for _ in range(images)]
    return Rows(pixels, rng.integers(0, len(cifar.classes), images).tolist())


def binary_file(cifar: Cifar, rows: Rows) -> bytes:
    coarse = b"\x13" if cifar is CIFAR100 else b""
    return b"".join(coarse + bytes([label]) + pixels for pixels, label in zip(*rows, strict=True))


def python_file(cifar: Cifar, rows: Rows) -> bytes:
    """A pickle as Python 2 wrote it, opcode by opcode: Python 3 cannot write its byte strings (U, T)."""
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR(K\x01(M"
        + len(rows.pixels).to_bytes(2, "little")
        + b"M\x00\x0ctcnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbI00\n"
        + (b"T" + (3072 * len(rows.pixels)).to_bytes(4, "little") + b"".join(rows.pixels))
        + b"tb"
    )
    return python_dict({cifar.label_key: int_list(rows.labels), b"data": array, b"batch_label": b"U\x01x"})


def int_list(values: list[int]) -> bytes:
    return b"(" + b"".join(b"J" + value.to_bytes(4, "little", signed=True) for value in values) + b"l"


def python_dict(pickled_values: dict[bytes, bytes]) -> bytes:
    items = b"".join(b"U" + bytes([len(key)]) + key + value for key, value in pickled_values.items())
    return b"\x80\x02}(" + items + b"u."


def fingerprint(rows: Rows) -> str:
    return hashlib.sha256(bytes(rows.labels) + b"".join(rows.pixels)).hexdigest()


class Small(NamedTuple):
    """A small data set in an official format, the folder with its files and what they hold."""

    cifar: Cifar
    root: Path
    folder: Path
    train: Rows
    test: Rows

    def file(self, stem: str) -> Path:
        return self.folder / (f"{stem}.bin" if self.folder.name == self.cifar.binary_folder else stem)


@pytest.fixture
def make_small(tmp_path: Path) -> Callable[[Cifar, str], Small]:
    def make(cifar: Cifar, version: str) -> Small:
        first, second, test = draw_rows(cifar, 7, 1), draw_rows(cifar, 5, 2), draw_rows(cifar, 4, 3)
        small = dataclasses.replace(
            cifar,
            train=(Batch("data_batch_1", 7, fingerprint(first)), Batch("data_batch_2", 5, fingerprint(second))),
            test=(Batch("test_batch", 4, fingerprint(test)),),
        )
        folder = tmp_path / (cifar.binary_folder if version == "binary" else cifar.python_folder)
        folder.mkdir()
        train = Rows(first.pixels + second.pixels, first.labels + second.labels)
        made = Small(small, tmp_path, folder, train, test)
        for stem, rows in {"data_batch_1": first, "data_batch_2": second, "test_batch": test}.items():
            made.file(stem).write_bytes((binary_file if version == "binary" else python_file)(cifar, rows))
        return made

    return make


@EACH_VERSION
def test_small_official_files_are_read(make_small: Callable[[Cifar, str], Small], cifar: Cifar, version: str) -> None:
    small = make_small(cifar, version)
    loaded = load_cifar(small.cifar, small.root)
    assert loaded.name == cifar.name
    for part, rows in ((loaded.train, small.train), (loaded.test, small.test)):
        assert part.labels_N.tolist() == rows.labels
        assert part.classes == cifar.classes
        for image_CHW, pixels in zip(part.images_NCHW, rows.pixels, strict=True):
            assert image_CHW[1, 2, 5] == pixels[1024 + 2 * 32 + 5]
            assert image_CHW.numpy().tobytes() == pixels


def test_the_binary_version_is_preferred(make_small: Callable[[Cifar, str], Small]) -> None:
    small = make_small(CIFAR10, "binary")
    (small.root / CIFAR10.python_folder).mkdir()
    assert len(load_cifar(small.cifar, small.root).train) == 12


@EACH_VERSION
def test_a_truncated_file_is_named(make_small: Callable[[Cifar, str], Small], cifar: Cifar, version: str) -> None:
    small = make_small(cifar, version)
    file = small.file("data_batch_2")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        InputError, match=f"data_batch_2.*`counterpoint data {cifar.name} --data {small.root}`"
    ) as caught:
        load_cifar(small.cifar, small.root)
    assert ("has 15" if version == "binary" else "truncated") in str(caught.value)


@EACH_VERSION
@pytest.mark.parametrize("what", ["pixel", "label"])
def test_an_altered_file_is_named(
    make_small: Callable[[Cifar, str], Small], cifar: Cifar, version: str, what: str
) -> None:
    small = make_small(cifar, version)
    pixels, labels = list(small.test.pixels), list(small.test.labels)
    if what == "pixel":
        pixels[3] = bytes([pixels[3][0] ^ 1]) + pixels[3][1:]
    else:
        labels[3] ^= 1
    altered = (binary_file if version == "binary" else python_file)(cifar, Rows(pixels, labels))
    small.file("test_batch").write_bytes(altered)
    with pytest.raises(InputError, match=r"test_batch.* altered.*remove the folder .*`counterpoint data"):
        load_cifar(small.cifar, small.root)


@EACH_VERSION
def test_a_missing_file_is_named(make_small: Callable[[Cifar, str], Small], cifar: Cifar, version: str) -> None:
    small = make_small(cifar, version)
    small.file("data_batch_1").unlink()
    with pytest.raises(InputError, match=r"data_batch_1.* cannot be read \(No such file.*`counterpoint data"):
        load_cifar(small.cifar, small.root)


def test_a_missing_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cifar100 is not in .*cifar-100-binary nor cifar-100-python; run"):
        load_cifar(CIFAR100, tmp_path)


class Attack:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_code_is_refused(make_small: Callable[[Cifar, str], Small]) -> None:
    small = make_small(CIFAR10, "python")
    harm = small.root / "harm"
    small.file("test_batch").write_bytes(pickle.dumps({"data": Attack(harm)}, protocol=2))
    with pytest.raises(InputError, match=r"test_batch asks for (posix|nt)\.mkdir, .* malicious"):
        load_cifar(small.cifar, small.root)
    assert not harm.exists()
    pickle.loads(small.file("test_batch").read_bytes())
    assert harm.exists(), "the attack must be one that works on an ordinary unpickler"


@pytest.mark.parametrize("name", ["__builtin__.eval", "numpy.load", "numpy.core.multiarray.scalar", "_codecs.encode"])
def test_no_other_global_is_admitted(make_small: Callable[[Cifar, str], Small], name: str) -> None:
    small = make_small(CIFAR10, "python")
    module, _, attribute = name.rpartition(".")
    small.file("test_batch").write_bytes(python_dict({b"data": f"c{module}\n{attribute}\n".encode()}))
    with pytest.raises(InputError, match=f"asks for {name}, "):
        load_cifar(small.cifar, small.root)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02(l.", "does not hold 4 images of 3,072 bytes under 'data'"),
        (python_dict({b"data": b"U\x03abc"}), "does not hold 4 images"),
        (python_file(CIFAR10, draw_rows(CIFAR10, 3, 3)), "does not hold 4 images"),
        (python_file(CIFAR10, draw_rows(CIFAR10, 4, 3)._replace(labels=[1, 2, 3])), "4 labels under 'labels'"),
        (python_file(CIFAR10, draw_rows(CIFAR10, 4, 3)._replace(labels=[1, 2, 3, -1])), "4 labels under 'labels'"),
        (python_file(CIFAR10, draw_rows(CIFAR10, 4, 3)._replace(labels=[1, 2, 3, 256])), "4 labels under 'labels'"),
        (python_file(CIFAR100, draw_rows(CIFAR100, 4, 3)), "4 labels under 'labels'"),
        (b"", "truncated or is not a pickle"),
        (b"<html>not found</html>", "truncated or is not a pickle"),
    ],
    ids=["a list", "a string", "an image less", "a label less", "label -1", "label 256", "other key", "empty", "html"],
)
def test_a_pickle_of_something_else_is_refused(
    make_small: Callable[[Cifar, str], Small], content: bytes, message: str
) -> None:
    small = make_small(CIFAR10, "python")
    small.file("test_batch").write_bytes(content)
    with pytest.raises(InputError, match=f"test_batch.* {message}"):
        load_cifar(small.cifar, small.root)


@pytest.mark.parametrize("cifar", [CIFAR10, CIFAR100], ids=lambda cifar: cifar.name)
def test_the_real_versions_are_equal_and_complete(real_data: Path, tmp_path: Path, cifar: Cifar) -> None:
    for folder in (cifar.binary_folder, cifar.python_folder):
        if not (real_data / folder).is_dir():
            pytest.skip(f"{real_data} has no {folder}")
    (tmp_path / cifar.python_folder).symlink_to(real_data / cifar.python_folder)
    binary, python = load_cifar(cifar, real_data), load_cifar(cifar, tmp_path)
    for from_binary, from_python, size in ((binary.train, python.train, 50_000), (binary.test, python.test, 10_000)):
        assert torch.equal(from_binary.images_NCHW, from_python.images_NCHW)
        assert torch.equal(from_binary.labels_N, from_python.labels_N)
        counts = torch.bincount(from_binary.labels_N, minlength=len(cifar.classes))
        assert counts.tolist() == [size // len(cifar.classes)] * len(cifar.classes)


@pytest.mark.parametrize("file", PUBLISHED_MD5)
def test_the_hashes_were_taken_from_the_published_files(real_data: Path, file: str) -> None:
    """With this, a data set that loads is the published one: its hashes come from files with the published md5."""
    if not (real_data / file).exists():
        pytest.skip(f"{real_data} has no {file}")
    assert hashlib.md5((real_data / file).read_bytes()).hexdigest() == PUBLISHED_MD5[file]


def test_cifar100_has_its_hundred_names_in_order() -> None:
    assert len(CIFAR100.classes) == 100
    assert list(CIFAR100.classes) == sorted(CIFAR100.classes)
