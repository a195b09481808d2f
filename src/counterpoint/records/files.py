"""The files beside a run that hold records: results.json, recalibrated.json, compared.json and threshold.json.

All are checked here, and carry one schema number. What was computed from other logits than results.json is left out,
with a note.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from counterpoint.errors import InputError
from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.compared import Compared
from counterpoint.records.progress import why_no_results
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.records.results import Results
from counterpoint.records.threshold import Thresholded
from counterpoint.storage.files import write_json
from counterpoint.storage.folders import quoted, why_no_run

SCHEMA = 2
RESULTS, RECALIBRATED, COMPARED, THRESHOLD = "results.json", "recalibrated.json", "compared.json", "threshold.json"

_OF_RUN = ("run.json", "log.jsonl", "split.npz", "scores.npz", RESULTS, RECALIBRATED, THRESHOLD)

Record = TypeVar("Record")
Beside = TypeVar("Beside", Recalibrated, Compared, Thresholded)

_KINDS: dict[str, type[Any]] = {
    RECALIBRATED: Recalibrated,
    COMPARED: Compared,
    THRESHOLD: Thresholded,
}


@dataclass(frozen=True)
class Evaluated:
    """All that is known of a run: its results, and what recalibration, comparison and a threshold added."""

    results: Results
    recalibrated: Recalibrated | None = None
    compared: Compared | None = None
    thresholded: Thresholded | None = None
    notes: tuple[str, ...] = ()
    """What was left out, and how to get it again."""
    folder: str = field(default="", compare=False)
    """The name of the run's folder, where it is known: it tells runs of one experiment apart."""


def read_evaluated(path: Path) -> Evaluated:
    """The records of the run in a folder, or beside a results.json."""
    file = results_file(path)
    results = read_results(file)
    if file.name != RESULTS:
        return Evaluated(results)
    folder = file.parent
    recalibrated = _read_beside(folder / RECALIBRATED, Recalibrated, results)
    compared = _read_beside(folder / COMPARED, Compared, results)
    thresholded = _read_beside(folder / THRESHOLD, Thresholded, results)
    found = (recalibrated, compared, thresholded)
    stale = [f"left out: {one.stale}" for one in found if one.stale]
    notes = (*stale, *(one.behind for one in found if one.behind))
    return Evaluated(results, recalibrated.current, compared.current, thresholded.current, notes, folder.resolve().name)


def read_results(file: Path) -> Results:
    """The results in `file`, as `evaluate` wrote them."""
    return read_record(file, Results, _remedy(file))


def read_current(file: Path, kind: type[Beside], results: Results) -> tuple[Beside | None, str]:
    """The record beside the results, and why it is left out if it does not count any more.

    Its figures on shifted or outside images that are not those of the results are left out.
    """
    found = _read_beside(file, kind, results)
    return found.current, found.stale


def stale_notes(folder: Path, results: Results) -> list[str]:
    """A line for each other record beside `results` that is damaged, or was made from other logits."""
    notes = []
    for name, kind in _KINDS.items():
        try:
            found = _read_beside(folder / name, kind, results)
            notes.append(found.stale or found.behind)
        except InputError as damage:
            notes.append(str(damage))
    return [note for note in notes if note]


def check_no_record(file: Path) -> None:
    """Raise if `file`, which a user named for something else, is what counterpoint keeps of a run or of a row."""
    is_of_run = file.name in _OF_RUN and (file.parent / "run.json").exists()
    if file.exists() and (is_of_run or _holds_results(file)):
        raise InputError(f"{file} holds what is known of a run, and it is never replaced; choose another file")


def _holds_results(file: Path) -> bool:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(values, dict) and values.keys() >= {"schema", "config", "clean"}


def write_record(file: Path, record: Any) -> None:
    """Write a record with the schema number first."""
    write_json(file, {"schema": SCHEMA, **encode(record)})


