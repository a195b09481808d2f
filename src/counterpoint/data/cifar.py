"""CIFAR-10 and CIFAR-100 from their official files, the binary or the python version.

Both versions hold the same images, so one SHA-256 of what was decoded (the labels, then the pixels) checks either. The
hashes below were taken from python files whose md5 is the published one.
"""

import hashlib
import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch

from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.errors import InputError
from counterpoint.storage.files import nearest_folder
from counterpoint.storage.folders import download_command

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


class Batch(NamedTuple):
    """One official file."""

    file: str  # its name in the python version; the binary version adds .bin
    images: int
    sha256: str  # of the decoded labels and pixels


@dataclass(frozen=True)
class Cifar:
    """What the official files of one data set look like."""

    name: str
    binary_folder: str
    python_folder: str
    label_bytes: int  # before each image of the binary version; the last one is the label
    label_key: bytes  # in the python version
    classes: tuple[str, ...]
    train: tuple[Batch, ...]
    test: tuple[Batch, ...]

    @property
    def folders(self) -> tuple[str, str]:
        """Where the files may be. The binary version comes first, since it needs no unpickling."""
        return self.binary_folder, self.python_folder


class Decoded(NamedTuple):
    images_NCHW: np.ndarray
    labels_N: np.ndarray


CIFAR10 = Cifar(
    name="cifar10",
    binary_folder="cifar-10-batches-bin",
    python_folder="cifar-10-batches-py",
    label_bytes=1,
    label_key=b"labels",
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    train=(
        Batch("data_batch_1", 10_000, "0d577ad18df43575d9a4604e9439c975ed0458e62fedce31bf342584486095b4"),
        Batch("data_batch_2", 10_000, "119fc42c082d4eb9075f4be2ad8ead34f73523fd07bfa1e6eb72e4c0a9f4e234"),
        Batch("data_batch_3", 10_000, "3920cc990b250c9f5858706bfdfa42e5916a3fb9c650076857c0eaeeb9ba22e9"),
        Batch("data_batch_4", 10_000, "63d48826df4236930951424843f0f1f3e5fd6af00eecd863db9d08cc1c9cafb9"),
        Batch("data_batch_5", 10_000, "ab505a476be12050fcd964679bf4f83ef3382722a31273e2d1c592fd7e312d11"),
    ),
    test=(Batch("test_batch", 10_000, "ecc0a6ddb5cb58330ce4f06c1825ec8c68baeade5baaacbb3cbdf8f385599213"),),
)

CIFAR100 = Cifar(
    name="cifar100",
    binary_folder="cifar-100-binary",
    python_folder="cifar-100-python",
    label_bytes=2,
    label_key=b"fine_labels",
    classes=tuple(
        """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
        castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
        elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
        lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
        pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
        shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
        television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm""".split()
    ),
    train=(Batch("train", 50_000, "298473eb8d70f2276412eef44efdfe11402f20f208c13ac37998e70377537205"),),
    test=(Batch("test", 10_000, "27d6227ddcb0f8c25f95e33561b0c0de971cd9443f001c3e0077b94ac57d9aa1"),),
)


def load_cifar(cifar: Cifar, root: Path) -> DataSet:
    """The data set from the binary version's folder in `root` or, where there is none, from the python version's."""
    folder = find_cifar(cifar, root)
    try:
        train, test = ([_read_checked(cifar, folder, batch) for batch in part] for part in (cifar.train, cifar.test))
    except InputError as error:
        again = f"remove the folder {folder} and run `{download_command(cifar.name, root)}` to download it again"
        raise InputError(f"{error}; {again}") from error
    return DataSet(cifar.name, _join(train, cifar.classes), _join(test, cifar.classes))


