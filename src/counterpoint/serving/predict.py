"""Predict picture files with a finished run: class and confidence, of the ensemble and of each member."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from counterpoint.devices import choose_device
from counterpoint.errors import InputError, whole_number
from counterpoint.evaluation.members import Members, fold_members
from counterpoint.images import Decoding, decode
from counterpoint.images.listing import is_hidden
from counterpoint.metrics.checks import Floats
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import Correction, find_correction
from counterpoint.serving.network import corrected_probs, load_corrected
from counterpoint.threads import in_threads, read_ahead

_FILES_AT_ONCE = 64


@dataclass(frozen=True)
class Opinion:
    """A predicted class and its confidence.

    >>> from counterpoint.serving.predict import Opinion
    >>> Opinion("cat", 0.9).confidence
    0.9
    """

    name: str
    confidence: float


@dataclass(frozen=True)
class Prediction:
    """The prediction of the ensemble for a picture, and those of its members.

    >>> from counterpoint.serving.predict import Opinion, Prediction
    >>> Prediction("new.png", Opinion("cat", 0.6), members=(Opinion("cat", 0.8), Opinion("dog", 0.6)), sure=None).agree
    False
    """

    path: str | None
    """None for pixels that have no name."""
    ensemble: Opinion
    members: tuple[Opinion, ...]
    sure: bool | None
    """Whether the ensemble's confidence is at least `not_sure_below`. None where that was not given."""
    top: tuple[Opinion, ...] = ()
    """The ensemble's likeliest classes, as many as were asked for."""

    @property
    def agree(self) -> bool:
        """Whether all members name one class."""
        return len({member.name for member in self.members}) == 1


@dataclass(frozen=True)
class Unread:
    """A file that gives no picture, and why.

    >>> from counterpoint.serving.predict import Unread
    >>> Unread("notes.txt", "is no picture of a known format").path
    'notes.txt'
    """

    path: str | None
    error: str


class Predictor:
    """A run's members, ready for pictures. `load_predictor` makes one from a run's folder.

    Pictures are decoded as squares of the size that the run was trained with. `classes` are the names of the classes,
    `correction` says how the confidences are corrected. Use it in one thread at a time.

    >>> from pathlib import Path
    >>> import torch
    >>> from counterpoint import Experiment, load_predictor
    >>> from counterpoint.data import load
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> predictor = load_predictor("runs/mine", device="cpu")
    >>> probs_NK, members_MNK = predictor.probabilities(torch.zeros(5, 1, 32, 32, dtype=torch.uint8))
    >>> probs_NK.shape, members_MNK.shape, len(predictor.classes)
    ((5, 10), (2, 5, 10), 10)
    """

    def __init__(
        self, run: Run, correction: Correction, *, device: str = "auto", trusted_model: str | None = None, top: int = 0
    ) -> None:
        description, where = run.description, choose_device(device)
        if description.height != description.width or description.channels not in (1, 3):
            raise InputError(
                f"{run.folder} was trained on images of {description.channels} × {description.height} × "
                f"{description.width}; `predict` needs a run on square images with 1 or 3 channels"
            )
        model = load_corrected(run, correction, where, trusted_model)
        self.weights = fingerprint(model.state_dict())
        self.classes, self.correction = description.classes, correction
        self.top = min(whole_number("top", top), len(description.classes))
        self.decoding = Decoding(description.height, grey=description.channels == 1)
        self._members: Members = fold_members(
            model, where, normalisation=description.normalisation, compiled=False, most_images=_FILES_AT_ONCE
        )

    def predict(self, paths: Path | str | Iterable[Path | str]) -> Iterator[Prediction | Unread]:
        """One answer for each file, in order; of a folder, for each file in it. `probabilities` takes images in memory.

        While one batch is in the network, the next one is decoded.
        """
        named = [paths] if isinstance(paths, str | Path) else paths
        for batch, pictures in read_ahead(self._read, _batches(find_files(map(_as_path, named)))):
            yield from self._answer(batch, pictures)

    def probabilities(self, images_NCHW: torch.Tensor | np.ndarray) -> tuple[Floats, Floats]:
        """The ensemble's probabilities (N, K) of images in memory, as `predict` has them, and the members' (M, N, K).

        The images are uint8, from 0 to 255, and have the channels and the size that the run was trained with.
        """
        channels, size = 1 if self.decoding.grey else 3, self.decoding.size
        images = _as_tensor(images_NCHW, (channels, size, size))
        return corrected_probs(self._members, self.correction.recalibration, images)

    def answer(self, picture_CHW: np.ndarray, path: str | None = None) -> Prediction:
        """What the run says of pixels as `decode` gives them: the same, to the last bit, as of a file by itself."""
        ((ensemble_K, members_MK),) = self._probs(np.stack([picture_CHW]))
        return self._prediction(path, ensemble_K, members_MK)

    def _read(self, paths: Sequence[Path]) -> list[np.ndarray | str]:
        return list(in_threads(self._read_one, paths))

    def _read_one(self, path: Path) -> np.ndarray | str:
        """The pixels, or why there are none."""
        try:
            return decode(path.read_bytes(), self.decoding)
        except InputError as error:
            return str(error)
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"

    def _answer(self, paths: Sequence[Path], pictures: Sequence[np.ndarray | str]) -> Iterator[Prediction | Unread]:
        readable = [picture for picture in pictures if not isinstance(picture, str)]
        probs = iter(self._probs(np.stack(readable)) if readable else ())
        for path, picture in zip(paths, pictures, strict=True):
            if isinstance(picture, str):
                yield Unread(str(path), picture)
            else:
                yield self._prediction(str(path), *next(probs))

    def _probs(self, images_NCHW: np.ndarray) -> Iterator[tuple[Floats, Floats]]:
        """For each image the ensemble's probabilities (K) and the members' (M, K)."""
        ensemble_NK, members_MNK = self.probabilities(images_NCHW)
        return zip(ensemble_NK, members_MNK.swapaxes(0, 1), strict=True)

    def _prediction(self, path: str | None, ensemble_K: Floats, members_MK: Floats) -> Prediction:
        (ensemble,), limit = self._likeliest(ensemble_K, 1), self.correction.sure_from
        return Prediction(
            path,
            ensemble,
            members=tuple(self._likeliest(member_K, 1)[0] for member_K in members_MK),
            sure=None if limit is None else ensemble.confidence >= limit,
            top=self._likeliest(ensemble_K, self.top),
        )

    def _likeliest(self, probs_K: Floats, count: int) -> tuple[Opinion, ...]:
        """So many classes; of classes that are as likely as each other, the earlier one comes first."""
        ordered = (-probs_K).argsort(kind="stable")[:count]
        return tuple(Opinion(self.classes[best], float(probs_K[best])) for best in ordered)


