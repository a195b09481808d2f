"""A run's checkpoints: safetensors files, written atomically, the last two kept.

Each holds a SHA-256 of its content. One that is damaged is passed over for the one before it.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.records.progress import checkpoint_name, checkpoint_paths, not_finished
from counterpoint.runs.folder import Run
from counterpoint.storage.files import leftovers, write_atomically

_KEPT = 2
_MODEL = "model."


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to continue: named tensors, the number of steps done, and the seconds spent so far."""

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
    tensors = _apart({name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()})
    metadata = {"step": str(checkpoint.step), "seconds": repr(checkpoint.seconds)}
    metadata["sha256"] = _digest(tensors, metadata)
    path = run_folder / "checkpoints" / checkpoint_name(checkpoint.step)
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


def latest_checkpoint(run_folder: Path, warned: Callable[[str], None] = lambda _: None) -> Checkpoint | None:
    """The newest whole checkpoint, if there is one. `warned` hears of newer ones that are damaged.

    If all of them are damaged, that is an error: a training must not start over unnoticed.
    """
    damaged: list[str] = []
    for path in reversed(checkpoint_paths(run_folder)):
        try:
            checkpoint = _read(path)
        except _DamagedError as problem:
            damaged.append(f"{path} is damaged ({problem})")
            continue
        if damaged:
            warned(
                f"{'; '.join(damaged)}; the checkpoint before it, of step {checkpoint.step:,}, is intact and is used"
            )
        return checkpoint
    if damaged:
        folder = run_folder / "checkpoints"
        raise InputError(
            f"{'; '.join(damaged)}, and there is no other checkpoint; put a copy of it there, or remove {folder} to "
            "train from the start"
        )
    return None


def finished_checkpoint(run: Run) -> Checkpoint:
    """The last checkpoint of a run, which must be finished."""
    damaged: list[str] = []
    checkpoint = latest_checkpoint(run.folder, damaged.append)
    total = run.description.total_steps
    if checkpoint is None or checkpoint.step < total:
        done = 0 if checkpoint is None else checkpoint.step
        why = "".join(f"{problem}. " for problem in damaged)
        raise InputError(why + not_finished(run.folder, run.record, done, total))
    return checkpoint


class _DamagedError(Exception):
    """Why a file is not the checkpoint that its name says."""


def _read(path: Path) -> Checkpoint:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        checkpoint = Checkpoint(tensors, int(metadata["step"]), float(metadata["seconds"]))
    except KeyError as missing:
        raise _DamagedError(f"it does not say its {missing}") from None
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise _DamagedError(str(error)) from None
    if checkpoint.step < 0 or path.name != checkpoint_name(checkpoint.step) or not math.isfinite(checkpoint.seconds):
        raise _DamagedError(f"it says that it is of step {checkpoint.step}, after {checkpoint.seconds} seconds")
    # Checkpoints of earlier versions have no digest. The format itself does not notice a changed bit.
    if "sha256" in metadata and metadata["sha256"] != _digest(tensors, metadata):
        raise _DamagedError("its SHA-256 is not the one that it was written with")
    return checkpoint


def _digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A hash of all that a checkpoint holds."""
    digest = hashlib.sha256(f"{metadata['step']} {metadata['seconds']}".encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(_bytes_of(tensor))
    return digest.hexdigest()


def _bytes_of(tensor: Tensor) -> memoryview:
    """A tensor's values as they lie in memory. NumPy has no bfloat16, but every type has bytes."""
    return tensor.contiguous().flatten().view(torch.uint8).numpy().data


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A hash of a network's tensors, which tells whether what was made with them is still theirs."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(_bytes_of(tensor.cpu()))
    return digest.hexdigest()[:16]


def sweep_checkpoints(run_folder: Path, step: int) -> None:
    """Make room before a training goes on from `step`.

    What a process left behind that was killed while writing is removed. Checkpoints of later steps are damaged, and
    are put aside under another name, so that they do not count among the two that are kept.
    """
    for leftover in leftovers(run_folder / "checkpoints", "step-*"):
        leftover.unlink()
    for path in checkpoint_paths(run_folder):
        if path.name > checkpoint_name(step):
            path.replace(path.with_name(f"{path.name}.damaged"))
