"""A training that diverges ends with the step and the last good checkpoint, and the log says so."""

import math

import torch

from counterpoint.parallel.world import AgreedError
from counterpoint.records.log import DIVERGED
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import Run
from counterpoint.training.step import TrainState

_STEPS_BETWEEN = {"cpu": 1, "cuda": 100}
"""How many steps pass between two looks at the loss: reading it makes the CPU wait for the GPU."""


def check_loss(run: Run, state: TrainState) -> None:
    """To be called after each step: raise if the loss is no longer finite."""
    if state.step % _STEPS_BETWEEN[state.sums.device.type] == 0:
        loss, _ = state.means()
        if not math.isfinite(loss):
            raise _diverged(run, state.step, f"the loss is {loss}")


def check_finite(run: Run, state: TrainState) -> None:
    """To be called before a checkpoint: raise if it would hold a network that has diverged.

    The last update can overflow weights although its loss was finite.
    """
    loss, _ = state.means()
    if not math.isfinite(loss):
        raise _diverged(run, state.step, f"the loss is {loss}")
    floats = {name: tensor for name, tensor in state.model.state_dict().items() if tensor.is_floating_point()}
    # All of them are read in one transfer, so that the CPU waits for a GPU only once.
    are_finite = torch.stack([tensor.isfinite().all() for tensor in floats.values()]).tolist()
    for name, is_finite in zip(floats, are_finite, strict=True):
        if not is_finite:
            raise _diverged(run, state.step, f"{name} is not finite")


def _diverged(run: Run, step: int, what: str) -> AgreedError:
    """Loss and weights are the same in all processes, so that all of them raise it."""
    run.append_log(event=DIVERGED, step=step, problem=what)
    before = latest_checkpoint(run.folder)
    kept = f"The checkpoint of step {before.step} is kept" if before else "There is no checkpoint from before"
    return AgreedError(
        f"training diverged: after step {step} {what}. {kept}; lower learning_rate (now "
        f"{run.experiment.learning_rate}) in a new run, with another --out"
    )