def load_predictor(
    folder: Run | Path | str,
    *,
    not_sure_below: str | float | None = None,
    top: int = 0,
    device: str = "auto",
    trusted_model: str | None = None,
) -> Predictor:
    """What `counterpoint predict` predicts with, from a finished run, or its folder.

    The confidences are corrected with the recalibration that was best on validation images, if the run was
    recalibrated. A prediction is `sure` from the confidence `not_sure_below` on; "threshold" stands for the one that
    `counterpoint threshold` found. `top` asks for so many of the likeliest classes. If the run's network is a function
    of your own, name it as `trusted_model="mymodule:make_model"`.

    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from counterpoint import Experiment, load_predictor
    >>> from counterpoint.data import load
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> predictor = load_predictor("runs/mine", device="cpu")
    >>> Image.new("L", (40, 30)).save("new.png")
    >>> (prediction,) = predictor.predict("new.png")
    >>> prediction.ensemble.name in predictor.classes, 0 < prediction.ensemble.confidence < 1
    (True, True)
    """
    run = load_run(folder)
    correction = find_correction(run.folder, not_sure_below)
    return Predictor(run, correction, device=device, trusted_model=trusted_model, top=top)


def _as_path(path: object) -> Path:
    if not isinstance(path, str | Path):
        raise InputError(
            f"a picture is named with a {type(path).__name__}; name it with the path of its file or of a folder: "
            "`predict` reads files, and `probabilities` takes images in memory"
        )
    return Path(path)


def _as_tensor(images: object, shape_CHW: tuple[int, int, int]) -> torch.Tensor:
    """The images on the CPU. They must be uint8 of this shape, and at least one."""
    needed = f"they must be uint8 of shape (N, {', '.join(map(str, shape_CHW))}), with N of 1 or more"
    if not isinstance(images, torch.Tensor | np.ndarray):
        raise InputError(f"the images are a {type(images).__name__}, and no tensor or NumPy array; {needed}")
    found = str(images.dtype).removeprefix("torch.")
    if found != "uint8" or images.shape[1:] != shape_CHW or len(images) == 0:
        raise InputError(f"the images are {found} of shape {tuple(images.shape)}; {needed}")
    if isinstance(images, torch.Tensor):
        return images.cpu()
    # torch takes no array that runs backwards, and warns of one that cannot be written to, such as a Pillow image's.
    return torch.from_numpy(np.require(images, requirements=["C", "W"]))


def _batches(paths: Iterable[Path]) -> Iterator[list[Path]]:
    waiting = iter(paths)
    while batch := list(itertools.islice(waiting, _FILES_AT_ONCE)):
        yield batch


def find_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that are named, and all files in the folders that are named, without hidden ones."""
    for path in paths:
        if path.is_dir():
            files = (file for file in path.rglob("*") if file.is_file())
            yield from sorted(file for file in files if not any(map(is_hidden, file.relative_to(path).parts)))
        else:
            yield path
