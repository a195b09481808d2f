"""A run's folder: run.json (what was asked), log.jsonl, checkpoints/, and later logits/ and results.json.

Nothing here needs torch, and nothing in a run folder needs unpickling.
"""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

from counterpoint import config
from counterpoint.config import Experiment
from counterpoint.errors import InputError, shown
from counterpoint.records.codec import FieldError, Range, decode
from counterpoint.records.progress import began_with, diverged_after, read_lines
from counterpoint.runs.description import Description, description_as_json, read_description
from counterpoint.storage.files import (
    check_folder_path,
    check_links,
    leftovers,
    nearest_folder,
    read_json,
    write_atomically,
    write_json,
    writing,
)
from counterpoint.storage.folders import quoted, why_no_run
from counterpoint.storage.locks import LOCK_FILE
from counterpoint.storage.provenance import command_line, now

SCHEMA = 1
MOST_SEED = 2**63 - 1
_MOST_NAMED = 5  # settings in a message


@dataclass(frozen=True)
class Run:
    """A run on disk. `load_run` reads one.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.runs.folder import Run
    >>> Run(Path("runs/mine"), Experiment("mine", "digits"), record={}).experiment.name
    'mine'
    """

    folder: Path
    experiment: Experiment
    record: Mapping[str, Any] = field(repr=False)

    @property
    def seed(self) -> int:
        return int(self.record["seed"])

    @property
    def command(self) -> str:
        """The command that began the run, from run.json. It is only shown, and never executed."""
        return began_with(self.record)

    @property
    def evaluate_command(self) -> str:
        """What makes the logits and the results."""
        return f"counterpoint evaluate {quoted(self.folder)}"

    @property
    def description(self) -> Description:
        """The description in run.json. A run that an earlier version began may have none, which is an error."""
        values = self.record.get("description")
        if values is None:
            raise InputError(
                f"{self.folder / 'run.json'} does not say yet what its network was trained on, because an earlier "
                f"version began the run; `{self.evaluate_command}` adds it from the data set"
            )
        try:
            return read_description(values)
        except (FieldError, InputError) as error:
            raise InputError(
                f"the description in {self.folder / 'run.json'} is not one of this version ({error}); remove it, and "
                f"`{self.evaluate_command}` adds it from the data set"
            ) from None

    def append_log(self, **values: Any) -> None:
        """Add one record as a line of JSON. `read_log` leaves out a line that a crash cut short.

        It is synced: a checkpoint that is written next must not outlive the epochs before it in a power failure.
        """
        with writing(self._log), self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def trim_log(self, step: int) -> None:
        """Drop what was logged after `step`, the step of the last checkpoint. Later steps will be done again."""
        if self._log.exists():
            lines = [line for line in self.read_log() if line.get("step", 0) <= step]
            write_atomically(self._log, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def read_log(self) -> list[dict[str, Any]]:
        """The log's records. A last line that a crash cut short is left out."""
        return read_lines(self._log)

    @property
    def diverged_after(self) -> int | None:
        """The step after which training diverged; None where it did not, or has gone on from before."""
        return diverged_after(self.read_log())

    @property
    def _log(self) -> Path:
        return self.folder / "log.jsonl"


class FollowedRun(Run):
    """A run in a process that leaves the writing to another one."""

    def append_log(self, **values: Any) -> None:
        pass

    def trim_log(self, step: int) -> None:
        pass

    def read_log(self) -> list[dict[str, Any]]:
        return []


def follow_run(folder: Path, experiment: Experiment, *, seed: int, description: Description) -> Run:
    """The run that another process opens, and keeps this description in."""
    return FollowedRun(folder, experiment, {"seed": seed, "description": description_as_json(description)})


def check_folder(folder: Path) -> None:
    """Raise if a run cannot begin or go on in the folder: as `check_content`, or if it cannot be written to."""
    check_folder_path(folder)
    check_content(folder)


def check_content(folder: Path) -> None:
    """Raise if the folder holds files but no run, or a link that leads out of it, or if it is a file."""
    nearest_folder(folder)
    check_links(folder)
    if not folder.is_dir() or (folder / "run.json").exists():
        return
    if {*folder.iterdir()} - {folder / LOCK_FILE, *leftovers(folder, "run.json")}:
        raise InputError(f"{folder} is not empty and holds no run; choose another folder (--out)")


def find_run(folder: Path, experiment: Experiment, *, seed: int) -> Run | None:
    """The run in `folder`, if there is one. It must have the same experiment and seed."""
    if not (folder / "run.json").exists():
        return None
    run = load_run(folder)
    if differing := differences_in_words(run, experiment, seed):
        raise InputError(
            f"{folder} holds another run ({differing}); choose another folder (--out), or the settings that it was "
            f"begun with: `{run.command}`"
        )
    return run


def differences_in_words(run: Run, experiment: Experiment, seed: int) -> str:
    """The settings in which the run differs from a run of this experiment and seed; empty if there are none."""
    differing = config.differences(
        {**config.to_dict(run.experiment), "seed": run.seed}, {**config.to_dict(experiment), "seed": seed}
    )
    more = f"; and {len(differing) - _MOST_NAMED} more" if len(differing) > _MOST_NAMED else ""
    return "; ".join(differing[:_MOST_NAMED]) + more


def open_run(
    folder: Path,
    experiment: Experiment,
    *,
    seed: int,
    options: Mapping[str, Any],
    environment: Any,
    sources: Mapping[str, Any] | None = None,
) -> Run:
    """The run of `experiment` in `folder`, found or begun. `sources` are where its images and weights come from."""
    if run := find_run(folder, experiment, seed=seed):
        return run
    if seed > MOST_SEED:
        raise InputError(f"seed is {shown(seed)}; it must be {MOST_SEED:,} at most")
    record = {
        "schema": SCHEMA,
        "experiment": config.to_dict(experiment),
        "seed": seed,
        "options": dict(options),
        "command": command_line(),
        "started": now(),
        "environment": environment,
        **(sources or {}),
    }
    write_json(folder / "run.json", record)
    return Run(folder, experiment, record)


def keep_description(run: Run, description: Description) -> Run:
    """The run with this description in run.json. One that is there already must be the same."""
    if "description" not in run.record:
        record = {**run.record, "description": description_as_json(description)}
        write_json(run.folder / "run.json", record)
        return Run(run.folder, run.experiment, record)
    old, new = description_as_json(run.description), description_as_json(description)
    if old.get("images_key") != new.get("images_key"):
        raise InputError(
            f"the images to train on are not those that {run.folder} was begun with: some were added, removed or "
            "changed; put them back, or train a new run in another folder (--out)"
        )
    if differing := config.differences(old, new):
        raise InputError(
            f"the data set is not the one that {run.folder} was begun with ({'; '.join(differing)}); name its folder "
            "with --data, root=… in Python, or COUNTERPOINT_DATA"
        )
    return run


class InFolder(Protocol):
    """Whatever has a folder of its own: a run, or predictions from elsewhere."""

    @property
    def folder(self) -> Path: ...


def folder_of(run: InFolder | Path | str) -> Path:
    """The folder of a run, which may be given itself or by its path."""
    folder = run if isinstance(run, Path | str) else getattr(run, "folder", None)
    if not isinstance(folder, Path | str):
        raise InputError(f"the run is {shown(repr(run))}; it must be a run, such as load_run gives, or a folder's path")
    return Path(folder)


def check_several(name: str, runs: object) -> None:
    """Raise for one run, or one path, where a list of at least one is needed."""
    if isinstance(runs, str | Path):
        raise InputError(f"{name} is {str(runs)!r}; it must be a list, such as [{str(runs)!r}]")
    if not isinstance(runs, Collection) or not len(runs):
        raise InputError(f"{name} is {shown(repr(runs))}; it must be a list, such as ['runs/first', 'runs/second']")


def load_run(folder: Run | Path | str) -> Run:
    """Read the run in `folder`, which `train` made, and check its experiment. A run is returned as it is.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load
    >>> from counterpoint.runs.folder import load_run
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> load_run(Path("runs/mine")).experiment.name
    'mine'
    """
    if isinstance(folder, Run):
        return folder
    folder = folder_of(folder)
    if not (folder / "run.json").exists():
        raise InputError(why_no_run(folder))
    check_links(folder)
    return run_of_record(folder, read_json(folder / "run.json"))


def run_of_record(folder: Path, record: Any) -> Run:
    """The run whose run.json in `folder` holds this."""
    if isinstance(record, dict) and "imported" in record:
        raise InputError(
            f"{folder} holds predictions of a model that was trained elsewhere, and no network; use `recalibrate`, "
            f"`threshold`, `compare` and `report` with it. `counterpoint evaluate {quoted(folder)} --recompute` "
            f"computes its figures again, and `counterpoint evaluate --logits FILE --out {quoted(folder)}` reads the "
            "file again"
        )
    if not isinstance(record, dict) or record.get("schema") != SCHEMA or "experiment" not in record:
        raise InputError(
            f"{folder / 'run.json'} is damaged, or another version of counterpoint wrote it (this one reads schema "
            f"{SCHEMA}); restore it from a copy, use that version, or train a new run in another folder (--out)"
        )
    try:
        decode(_InJson, record)
        return Run(folder, config.from_dict(record["experiment"]), record)
    except (FieldError, InputError) as wrong:
        raise InputError(f"{folder / 'run.json'} is damaged or incomplete: {wrong}; restore it from a copy") from None


@dataclass(frozen=True)
class _InJson:
    """run.json, apart from the experiment and the description, which are checked where they are read."""

    experiment: Mapping[str, Any]
    seed: Annotated[int, Range(0, MOST_SEED)]
    command: str = ""
    images: Mapping[str, Any] | None = None
