"""A configuration's hash: results with the same hash are draws from the same distribution.

The hash leaves out the name and every field at its default, inside the policy too. So a new field whose default keeps
the old behaviour changes no hash. Seed, device and precision are no part of an experiment.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterpoint import config
from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.records.files import read_record
from counterpoint.records.results import Results


def config_hash(experiment: Experiment) -> str:
    """SHA-256, in hexadecimal, of the settings that differ from the defaults. The name does not count.

    >>> from counterpoint import Experiment
    >>> from counterpoint.experiments import config_hash
    >>> config_hash(Experiment("one name", "digits")) == config_hash(Experiment("another name", "digits"))
    True
    """
    # Written to JSON values and read again, 1 and 1.0 are the same setting.
    values = _non_default(config.from_dict(config.to_dict(experiment)))
    del values["name"]
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def saved_hash(values: Mapping[str, Any]) -> str | None:
    """The hash of saved settings; None where they are not settings of this version."""
    try:
        return config_hash(config.from_dict(values))
    except InputError:
        return None


def read_results_of(file: Path, experiment: Experiment, seed: int, remedy: str) -> Results | None:
    """The results in `file`; None where there are none, or only those of another configuration or seed.

    `remedy` says what to do about a file that is damaged.
    """
    if not file.exists():
        return None
    found = read_record(file, Results, remedy)
    return found if saved_hash(found.config) == config_hash(experiment) and found.seed == seed else None


def _non_default(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults. An augmentation with all its defaults is {}."""
    kept = {}
    for field in dataclasses.fields(value):
        setting = getattr(value, field.name)
        if setting != _default(field):
            kept[field.name] = _non_default(setting) if dataclasses.is_dataclass(setting) else setting
    return kept


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
