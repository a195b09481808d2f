"""What runs are called on a page: by their names, and where these are equal by what differs.

One or two settings that differ tell runs apart. Where more of them differ, or none, their folders do: a long list of
settings in every sentence hides what the sentence says.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from counterpoint.errors import listed
from counterpoint.records.results import Results
from counterpoint.records.settings import differing, settings_of, value_text

_FEW_SETTINGS = 2
_MOST_SETTINGS = 3


def run_labels(all_results: Sequence[Results], folders: Sequence[str] = ()) -> list[str]:
    """A label for each run, no two of them equal. A folder is empty where it is not known."""
    folders = folders or len(all_results) * [""]
    labels = [one.experiment for one in all_results]
    for name, count in Counter(labels).items():
        if count > 1:
            places = [place for place, one in enumerate(all_results) if one.experiment == name]
            same_name = [all_results[place] for place in places]
            additions = _told_apart(same_name, places, [folders[place] for place in places])
            for place, addition in zip(places, additions, strict=True):
                labels[place] = f"{name} ({addition})"
    return labels


def settings_apart(all_results: Sequence[Results]) -> list[str]:
    """For each run, all its settings that differ from those of other runs of its name; empty where none do."""
    found = []
    for one in all_results:
        same_name = [_settings(other) for other in all_results if other.experiment == one.experiment]
        found.append(_text_of(differing(same_name), _settings(one)))
    return found


def joined_labels(names: Sequence[str], labels: Sequence[str]) -> str:
    """A title for some runs: their common name is said once."""
    if len(set(names)) == 1 < len(names):
        additions = [label.removeprefix(f"{names[0]} (").removesuffix(")") for label in labels]
        return f"{names[0]}: {listed(additions)}"
    return listed(labels)


def _told_apart(same_name: Sequence[Results], places: Sequence[int], folders: Sequence[str]) -> list[str]:
    """The settings that differ between runs of one name, if they are few; otherwise the folders.

    Where the folders are not known or equal: the first settings, and the place among the runs if these are equal too.
    """
    settings = [_settings(one) for one in same_name]
    keys = differing(settings)
    texts = [_text_of(keys[:_MOST_SETTINGS], one) for one in settings]
    seen = Counter(texts)
    is_enough = len(seen) == len(texts) and len([key for key in keys if key != "seed"]) <= _FEW_SETTINGS
    if not is_enough and all(folders) and len(set(folders)) == len(folders):
        return list(folders)
    numbered = [f"run {place + 1}" if seen[text] > 1 else "" for text, place in zip(texts, places, strict=True)]
    return [", ".join(filter(None, both)) for both in zip(texts, numbered, strict=True)]


def _text_of(keys: Sequence[str], settings: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value_text(key, settings)}" for key in keys)


def _settings(results: Results) -> dict[str, object]:
    """All that could tell a run from another of the same name, the seed last."""
    file = {"file": results.imported.file} if results.imported else {}
    return {**settings_of(results.config), **file, "seed": results.seed}
