"""The network of a finished run, and its members' logits at a stated precision.

For speed the members run as plain networks, with r, s and BatchNorm folded into their weights, one after the other. On
a GPU they are compiled, as one graph for all of them. Batches have one size and layout, so that nothing is compiled or
tuned twice.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.augment.standard import to_unit
from counterpoint.data.sets import Pixels
from counterpoint.devices import PRECISIONS, Precision, arithmetic, at_once, moved
from counterpoint.errors import InputError, one_of
from counterpoint.model_names import is_function
from counterpoint.nn import Ensemble
from counterpoint.nn.one_member import fold
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.runs.checkpoints import finished_checkpoint
from counterpoint.runs.folder import Run
from counterpoint.storage.folders import quoted
from counterpoint.storage.provenance import command_name
from counterpoint.training.network import build_described, fitting_weights

# ResNeXt-29 needs some megabytes per image. 1000 divides CIFAR's 10,000 test and 5,000 validation images.
_IMAGES_AT_ONCE = {"cuda": 1000, "cpu": 256}

MemberForward = Callable[[nn.Module, Tensor, Normalisation], Tensor]


@dataclass(frozen=True)
class Members:
    """The members of an ensemble as plain networks on a device, and how to run one on 8-bit images."""

    networks: nn.ModuleList
    forward: MemberForward
    normalisation: Normalisation
    device: torch.device
    precision: Precision
    images_at_once: int
    fixed_size: bool
    """Smaller batches are padded to `images_at_once`."""


def check_trusted(run: Run, trusted_model: str | None) -> None:
    """Raise unless the run's model is the one that the user names.

    A function of the user's own must be named. A name in run.json alone must never make counterpoint run code.
    """
    name = run.experiment.model
    if trusted_model is not None and trusted_model != name:
        raise InputError(
            f"the model of {run.folder} is {name}, not {trusted_model}; give {name} as trusted_model "
            "(--model), or leave it out"
        )
    if trusted_model is None and is_function(name):
        raise InputError(
            f"{run.folder} says that its network is made by {name}, but a run's files alone never make "
            f"counterpoint run code; if you know and trust that function, name it: "
            f"`{command_name()} {quoted(run.folder)} … --model {name}`, or trusted_model={name!r} in Python"
        )


def load_model(run: Run, device: torch.device, trusted_model: str | None = None) -> tuple[Ensemble, int]:
    """The model of a finished run in evaluation mode, and the steps it was trained for. It needs no data set.

    `trusted_model` is the name of the model, if it is a function of the user's own.
    """
    check_trusted(run, trusted_model)
    checkpoint = finished_checkpoint(run)
    model = build_described(run.experiment, run.description, run.seed, restored=True, trusted_model=trusted_model)
    with fitting_weights(run):
        model.load_state_dict(checkpoint.model_tensors)
    return model.to(device).eval(), checkpoint.step


def fold_members(
    model: Ensemble,
    device: torch.device,
    precision: Precision = "headline",
    *,
    normalisation: Normalisation = NORMALISATION,
    compiled: bool | None = None,
    most_images: int | None = None,
) -> Members:
    """The model's members, ready for `member_logits`. `normalisation` is what they were trained with.

    With `compiled` None they are compiled on a GPU only. Batches are never larger than `most_images`, the size of the
    largest set of images.
    """
    one_of("precision", precision, PRECISIONS)
    on_gpu = device.type == "cuda"
    compiled = on_gpu if compiled is None else compiled
    networks = fold(model)
    _keep_linear_in_float32(networks)
    return Members(
        moved(networks, device),
        torch.compile(_logits, dynamic=False) if compiled else _logits,
        normalisation,
        device,
        precision,
        min(_IMAGES_AT_ONCE[device.type], most_images or _IMAGES_AT_ONCE[device.type]),
        fixed_size=compiled or on_gpu,
    )


@torch.no_grad()
def member_logits(members: Members, images: Pixels) -> np.ndarray:
    """Every member's fp32 logits (M, N, K) of uint8 images."""
    logits = []
    with arithmetic(members.precision, members.device):
        size = members.images_at_once if members.fixed_size else at_once(members.images_at_once, *images[:1].shape[2:])
        for start in range(0, len(images), size):
            batch_BCHW = images[start : start + size]
            uploaded = _upload(batch_BCHW, members)
            logits_MBK = torch.stack(
                [members.forward(network, uploaded, members.normalisation) for network in members.networks]
            )
            logits.append(logits_MBK[:, : len(batch_BCHW)])
    return torch.cat(logits, dim=1).cpu().numpy()


def _logits(network: nn.Module, images_BCHW: Tensor, normalisation: Normalisation) -> Tensor:
    logits_BK: Tensor = network(normalisation.apply(to_unit(images_BCHW)))
    return logits_BK.float()


def _upload(batch_BCHW: Tensor, members: Members) -> Tensor:
    """The batch on the device. Where batches have a fixed size, they get that size and a fixed layout."""
    if not members.fixed_size:
        return batch_BCHW.to(members.device)
    on_gpu = members.device.type == "cuda"
    padded_BCHW = torch.empty(
        (members.images_at_once, *batch_BCHW.shape[1:]),
        dtype=batch_BCHW.dtype,
        device=members.device,
        memory_format=torch.channels_last if on_gpu else torch.contiguous_format,
    ).zero_()
    # A copy from pinned memory waits in the GPU's queue, and the CPU goes on.
    padded_BCHW[: len(batch_BCHW)].copy_(batch_BCHW.pin_memory() if on_gpu else batch_BCHW, non_blocking=True)
    return padded_BCHW


class LinearInFloat32(nn.Linear):
    """A layer that autocast leaves in fp32: a logit of 10 in bf16 is a multiple of 1/16."""

    def forward(self, input: Tensor) -> Tensor:
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.float())


def _keep_linear_in_float32(networks: nn.Module) -> None:
    """The layers stay the same objects, since somebody's network may ask a layer for its weight."""
    for layer in networks.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = LinearInFloat32
