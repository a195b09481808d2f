"""A run's checkpoints: safetensors files, written atomically, the last two kept."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.runs.folder import Run, checkpoint_paths
from counterpoint.storage.files import write_atomically

_KEPT = 2
_MODEL = "model."


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on: named tensors, the number of steps done, and the seconds spent so far."""

    tensors: Mapping[str, Tensor]
    step: int
    seconds: float

    @property
    def model_tensors(self) -> dict[str, Tensor]:
        """The network's weights and statistics, by their names in the network."""
        of_model = (name for name in self.tensors if name.startswith(_MODEL))
        return {name.removeprefix(_MODEL): self.tensors[name] for name in of_model}


def save_checkpoint(run_folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, then remove all but the last two."""
    metadata = {"step": str(checkpoint.step), "seconds": repr(checkpoint.seconds)}
    tensors = _apart({name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()})
    path = run_folder / "checkpoints" / f"step-{checkpoint.step:09d}.safetensors"
    write_atomically(path, safetensors.torch.save(tensors, metadata))
    for old in checkpoint_paths(run_folder)[:-_KEPT]:
        old.unlink()


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, none in another's memory, which safetensors refuses. A shared weight has several names."""
    apart: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    return apart


def latest_checkpoint(run_folder: Path) -> Checkpoint | None:
    """The newest checkpoint, if there is one."""
    paths = checkpoint_paths(run_folder)
    if not paths:
        return None
    try:
        with safetensors.safe_open(paths[-1], framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except safetensors.SafetensorError as error:
        raise InputError(
            f"{paths[-1]} is damaged ({error}); remove it to go on from the checkpoint before it"
        ) from None
    return Checkpoint(tensors, int(metadata["step"]), float(metadata["seconds"]))


def finished_checkpoint(run: Run) -> Checkpoint:
    """The last checkpoint of a run, which must be finished."""
    total = run.description.total_steps
    checkpoint = latest_checkpoint(run.folder)
    if checkpoint is None or checkpoint.step < total:
        done = 0 if checkpoint is None else checkpoint.step
        raise InputError(
            f"{run.folder} is not finished: {done} of {total} steps are done; go on with `{run.record['command']}`"
        )
    return checkpoint


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A hash of a network's tensors, which tells whether what was made with them is still theirs."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def sweep_checkpoints(run_folder: Path) -> None:
    """Remove the part of a checkpoint that was left behind by a process killed while writing it."""
    for leftover in (run_folder / "checkpoints").glob(".step-*.tmp"):
        leftover.unlink()
