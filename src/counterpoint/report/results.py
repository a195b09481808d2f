"""Reads a results.json and checks that everything the report shows is there."""

import json
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from counterpoint.errors import InputError, unknown
from counterpoint.report.run import AGGREGATES, CORRUPTIONS, SEVERITIES

SCHEMA = 1

_NUMBER = (int, float)
_SCORES = dict.fromkeys(
    ("error", "nll", "brier", "ece_width15", "ece_rms_width15", "ece_mass15", "ece_rms_mass15", "mean_confidence"),
    _NUMBER,
)
_BINS = [{"low": _NUMBER, "high": _NUMBER, "count": int, "confidence": _NUMBER, "accuracy": _NUMBER}]
_SUMMARY = {
    "ensemble": _SCORES,
    "members": [_SCORES],
    "disagreement": (*_NUMBER, NoneType),
    "reliability": {"width15": _BINS, "mass15": _BINS},
}
# A dict names the keys that must be there, a list is a list of at least one such value, anything else is a type.
_RESULTS = {
    "schema": int,
    "counterpoint": str,
    "experiment": str,
    "config": dict,
    "run": {
        "seed": int,
        "command": str,
        "commit": (str, NoneType),
        "device": str,
        "versions": dict,
        "train_seconds": _NUMBER,
        "finished": str,
    },
    "evaluation": {"command": str, "finished": str, "precision": str, "seconds": _NUMBER},
    "evaluated_on": {"dataset": str, "part": str, "images": int},
    "clean": _SUMMARY,
}
_CORRUPTED = {
    "source": {"kind": str},
    "images": int,
    "aggregates": {
        "ensemble": dict.fromkeys(AGGREGATES, _SCORES),
        "members": [dict.fromkeys(AGGREGATES, _SCORES)],
    },
    "cells": {name: [_SUMMARY] for name in CORRUPTIONS},
}
_SOURCES: dict[str, dict[str, type]] = {
    "official": {},
    "regenerated": {"seed": int, "version": str, "frost": str},
}


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
    _require(results, _RESULTS, "", file)
    if "corrupted" in results:
        _require_corrupted(results, file)
    return results


def _results_file(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"{path} does not exist; give a run folder or its results.json")
    file = path / "results.json" if path.is_dir() else path
    if not file.exists():
        raise InputError(f"{path} has no results.json; `counterpoint evaluate {path}` makes it")
    return file


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}") from problem
    except ValueError as problem:
        raise InputError(
            f"{file} is not whole JSON ({problem}); `counterpoint evaluate {file.parent}` makes it again"
        ) from problem


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}")


def _require_corrupted(results: dict[str, Any], file: Path) -> None:
    corrupted, members = results["corrupted"], len(results["clean"]["members"])
    _require(corrupted, _CORRUPTED, "corrupted", file)
    source = corrupted["source"]
    if source["kind"] not in _SOURCES:
        raise unknown(f"source of the corrupted set in {file}:", source["kind"], _SOURCES)
    _require(source, _SOURCES[source["kind"]], "corrupted.source", file)
    if len(corrupted["aggregates"]["members"]) != members:
        raise _not_whole("corrupted.aggregates.members", file)
    for name in CORRUPTIONS:
        cells = corrupted["cells"][name]
        if len(cells) != len(SEVERITIES) or any(len(cell["members"]) != members for cell in cells):
            raise _not_whole(f"corrupted.cells.{name}", file)


def _require(value: Any, shape: Any, where: str, file: Path) -> None:
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, inner in shape.items():
            _require(value.get(key), inner, f"{where}.{key}".lstrip("."), file)
    elif isinstance(shape, list) and isinstance(value, list) and value:
        for i, item in enumerate(value):
            _require(item, shape[0], f"{where}[{i}]", file)
    elif isinstance(shape, dict | list) or not isinstance(value, shape):
        raise _not_whole(where, file)


def _not_whole(where: str, file: Path) -> InputError:
    return InputError(
        f"{file} is not a whole results file: {where} is missing or of the wrong kind; "
        f"`counterpoint evaluate {file.parent}` makes it again"
    )
