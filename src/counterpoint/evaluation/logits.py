"""The members' logits of a finished run, kept in its folder. Every metric can be computed from them again.

logits/about.json says what they were made with. A cell's file is there as a whole or not at all, so that an interrupted
evaluation goes on where it stopped. An evaluation with another checkpoint, corrupted set or precision starts over.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.data.split import split_training_images
from counterpoint.devices import Precision, describe_precision
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import CELLS, CorruptedSet
from counterpoint.evaluation.members import fold_members, load_model, member_logits, read_ahead
from counterpoint.nn import Ensemble
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import read_array, read_arrays, write_array, write_arrays
from counterpoint.storage.files import read_json, write_json
from counterpoint.watching import SILENT, Watcher


def collect_logits(
    run: Run,
    data: DataSet,
    corrupted: CorruptedSet,
    *,
    device: torch.device,
    precision: Precision = "headline",
    clean_images: int | None = None,
    cell_images: int | None = None,
    outside: DataSet | None = None,
    watcher: Watcher = SILENT,
) -> None:
    """Run the network on three kinds of images, and save the logits of those that have none yet.

    They are the first `clean_images` of the clean set (saved as float32), as many test images of the data set `outside`
    (float16), and the first `cell_images` of each cell (float16). The cells come last, so that where all of them are
    there, everything is.
    """
    part, clean = evaluation_images(run, data)
    clean = clean.select(torch.arange(min(clean_images or len(clean), len(clean))))
    used = min(cell_images or corrupted.images, corrupted.images)
    model, step = load_model(run, device)
    members = fold_members(model, device, precision, most_images=max(len(clean), used))
    about = {
        "step": step,
        "weights": _fingerprint(model),
        "clean": {"dataset": data.name, "part": part, "images": len(clean)},
        "corrupted": {"source": corrupted.source, "images": used},
        "precision": describe_precision(precision, device),
    }
    folder = _claim(run.folder / "logits", about)
    write_array(folder / "labels.npy", clean.labels_N.numpy())
    write_array(folder / "cell-labels.npy", data.test.labels_N[:used].numpy())
    write_arrays(folder / "factors.npz", _factors(model))
    if not (folder / "clean.npy").exists():
        write_array(folder / "clean.npy", member_logits(members, clean.images_NCHW))
    if outside is not None and not (folder / "ood.npy").exists():
        write_array(
            folder / "ood.npy", member_logits(members, outside.test.images_NCHW[:clean_images]).astype(np.float16)
        )
    paths = {folder / f"{name}-{severity}.npy": (name, severity) for name, severity in CELLS}
    missing = {path: cell for path, cell in paths.items() if not path.exists()}
    work = f"evaluating {run.experiment.name}"
    images = read_ahead(lambda path: _read_cell(corrupted, *missing[path], used), missing)
    for done, (path, images_NCHW) in enumerate(images, start=len(CELLS) - len(missing)):
        watcher.counted(work, done, len(CELLS))
        write_array(path, member_logits(members, images_NCHW).astype(np.float16))
    watcher.counted(work, len(CELLS), len(CELLS))


def _read_cell(corrupted: CorruptedSet, name: str, severity: int, count: int) -> Tensor:
    images_NHWC = torch.from_numpy(np.array(corrupted.read(name, severity)[:count]))
    return images_NHWC.permute(0, 3, 1, 2)


def evaluation_images(run: Run, data: DataSet) -> tuple[str, ImageSet]:
    """What a run is evaluated on (docs/paper.md, 21).

    For a run on the split these are the held-out training images, for a run on all images the test set.
    """
    if run.experiment.train_on == "split":
        return "validation", split_training_images(data, run.experiment)[1].images
    return "test", data.test


def read_about(run: Run) -> Any:
    """What the logits were made with."""
    path = run.folder / "logits" / "about.json"
    if not path.exists():
        raise InputError(f"{run.folder} holds no logits; run `counterpoint evaluate {run.folder}` without --recompute")
    return read_json(path)


def read_logits(run: Run, name: str) -> np.ndarray:
    """Saved logits (M, N, K): "clean", "ood", or a cell such as "fog-3"; also "labels" and "cell-labels"."""
    return read_array(run.folder / "logits" / f"{name}.npy", _remedy(run))


def read_probs(run: Run, name: str) -> np.ndarray:
    """The probabilities (M, N, K) in float64 of saved logits."""
    return np.asarray(softmax(read_logits(run, name).astype(np.float64), axis=2))


def read_factors(run: Run) -> dict[str, list[np.ndarray]]:
    """The members' "r" and "s": one array (M, C) per layer."""
    factors = read_arrays(run.folder / "logits" / "factors.npz", _remedy(run))
    return {kind: [value for key, value in factors.items() if key.endswith(f".{kind}")] for kind in ("r", "s")}


def has_logits(run: Run, name: str) -> bool:
    return (run.folder / "logits" / f"{name}.npy").exists()


def _remedy(run: Run) -> str:
    return f"remove it if it is there: `counterpoint evaluate {run.folder}` makes what is missing"


def _claim(folder: Path, about: dict[str, Any]) -> Path:
    """The folder, emptied unless its logits were made with what `about` says."""
    path = folder / "about.json"
    if not path.exists() or read_json(path) != about:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(path, about)
    return folder


def _factors(model: Ensemble) -> dict[str, np.ndarray]:
    """Every layer's r and s, from which the members can be compared without the network. A plain network has none."""
    named = model.named_parameters()
    return {name: values.detach().cpu().numpy() for name, values in named if name.endswith((".r", ".s"))}


def _fingerprint(model: Ensemble) -> str:
    """A hash of the weights, which tells whether saved logits belong to them."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
