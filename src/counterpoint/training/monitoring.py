"""What is watched while a network trains: the loss, its progress, figures on validation images, TensorBoard.

Nothing here has an effect on training, but a training that diverges is ended.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from counterpoint.augment.standard import to_unit
from counterpoint.config import Experiment
from counterpoint.data import LabelledImages
from counterpoint.devices import at_once
from counterpoint.errors import InputError
from counterpoint.metrics import ece, image_scores
from counterpoint.nn import Ensemble
from counterpoint.normalisation import Normalisation
from counterpoint.parallel.world import AgreedError
from counterpoint.records.progress import DIVERGED, log_entry
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import Run
from counterpoint.training.step import TrainState
from counterpoint.watching import SILENT, TrainingProgress, ValidationFigures, Watcher

_STEPS_BETWEEN_LOOKS = {"cpu": 1, "cuda": 100}
"""How many steps pass between two looks at the loss: reading it makes the CPU wait for the GPU."""
_SECONDS_BETWEEN_REPORTS = 1.0  # at the least: reading the loss empties the GPU's queue
_VIEWS_AT_ONCE = {"cuda": 2048, "cpu": 256}
_SCALARS = ("loss", "error", "learning_rate")
_HEALTH = ("below_eps", "dead_scales", "spread_r", "spread_s")


def check_loss(run: Run, state: TrainState) -> None:
    """To be called after each step: raise if the loss is no longer finite."""
    if state.step % _STEPS_BETWEEN_LOOKS[state.sums.device.type] == 0:
        _check_mean_loss(run, state)


def check_finite(run: Run, state: TrainState) -> None:
    """To be called before a checkpoint: raise if it would hold a network that has diverged.

    The last update can overflow weights although its loss was finite.
    """
    _check_mean_loss(run, state)
    floats = {name: tensor for name, tensor in state.model.state_dict().items() if tensor.is_floating_point()}
    # All of them are read in one transfer, so that the CPU waits for a GPU only once.
    are_finite = torch.stack([tensor.isfinite().all() for tensor in floats.values()]).tolist()
    for name, is_finite in zip(floats, are_finite, strict=True):
        if not is_finite:
            raise _diverged(run, state.step, f"{name} is not finite")


def _check_mean_loss(run: Run, state: TrainState) -> None:
    loss, _ = state.means()
    if not math.isfinite(loss):
        raise _diverged(run, state.step, f"the loss is {loss}")


def _diverged(run: Run, step: int, what: str) -> AgreedError:
    """Loss and weights are the same in all processes, so that all of them raise it."""
    run.append_log(event=DIVERGED, step=step, problem=what)
    before = latest_checkpoint(run.folder)
    kept = f"The checkpoint of step {before.step} is kept" if before else "There is no checkpoint from before"
    return AgreedError(
        f"training diverged: after step {step} {what}. {kept}; lower learning_rate (now "
        f"{run.experiment.learning_rate}) in a new run, in another folder (--out)"
    )


@dataclass
class Throttled:
    """To be called before the first step, after each step, and when an epoch has been validated.

    It tells the watcher how far training is: at each epoch's end, and otherwise no more often than once a second.
    """

    watcher: Watcher
    experiment: Experiment
    state: TrainState
    total: int
    per_epoch: int
    images: int
    """In an epoch."""
    validated: ValidationFigures | None
    """After the last epoch."""
    _first_step: int = field(init=False)
    _last: float = -math.inf

    def __post_init__(self) -> None:
        self._first_step = self.state.step

    def __call__(self, seconds: float) -> None:
        """`seconds` have been spent in this process."""
        step = self.state.step
        in_epoch = step % self.per_epoch and step < self.total
        if self.watcher is SILENT or (in_epoch and seconds - self._last < _SECONDS_BETWEEN_REPORTS):
            return
        self._last = seconds
        loss, error = self.state.means()
        seen = self._images_seen(step) - self._images_seen(self._first_step)
        self.watcher.trained(
            TrainingProgress(
                experiment=self.experiment.name,
                step=step,
                total_steps=self.total,
                epoch=max(1, math.ceil(step / self.per_epoch)),
                epochs=math.ceil(self.total / self.per_epoch),
                loss=loss,
                error=error,
                images_per_second=seen / max(seconds, 1e-9),
                validated=self.validated,
            )
        )

    def _images_seen(self, step: int) -> int:
        """In all epochs up to this step. The last batch of an epoch is smaller where the batch does not divide it."""
        epochs, steps = divmod(step, self.per_epoch)
        return epochs * self.images + steps * self.experiment.batch_size


def validate(
    model: Ensemble, images: LabelledImages, normalisation: Normalisation, device: torch.device
) -> ValidationFigures:
    """The figures of the images as they are, in the network's evaluation mode; it is then left in the mode it was in.

    On a GPU it computes in bf16, as in training.
    """
    on_gpu, probs = device.type == "cuda", []
    places = torch.arange(len(images), device=images.labels_N.device)
    views = _VIEWS_AT_ONCE[device.type] if on_gpu else at_once(_VIEWS_AT_ONCE["cpu"], *images.image_shape[1:])
    for _, images_BCHW in images.batches(places.split(max(1, views // model.num_members)), pinned=on_gpu):
        inputs_BCHW = normalisation.apply(to_unit(images_BCHW.to(device, non_blocking=True)))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
            probs.append(model.predict_members(inputs_BCHW).double().mean(dim=0))
    probs_NK = torch.cat(probs)
    scores = image_scores((probs_NK / probs_NK.sum(dim=1, keepdim=True)).cpu().numpy(), images.labels_N.cpu().numpy())
    return ValidationFigures(
        error=float((~scores.correct).mean()),
        nll=float(scores.nll.mean()),
        ece=ece(scores.confidence, scores.correct),
    )


def logged_validation(log: Sequence[Mapping[str, Any]]) -> ValidationFigures | None:
    """The figures of the last epoch in the log; None where that was not validated."""
    epochs = [record for record in log if record["event"] == "epoch"]
    if not epochs or "validation" not in epochs[-1]:
        return None
    return log_entry(ValidationFigures, epochs[-1], "validation")


def open_tensorboard(folder: Path, step: int, wanted: bool) -> Callable[[Mapping[str, Any]], None]:
    """A function that writes an epoch's log record for TensorBoard, if that is `wanted`.

    What an interrupted run wrote after `step` is hidden.
    """
    if not wanted:
        return lambda _: None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "tensorboard=True (--tensorboard) needs the tensorboard package: pip install 'counterpoint[tensorboard]'"
        ) from None
    writer = SummaryWriter(folder / "tensorboard", purge_step=step or None)

    def write(record: Mapping[str, Any]) -> None:
        for name in _SCALARS:
            writer.add_scalar(f"train/{name}", record[name], record["step"])
        for name, value in record.get("validation", {}).items():
            writer.add_scalar(f"validation/{name}", value, record["step"])
        for name in _HEALTH:
            if (value := record["health"][name]) is not None:  # a plain network has no r and s
                writer.add_scalar(f"health/{name}", value, record["step"])
        writer.flush()

    return write
