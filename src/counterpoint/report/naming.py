"""What runs are called on a page: by their names, and where these are equal by the settings that differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from counterpoint import config
from counterpoint.errors import InputError, listed
from counterpoint.records.results import Results
from counterpoint.setting_types import written

_MOST_SETTINGS = 3
_ON, _MISSING = "on", "not set"


def run_labels(all_results: Sequence[Results]) -> list[str]:
    """A label for each run, no two of them equal."""
    labels = [one.experiment for one in all_results]
    for name, count in Counter(labels).items():
        if count > 1:
            places = [place for place, one in enumerate(all_results) if one.experiment == name]
            additions = _told_apart([all_results[place] for place in places], places)
            for place, addition in zip(places, additions, strict=True):
                labels[place] = f"{name} ({addition})"
    return labels


def joined_labels(names: Sequence[str], labels: Sequence[str]) -> str:
    """A title for some runs: their common name is said once."""
    if len(set(names)) == 1 < len(names):
        additions = [label.removeprefix(f"{names[0]} (").removesuffix(")") for label in labels]
        return f"{names[0]}: {listed(additions)}"
    return listed(labels)


def _told_apart(same_name: Sequence[Results], places: Sequence[int]) -> list[str]:
    """The first settings that differ between runs of one name; where that is not enough, the place among the runs."""
    settings = [dict(_settings(one)) for one in same_name]
    keys = [key for key in dict.fromkeys(key for one in settings for key in one) if _differs(key, settings)]
    shown = [key for key in keys if not any(key.startswith(f"{other}.") for other in keys)][:_MOST_SETTINGS]
    texts = [", ".join(f"{key} {_value(key, one)}" for key in shown) for one in settings]
    seen = Counter(texts)
    numbered = [f"run {place + 1}" if seen[text] > 1 else "" for text, place in zip(texts, places, strict=True)]
    return [", ".join(filter(None, both)) for both in zip(texts, numbered, strict=True)]


def _settings(results: Results) -> Iterator[tuple[str, object]]:
    """All that could tell a run from another of the same name, the seed last."""
    try:  # settings from before an option existed have its default
        saved: Mapping[str, Any] = config.to_dict(config.from_dict(results.config))
    except InputError:
        saved = results.config
    yield from ((key, value) for key, value in config.flatten(saved) if key != "name")
    if results.imported:
        yield "file", results.imported.file
    yield "seed", results.seed


def _differs(key: str, settings: Sequence[Mapping[str, object]]) -> bool:
    return any(one.get(key, _MISSING) != settings[0].get(key, _MISSING) for one in settings[1:])


def _value(key: str, settings: Mapping[str, object]) -> str:
    """As `--set` takes it. A part that other runs leave out is on here."""
    if key not in settings:
        return _ON if any(other.startswith(f"{key}.") for other in settings) else _MISSING
    return written(settings[key])
