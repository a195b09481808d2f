"""A run's folder: run.json (what was asked), log.jsonl, checkpoints/, and later logits/ and results.json.

Checkpoints are safetensors files, written atomically, the last two kept: nothing in a run folder needs unpickling.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from counterpoint import config
from counterpoint.config import Experiment
from counterpoint.environment import command_line, now
from counterpoint.errors import InputError
from counterpoint.files import read_json, write_atomically, write_json

if sys.platform != "win32":
    import fcntl

SCHEMA = 1
_KEPT = 2
_LOCK = ".lock"


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on: named tensors, the steps done, and the seconds spent so far."""

    tensors: Mapping[str, Tensor]
    step: int
    seconds: float


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    folder: Path
    experiment: Experiment
    record: Mapping[str, Any]

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, then remove all but the last two."""
        metadata = {"step": str(checkpoint.step), "seconds": repr(checkpoint.seconds)}
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        write_atomically(self._checkpoint_path(checkpoint.step), safetensors.torch.save(tensors, metadata))
        for old in self._checkpoint_paths()[:-_KEPT]:
            old.unlink()

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint, if there is one."""
        paths = self._checkpoint_paths()
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

    def sweep(self) -> None:
        """Remove what a kill in the middle of writing a checkpoint left behind."""
        for leftover in (self.folder / "checkpoints").glob(".step-*.tmp"):
            leftover.unlink()

    def append_log(self, **values: Any) -> None:
        """One line a record; a line is written whole or dropped by `trim_log`."""
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values, allow_nan=False) + "\n")

    def trim_log(self, step: int) -> None:
        """Drop what was logged after `step`, the last checkpoint: those steps will be done again."""
        if self._log.exists():
            lines = [line for line in self.read_log() if line.get("step", 0) <= step]
            write_atomically(self._log, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def read_log(self) -> list[dict[str, Any]]:
        """The log's records; a last line that a crash cut short is left out."""
        records = []
        for line in self._log.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return records

    @property
    def _log(self) -> Path:
        return self.folder / "log.jsonl"

    def _checkpoint_path(self, step: int) -> Path:
        return self.folder / "checkpoints" / f"step-{step:09d}.safetensors"

    def _checkpoint_paths(self) -> list[Path]:
        return sorted((self.folder / "checkpoints").glob("step-*.safetensors"))


def check_folder(folder: Path) -> None:
    """Raise if the folder holds something that is no run."""
    if not folder.is_dir() or (folder / "run.json").exists():
        return
    if any(entry.name != _LOCK for entry in folder.iterdir()):
        raise InputError(f"{folder} is not empty and holds no run; choose another --out")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process: two trainings in one folder would overwrite each other's checkpoints."""
    if sys.platform == "win32":  # which has no flock
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is training in {folder}; wait for it, or choose another --out") from None
        yield


def open_run(folder: Path, experiment: Experiment, *, seed: int, options: Mapping[str, Any], environment: Any) -> Run:
    """The run of `experiment` in `folder`: a new one, or the one there if it has the same experiment and seed."""
    path = folder / "run.json"
    if path.exists():
        run = load_run(folder)
        differing = config.differences(
            {**config.to_dict(run.experiment), "seed": run.seed}, {**config.to_dict(experiment), "seed": seed}
        )
        if differing:
            raise InputError(
                f"{folder} holds another run ({'; '.join(differing)}); choose another --out, or the same settings"
            )
        run.sweep()
        return run
    record = {
        "schema": SCHEMA,
        "experiment": config.to_dict(experiment),
        "seed": seed,
        "options": dict(options),
        "command": command_line(),
        "started": now(),
        "environment": environment,
    }
    write_json(path, record)
    return Run(folder, experiment, record)


def load_run(folder: Path) -> Run:
    """The run in `folder`, with its experiment checked."""
    if not (folder / "run.json").exists():
        raise InputError(
            f"{folder} holds no run (there is no run.json); give the folder that `counterpoint train --out` made"
        )
    record = read_json(folder / "run.json")
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or "experiment" not in record:
        raise InputError(f"{folder / 'run.json'} is not a run of this version of counterpoint (schema {SCHEMA})")
    return Run(folder, config.from_dict(record["experiment"]), record)
