"""Evaluate a finished run: its members' logits into the run folder, its figures into results.json."""

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import counterpoint
from counterpoint import config
from counterpoint.augment.standard import normalise, to_unit
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.environment import command_line, describe_environment, now
from counterpoint.errors import InputError
from counterpoint.files import write_atomically, write_json
from counterpoint.metrics import summarise
from counterpoint.models import build_model
from counterpoint.nn import Ensemble
from counterpoint.runs import Run
from counterpoint.steps import split_training_images, steps_an_epoch
from counterpoint.train import choose_device

SCHEMA = 1


def evaluate(run: Run, data: DataSet, *, device: str = "auto", batch_size: int = 500) -> dict[str, Any]:
    """The run's figures on its clean set, also written to results.json; the logits stay in logits/clean.npy."""
    started = time.monotonic()
    where = choose_device(device)
    part, images = evaluation_images(run, data)
    model = load_model(run, data, where)
    logits_MNK = member_logits(model, images.to(where), batch_size)
    labels_N = images.labels_N.numpy()
    _save_array(run.folder / "logits" / "clean.npy", logits_MNK)
    _save_array(run.folder / "logits" / "labels.npy", labels_N)
    environment = describe_environment(where)
    results = {
        "schema": SCHEMA,
        "counterpoint": counterpoint.__version__,
        "experiment": run.experiment.name,
        "config": config.to_dict(run.experiment),
        "run": _describe_run(run),
        "evaluation": {
            "command": command_line(),
            "finished": now(),
            "seconds": round(time.monotonic() - started, 3),
            "precision": "fp32 activations, TF32 convolutions" if where.type == "cuda" else "fp32",
            **{key: environment[key] for key in ("device", "commit", "versions")},
        },
        "evaluated_on": {"dataset": run.experiment.dataset, "part": part, "images": len(images)},
        "clean": summarise(softmax(logits_MNK), labels_N),
    }
    write_json(run.folder / "results.json", results)
    return results


def evaluation_images(run: Run, data: DataSet) -> tuple[str, ImageSet]:
    """The held-out training images of a run on the split, the test set of a run on everything (SPEC D14)."""
    if run.experiment.train_on == "split":
        return "validation", split_training_images(data, run.experiment)[1].images
    return "test", data.test


def load_model(run: Run, data: DataSet, device: torch.device) -> Ensemble:
    """The model of a finished run, in evaluation mode."""
    total = _total_steps(run, data)
    checkpoint = run.latest()
    if checkpoint is None or checkpoint.step < total:
        done = 0 if checkpoint is None else checkpoint.step
        raise InputError(
            f"{run.folder} is not finished: {done} of {total} steps are done; "
            f"go on with `counterpoint train {run.experiment.name} --out {run.folder}` and its other options"
        )
    model = build_model(run.experiment, len(data.train.classes), data.train.images_NCHW.shape[1], run.seed)
    prefix = "model."
    model.load_state_dict({k.removeprefix(prefix): v for k, v in checkpoint.tensors.items() if k.startswith(prefix)})
    return model.to(device).eval()


def _total_steps(run: Run, data: DataSet) -> int:
    part, _ = split_training_images(data, run.experiment)
    return run.experiment.epochs * steps_an_epoch(run.experiment, len(part))


@torch.inference_mode()
def member_logits(model: Ensemble, images: ImageSet, batch_size: int) -> np.ndarray:
    """Every member's fp32 logits (M, N, K); on a GPU the convolutions may use TF32."""
    torch.backends.cudnn.allow_tf32 = True

    def logits(batch_BCHW: Tensor) -> Tensor:
        return model(normalise(to_unit(batch_BCHW)).expand(model.num_members, *batch_BCHW.shape))

    return torch.cat([logits(batch).cpu() for batch in images.images_NCHW.split(batch_size)], dim=1).numpy()


def softmax(logits_MNK: np.ndarray) -> np.ndarray:
    """Probabilities in float64."""
    shifted = logits_MNK.astype(np.float64) - logits_MNK.max(axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _save_array(path: Path, array: np.ndarray) -> None:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_atomically(path, content.getvalue())


def _describe_run(run: Run) -> dict[str, Any]:
    epochs = [record for record in run.read_log() if record.get("event") == "epoch"]
    return {
        "seed": run.seed,
        "command": run.record["command"],
        "started": run.record["started"],
        "finished": epochs[-1]["time"],
        "train_seconds": epochs[-1]["seconds"],
        **{key: run.record["environment"][key] for key in ("device", "commit", "versions")},
    }
