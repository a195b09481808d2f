"""The settings of runs, and those that tell runs apart."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from counterpoint import config
from counterpoint.errors import InputError
from counterpoint.setting_types import written

_ON, _MISSING = "on", "not set"

Settings = Mapping[str, object]
"""Each setting's value by its key, as `--set` takes it."""


def settings_of(saved: Mapping[str, Any]) -> dict[str, object]:
    """All that a saved configuration sets, but not its name."""
    with suppress(InputError):  # settings from before an option existed have its default
        saved = config.to_dict(config.from_dict(saved))
    return {key: value for key, value in config.flatten(saved) if key != "name"}


def differing(settings: Sequence[Settings]) -> list[str]:
    """The keys whose values differ, and of a part that only some of the runs have, its name."""
    known = dict.fromkeys(key for one in settings for key in one)
    keys = [key for key in known if any(one.get(key, _MISSING) != settings[0].get(key, _MISSING) for one in settings)]
    return [key for key in keys if not any(key.startswith(f"{other}.") for other in keys)]


def value_text(key: str, settings: Settings) -> str:
    """As `--set` takes it. A part that other runs leave out is on here."""
    if key not in settings:
        return _ON if any(other.startswith(f"{key}.") for other in settings) else _MISSING
    return written(settings[key])
