"""Carry a run to another machine: run.json, the log and the newest checkpoint, in parts of a chosen size. The logits of
an evaluation that is not finished are carried too. Of a finished row, its result and its condensed scores are.

A folder of parts holds manifest.json, which names each file's parts and SHA-256. On the other machine nothing is
written before every part is there and its hash is right.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.errors import InputError, shown
from counterpoint.records.codec import FieldError, decode
from counterpoint.records.progress import checkpoint_paths
from counterpoint.runs.folder import differences_in_words, load_run, run_of_record
from counterpoint.storage.files import check_links, parse_json, read_json, write_atomically, write_json
from counterpoint.storage.locks import locked

_MANIFEST = "manifest.json"
_OF_A_RUN = re.compile(
    r"run\.json|log\.jsonl|checkpoints/step-\d{9}\.safetensors|logits/(about\.json|[\w-]+\.np[yz])|result\.(json|npz)"
)
_ABOUT = "logits/about.json"
_RESULT = ("result.npz", "result.json")  # of a row; a row that has the second is finished


def export_runs(
    runs: Path, places: Iterable[Path], out: Path, part_mib: int, results: Path | None = None
) -> list[Path]:
    """Write each run that has a checkpoint to `out`. `places` are the runs' folders, relative to `runs` and `out`.

    Their results are in `results`, at the same places. What comes back are the places of those that were written.
    """
    begun = [place for place in places if checkpoint_paths(runs / place)]
    if not begun:
        raise InputError(f"none of these rows has a checkpoint in {runs} yet; there is nothing to export")
    for place in begun:
        export_run(runs / place, out / place, part_mib, results / place if results else None)
    return begun


def import_runs(
    parts: Path, runs: Path, is_place: Callable[[Path], bool] = lambda _: True, results: Path | None = None
) -> list[Path]:
    """Join every run that `export_runs` wrote to `parts`, each into its folder under `runs`. Their places come back.

    `is_place` tells whether a run would be looked for in this place. Results go to `results`.
    """
    places = sorted(path.parent.relative_to(parts) for path in parts.rglob(_MANIFEST))
    if not places:
        raise InputError(f"{parts} holds no exported run (no {_MANIFEST}); give the folder that --export-parts made")
    if lost := next((place for place in places if not is_place(place)), None):
        raise InputError(
            f"{parts} holds a run in {lost}, where no row of the paper would be looked for; give the folder that "
            "--export-parts made, and not a folder in it"
        )
    for place in places:
        import_run(parts / place, runs / place, results / place if results else None)
    return places


def export_run(run: Path, out: Path, part_mib: int, result: Path | None = None) -> None:
    """Write the run in `run` to `out` in parts of at most `part_mib` MiB. Parts of an older export are removed.

    `result` is where the row's result is, if there is one, without .json and .npz.
    """
    checkpoints = checkpoint_paths(run)
    if not checkpoints:
        raise InputError(f"{run} has no checkpoint yet; there is nothing to export")
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.part"):
        old.unlink()
    # import_run writes the files in this order. A log that is ahead of the checkpoint is trimmed, and one that is
    # behind would stay without its epochs. A folder without run.json is no run, so run.json comes last.
    of_run = (run / "log.jsonl", checkpoints[-1], *_unfinished_logits(run))
    carried = {path.relative_to(run).as_posix(): path for path in of_run}
    carried |= {name: path for name, path in _of_result(result).items() if path.exists()}
    carried["run.json"] = run / "run.json"
    files = [_split(name, path, out, part_mib << 20) for name, path in carried.items()]
    write_json(out / _MANIFEST, {"files": files})


def import_run(parts: Path, run: Path, result: Path | None = None) -> None:
    """Join what `export_run` wrote to `parts` into the run folder `run`, unless the run there is further already.

    The row's result goes to `result`, with .json and .npz, unless there is one.
    """
    files = {file.path: file for file in _files_to_join(parts)}
    for file in files.values():  # all are checked before one is written, and only one is in memory
        _join(parts, file)
    carried = next((name for name in files if name.startswith("checkpoints/")), None)
    if carried is None:
        raise InputError(f"{parts / _MANIFEST} names no checkpoint; export the run again")
    check_links(run)
    with locked(run, f"another process is training or evaluating in {run}; wait for it, or end it first"):
        _check_same_run(parts, files.get("run.json"), run)
        newest = max((path.name for path in checkpoint_paths(run)), default="")
        if newest > Path(carried).name:
            raise InputError(
                f"{run} is already at {newest}, which is further than the parts in {parts} "
                f"({Path(carried).name}); leave --import-parts out"
            )
        about = run / _ABOUT
        if _ABOUT in files and about.exists() and not _is_same(about.read_bytes(), _join(parts, files[_ABOUT])):
            raise InputError(
                f"{run} was evaluated differently from the run in {parts}, for example on another device; remove "
                f"{about.parent}, or leave --import-parts out"
            )
        targets = {name: run / name for name in files if name not in _RESULT}
        of_result = _of_result(result)
        if of_result and not of_result["result.json"].exists():
            targets |= {name: path for name, path in of_result.items() if name in files}
        for name, target in targets.items():
            write_atomically(target, _join(parts, files[name]))


def _of_result(result: Path | None) -> dict[str, Path]:
    """Where the result of a row and its condensed scores are, by their names among the parts."""
    return {name: result.with_suffix(Path(name).suffix) for name in _RESULT} if result else {}


def _files_to_join(parts: Path) -> "Iterator[_File]":
    """All but the logits whose parts were left behind: they can be too large to carry, and can be made again."""
    files = _read_manifest(parts).files
    there = {file.path for file in files if any((parts / name).exists() for name in file.parts)}
    for file in files:
        if file.path.startswith("logits/") and not {file.path, _ABOUT} <= there:
            continue
        yield file


def _check_same_run(parts: Path, carried: "_File | None", run: Path) -> None:
    """Raise if the folder holds a run with other settings or images, or another seed. Its files would be mixed up."""
    if carried is None:
        raise InputError(f"{parts / _MANIFEST} names no run.json; export the run again")
    theirs = run_of_record(parts, parse_json(_join(parts, carried), parts / "run.json"))
    if not (run / "run.json").exists():
        return
    ours = load_run(run)
    differing = differences_in_words(ours, theirs.experiment, theirs.seed)
    trained_on = [one.record.get("description") for one in (ours, theirs)]
    if not differing and None not in trained_on and trained_on[0] != trained_on[1]:
        differing = "they were trained on other images"
    if differing:
        raise InputError(
            f"{run} holds another run than the parts in {parts} ({differing}); move {run} away, choose another --out, "
            "or leave --import-parts out"
        )


def _is_same(ours: bytes, theirs: bytes) -> bool:
    """Whether two about.json are of the same evaluation. How long it took so far does not count."""

    def described(content: bytes) -> Any:
        about = json.loads(content)
        return {key: value for key, value in about.items() if key != "seconds_spent"}

    try:
        return bool(described(ours) == described(theirs))
    except (ValueError, AttributeError, RecursionError):  # one of them is damaged
        return False


def _unfinished_logits(run: Path) -> list[Path]:
    """What an evaluation has left that is not finished. One that is finished has its figures, which are small."""
    if (run / "results.json").exists() or not (run / _ABOUT).exists():
        return []
    return [*sorted((run / "logits").glob("*.np[yz]")), run / _ABOUT]


def _split(name: str, path: Path, out: Path, part_bytes: int) -> dict[str, Any]:
    content = path.read_bytes()
    parts = []
    for number, start in enumerate(range(0, len(content), part_bytes)):
        parts.append(f"{path.name}.{number:03d}.part")
        write_atomically(out / parts[-1], content[start : start + part_bytes])
    return {"path": name, "sha256": hashlib.sha256(content).hexdigest(), "parts": parts}


@dataclass(frozen=True)
class _File:
    path: str
    sha256: str
    parts: tuple[str, ...]

    def problem(self) -> str:
        # The names come from another machine. They must not lead outside the folders that the user gave.
        if not _OF_A_RUN.fullmatch(self.path):
            return f"path is {shown(self.path)!r}, which is no file of a run"
        foreign = [name for name in self.parts if not name.endswith(".part") or Path(name).name != name or "\\" in name]
        return f"parts has {shown(foreign[0])!r}, which is no part beside the manifest" if foreign else ""


@dataclass(frozen=True)
class _Manifest:
    files: tuple[_File, ...]


def _read_manifest(parts: Path) -> _Manifest:
    try:
        return decode(_Manifest, read_json(parts / _MANIFEST))
    except FieldError as wrong:
        raise InputError(
            f"{parts / _MANIFEST} is not the manifest of an exported run: {wrong}; export the run again"
        ) from None


def _join(parts: Path, file: _File) -> bytes:
    missing = [name for name in file.parts if not (parts / name).is_file() or (parts / name).is_symlink()]
    if missing:
        raise InputError(f"{parts} lacks {', '.join(missing)} of {file.path}; copy every part, and no links")
    content = b"".join((parts / name).read_bytes() for name in file.parts)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"the parts of {file.path} in {parts} are damaged (their SHA-256 differs); copy them again")
    return content