def read_record(file: Path, kind: type[Record], remedy: str) -> Record:
    """The record in `file`. `remedy` says what to do if it is damaged or of another version."""
    values = _read_json(file, remedy)
    schema = values.get("schema") if isinstance(values, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise InputError(f"{file} is not a file of counterpoint's (it names no schema); {remedy}")
    if schema > SCHEMA:
        raise InputError(f"{file} has schema {schema}, and this counterpoint reads {SCHEMA}; upgrade counterpoint")
    if schema < SCHEMA:
        raise InputError(
            f"{file} has schema {schema}, of an earlier counterpoint, and this one reads {SCHEMA}; {remedy}"
        )
    try:
        return decode(kind, values)
    except FieldError as wrong:
        raise InputError(f"{file} is damaged or incomplete: {wrong}; {remedy}") from None


def results_file(path: Path) -> Path:
    """The results.json that a user means by `path`."""
    if not path.exists():
        raise InputError(f"{path} does not exist; give a run folder or its results.json")
    file = path / RESULTS if path.is_dir() else path
    if not file.exists():
        raise InputError(why_no_results(path) if (path / "run.json").exists() else why_no_run(path))
    return file


@dataclass(frozen=True)
class _FoundBeside(Generic[Beside]):
    """A record beside the results, as far as it counts; why it does not count, or what it does not cover."""

    current: Beside | None = None
    stale: str = ""
    behind: str = ""


def _read_beside(file: Path, kind: type[Beside], results: Results) -> _FoundBeside[Beside]:
    if not file.exists():
        return _FoundBeside()
    record = read_record(file, kind, f"{_made_by(file)} again")
    if record.made_from != results.made_from:
        return _FoundBeside(stale=f"{file} was made from other logits than results.json; {_made_by(file)} again")
    # What the results do not have, or what was another set of images then, is left out.
    shifts = {name: shifted.shift for name, shifted in results.suites.items()}
    outside = {name: one.identity for name, one in results.outside.items()}
    other_shifts = {name for name, shift in record.checked_on.items() if shifts.get(name) != shift}
    other_outside = {name for name, one in record.outside.items() if outside.get(name) != one.identity}
    current = record.without(other_shifts, other_outside)
    return _FoundBeside(current, behind=_behind(file, record, current, results))


def _behind(file: Path, record: Beside, current: Beside, results: Results) -> str:
    """A note about a user's own images of the results that a record does not cover; empty if it covers all.

    A comparison need cover only what it once had: other runs need not have all images. But it must not vanish without a
    word where those have changed.
    """
    is_compared = isinstance(record, Compared)
    shifts = record.checked_on if is_compared else results.checked_shifts
    missing = [name for name in shifts if name in results.suites and name not in current.checked_on]
    if not isinstance(record, Recalibrated):
        own = {name for name, one in results.outside.items() if one.key}
        outside = record.outside if is_compared else results.outside
        missing += [name for name in outside if name in own and name not in current.outside]
    if not missing:
        return ""
    return f"{file} does not cover {', '.join(missing)}, which changed in a later evaluation; {_made_by(file)} again"


def _made_by(file: Path) -> str:
    run = file.parent
    command = {
        RECALIBRATED: f"recalibrate {quoted(run)}",
        COMPARED: f"compare {quoted(run)} OTHER",
        THRESHOLD: f"threshold {quoted(run)} --error TARGET",
    }[file.name]
    return f"`counterpoint {command}` makes it"


def _remedy(file: Path) -> str:
    """What to do about a file that is no results file. A user may name a file that `evaluate` did not make."""
    if file.name == RESULTS and (file.parent / "run.json").exists():
        return f"`counterpoint evaluate {quoted(file.parent)}` makes it again"
    return "give a run folder or its results.json"


def _read_json(file: Path, remedy: str) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))  # a NaN is taken here, and then named by its field
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{file} is damaged or is not JSON ({problem}); {remedy}") from problem
