"""Reads a results.json and checks that everything the report shows is there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from counterpoint.errors import InputError, unknown
from counterpoint.report.run import SEVERITIES
from counterpoint.report.shapes import CORRUPTED, RESULTS, SOURCES

SCHEMA = 1


def load_runs(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The results of several runs, each of which must be given once."""
    files = [_results_file(path).resolve() for path in paths]
    for number, file in enumerate(files):
        if file in files[:number]:
            raise InputError(f"{paths[number]} is given twice; name each run once")
    return [load_results(path) for path in paths]


def load_results(path: Path | str) -> dict[str, Any]:
    """The results of a run, from its folder or from the results.json itself."""
    file = _results_file(Path(path))
    results = _read_json(file)
    if not isinstance(results, dict) or not isinstance(results.get("schema"), int):
        raise InputError(f"{file} is not a results file of counterpoint; give a run folder or its results.json")
    if results["schema"] > SCHEMA:
        raise InputError(
            f"{file} has schema {results['schema']} and this counterpoint reads up to {SCHEMA}; upgrade counterpoint"
        )
    if "hash" in results:
        raise InputError(
            f"{file} is a result as `counterpoint reproduce` keeps it, without the bins that a report shows; "
            "give the run's folder, or see `counterpoint reproduce all`"
        )
    counts = {"severities": len(SEVERITIES)}
    _require(results, RESULTS, "", counts, file)
    if "corrupted" in results:
        _require_corrupted(results["corrupted"], counts, file)
    return results


def _results_file(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} does not exist; give a run folder or its results.json")
    file = path / "results.json" if path.is_dir() else path
    if not file.exists():
        raise InputError(_why_no_results(path))
    return file


def _why_no_results(folder: Path) -> str:
    if (folder / "run.json").exists():
        return f"{folder} has no results.json; `counterpoint evaluate {folder}` makes it"
    if runs := sorted(str(file.parent) for file in folder.glob("*/run.json")):
        return f"{folder} is not a run folder; give the runs in it: {' '.join(runs)}"
    return f"{folder} is not a run folder (there is no run.json); give the folder that `counterpoint train --out` made"


def _remedy(file: Path) -> str:
    """What to do about a file that is no results file: not everything that a user names was made by `evaluate`."""
    if file.name == "results.json" and (file.parent / "run.json").exists():
        return f"`counterpoint evaluate {file.parent}` makes it again"
    return "give a run folder or its results.json"


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise InputError(f"{file} is not whole JSON ({problem}); {_remedy(file)}") from problem


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}")


def _require_corrupted(corrupted: Any, counts: dict[str, int], file: Path) -> None:
    _require(corrupted, CORRUPTED, "corrupted", counts, file)
    source = corrupted["source"]
    if source["kind"] not in SOURCES:
        raise unknown(f"source of the corrupted set in {file}:", source["kind"], SOURCES)
    _require(source, SOURCES[source["kind"]], "corrupted.source", counts, file)


def _require(value: Any, shape: Any, where: str, counts: dict[str, int], file: Path) -> None:
    """`counts` says how long the lists of each name are; the first list of a name that has none sets it."""
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, inner in shape.items():
            name = key.removesuffix("?")
            if name == key or value.get(name) is not None:
                _require(value.get(name), inner, f"{where}.{name}".lstrip("."), counts, file)
    elif isinstance(shape, list) and isinstance(value, list) and value:
        item_shape, *names = shape
        if any(counts.setdefault(name, len(value)) != len(value) for name in names):
            raise _not_whole(where, file)
        for i, item in enumerate(value):
            _require(item, item_shape, f"{where}[{i}]", counts, file)
    elif isinstance(shape, dict | list) or not isinstance(value, shape):
        raise _not_whole(where, file)


def _not_whole(where: str, file: Path) -> InputError:
    return InputError(f"{file} is not a whole results file: {where} is missing or of the wrong kind; {_remedy(file)}")