def find_cifar(cifar: Cifar, root: Path) -> Path:
    for folder in cifar.folders:
        if (root / folder).is_dir():
            return root / folder
    nearest_folder(root)
    raise InputError(
        f"{cifar.name} is not in {root}, which has neither {cifar.binary_folder} nor {cifar.python_folder}; run "
        f"`{download_command(cifar.name, root)}` to download it, or name the folder that holds it with --data, "
        "root=… in Python, or COUNTERPOINT_DATA"
    )


def read_binary(path: Path, images: int, label_bytes: int) -> Decoded:
    """A file of the binary version: for each image its label bytes, then red, green and blue, each row by row."""
    size, expected = path.stat().st_size, images * (label_bytes + _PIXELS)
    if size != expected:
        raise InputError(f"{path} has {size:,} bytes and must have {expected:,}")
    rows = np.fromfile(path, np.uint8).reshape(images, -1)
    return Decoded(rows[:, label_bytes:].reshape(-1, *_SHAPE), rows[:, label_bytes - 1])


def read_python(path: Path, images: int, label_key: bytes) -> Decoded:
    """A file of the python version: a pickled dict with an array of bytes and a list of labels."""
    content = _unpickle(path)
    match content.get(b"data"):
        case _NumpyObject(state=(_, _, _, _, bytes(pixels))) if len(pixels) == images * _PIXELS:
            images_NCHW = np.frombuffer(pixels, np.uint8).reshape(-1, *_SHAPE)
        case _:
            raise InputError(f"{path} does not hold {images:,} images of {_PIXELS:,} bytes under 'data'")
    labels = content.get(label_key)
    if not _are_labels(labels) or len(labels) != images:
        raise InputError(f"{path} does not hold {images:,} labels under {label_key.decode()!r}")
    return Decoded(images_NCHW, np.array(labels, np.uint8))


def _are_labels(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 256 for n in value)


class _NumpyObject:
    """Stands in for every numpy object of a pickle and keeps its state, so that a file can run no code of numpy."""

    state: object = None

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Admits the three globals of the official files, which Python 2 wrote with numpy 1, and no other."""

    admitted = frozenset({("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")})

    def find_class(self, module: str, name: str) -> type[_NumpyObject]:
        if (module, name) not in self.admitted:
            raise InputError(f"asks for {module}.{name}, which no official file does: it may be malicious")
        return _NumpyObject


def _unpickle(path: Path) -> dict[Any, Any]:
    pickled = io.BytesIO(path.read_bytes())
    try:
        content = _Unpickler(pickled, encoding="bytes").load()
    except InputError as error:
        raise InputError(f"{path} {error}") from error
    except Exception as error:  # a broken pickle can raise almost anything
        raise InputError(f"{path} is truncated or is not a pickle ({error})") from error
    return content if isinstance(content, dict) else {}


def _read_checked(cifar: Cifar, folder: Path, batch: Batch) -> Decoded:
    binary = folder.name == cifar.binary_folder
    path = folder / (f"{batch.file}.bin" if binary else batch.file)
    try:
        if binary:
            decoded = read_binary(path, batch.images, cifar.label_bytes)
        else:
            decoded = read_python(path, batch.images, cifar.label_key)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    if fingerprint(decoded) != batch.sha256:
        raise InputError(f"{path} has been altered: its images or labels are not the published ones")
    return decoded


def fingerprint(decoded: Decoded) -> str:
    """The SHA-256 of the labels, one byte per label, followed by the pixels in the order of the official files."""
    digest = hashlib.sha256(np.ascontiguousarray(decoded.labels_N).data)
    digest.update(np.ascontiguousarray(decoded.images_NCHW).data)
    return digest.hexdigest()


def _join(batches: list[Decoded], classes: tuple[str, ...]) -> ImageSet:
    images_NCHW = np.concatenate([batch.images_NCHW for batch in batches])
    labels_N = np.concatenate([batch.labels_N for batch in batches]).astype(np.int64)
    return ImageSet(torch.from_numpy(images_NCHW), torch.from_numpy(labels_N), classes)
