"""The members' logits of a finished run, kept in its folder: whatever a metric needs can be computed from them again.

logits/about.json says what they were made with. A cell's file appears whole or not at all, so that an evaluation that
was interrupted goes on where it stopped; another checkpoint, set or precision starts over.
"""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from counterpoint.augment.standard import normalise, to_unit
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.errors import InputError
from counterpoint.files import read_json, write_atomically, write_json
from counterpoint.models import build_model
from counterpoint.nn import Ensemble
from counterpoint.runs import Run
from counterpoint.shifted import CELLS, ShiftedSet
from counterpoint.steps import split_training_images, steps_an_epoch

_ROWS_AT_ONCE = {"cuda": 2048, "cpu": 256}  # ResNeXt-29 holds some megabytes an image

Watcher = Callable[[int, int], None]
"""Told how many cells of how many are done."""


def collect_logits(
    run: Run,
    data: DataSet,
    shifted: ShiftedSet,
    *,
    device: torch.device,
    cell_images: int | None = None,
    watcher: Watcher = lambda *_: None,
) -> None:
    """Run the network on the clean set (saved as float32) and on the first `cell_images` of each cell (float16)."""
    part, clean = evaluation_images(run, data)
    used = min(cell_images or shifted.images, shifted.images)
    model, step = load_model(run, data, device)
    about = {
        "step": step,
        "clean": {"dataset": data.name, "part": part, "images": len(clean)},
        "corrupted": {"source": shifted.source, "images": used},
        "precision": "fp32 activations, TF32 convolutions" if device.type == "cuda" else "fp32",
    }
    folder = _claim(run.folder / "logits", about)
    _save(folder / "labels.npy", clean.labels_N.numpy())
    _save(folder / "cell-labels.npy", data.test.labels_N[:used].numpy())
    if not (folder / "clean.npy").exists():
        _save(folder / "clean.npy", member_logits(model, clean.images_NCHW, device))
    for done, (name, severity) in enumerate(CELLS):
        watcher(done, len(CELLS))
        path = folder / f"{name}-{severity}.npy"
        if not path.exists():
            images_NHWC = torch.from_numpy(np.array(shifted.read(name, severity)[:used]))
            logits_MNK = member_logits(model, images_NHWC.permute(0, 3, 1, 2), device)
            _save(path, logits_MNK.astype(np.float16))
    watcher(len(CELLS), len(CELLS))


def evaluation_images(run: Run, data: DataSet) -> tuple[str, ImageSet]:
    """The held-out training images of a run on the split, the test set of a run on everything (SPEC D14)."""
    if run.experiment.train_on == "split":
        return "validation", split_training_images(data, run.experiment)[1].images
    return "test", data.test


def load_model(run: Run, data: DataSet, device: torch.device) -> tuple[Ensemble, int]:
    """The model of a finished run in evaluation mode, and the steps it was trained for."""
    trained, _ = split_training_images(data, run.experiment)
    total = run.experiment.epochs * steps_an_epoch(run.experiment, len(trained))
    checkpoint = run.latest()
    if checkpoint is None or checkpoint.step < total:
        done = 0 if checkpoint is None else checkpoint.step
        raise InputError(
            f"{run.folder} is not finished: {done} of {total} steps are done; go on with `{run.record['command']}`"
        )
    model = build_model(run.experiment, len(data.train.classes), data.train.images_NCHW.shape[1], run.seed)
    prefix = "model."
    model.load_state_dict({k.removeprefix(prefix): v for k, v in checkpoint.tensors.items() if k.startswith(prefix)})
    return model.to(device).eval(), total


@torch.inference_mode()
def member_logits(model: Ensemble, images_NCHW: Tensor, device: torch.device) -> np.ndarray:
    """Every member's fp32 logits (M, N, K) of uint8 images; on a GPU the convolutions may use TF32."""
    torch.backends.cudnn.allow_tf32 = True

    def logits(batch_BCHW: Tensor) -> Tensor:
        views = normalise(to_unit(batch_BCHW.to(device)))
        return model(views.expand(model.num_members, *views.shape))

    at_once = max(1, _ROWS_AT_ONCE[device.type] // model.num_members)
    return torch.cat([logits(batch) for batch in images_NCHW.split(at_once)], dim=1).cpu().numpy()


def read_about(run: Run) -> Any:
    """What the logits were made with."""
    path = run.folder / "logits" / "about.json"
    if not path.exists():
        raise InputError(f"{run.folder} holds no logits; run `counterpoint evaluate {run.folder}` without --recompute")
    return read_json(path)


def read_logits(run: Run, name: str) -> np.ndarray:
    """Saved logits (M, N, K): "clean", or a cell such as "fog-3"; also "labels" and "cell-labels"."""
    path = run.folder / "logits" / f"{name}.npy"
    try:
        array: np.ndarray = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{path} is missing or damaged ({error}); `counterpoint evaluate {run.folder}` makes what is missing"
        ) from None
    return array


def _claim(folder: Path, about: dict[str, Any]) -> Path:
    """The folder, emptied unless what it holds was made with the same things."""
    path = folder / "about.json"
    if not path.exists() or read_json(path) != about:
        shutil.rmtree(folder, ignore_errors=True)
        write_json(path, about)
    return folder


def _save(path: Path, array: np.ndarray) -> None:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_atomically(path, content.getvalue())
