"""What each array is for, by its name alone. Nothing is guessed: a name that is none of these is an error.

    logits or probs, labels                                  the clean images
    validation_logits or validation_probs, validation_labels the validation images
    shift/NAME/SEVERITY/logits (or probs)                    the clean images under a shift
    shift/labels                                             if these are other images: the labels of all of them
    shift/NAME/labels                                        if those of one shift are still others: its own labels
    groups, validation_groups, shift/groups, …               beside each array of labels: which images belong together
    outside/NAME/logits (or probs)                           images of none of the classes, which have no labels
    classes, name, dataset                                   what the classes, the model and the images are called

A shift without severities is shift/NAME/logits.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from counterpoint.errors import unknown
from counterpoint.evaluation.imported.given import Given
from counterpoint.evaluation.suites import CORRUPTED, TAKEN

Key = TypeVar("Key")

TEXTS = ("classes", "name", "dataset")
CLEAN, VALIDATION, SHIFT_LABELS = "labels", "validation_labels", "shift/labels"

_KNOWN = (
    *("logits", "probs", CLEAN, "validation_logits", "validation_probs", VALIDATION, *TEXTS, SHIFT_LABELS),
    *("shift/NAME/SEVERITY/logits", "shift/NAME/SEVERITY/probs", "shift/NAME/logits", "shift/NAME/probs"),
    *("shift/NAME/labels", "outside/NAME/logits", "outside/NAME/probs"),
    *("groups", "validation_groups", "shift/groups", "shift/NAME/groups"),
)
_SHIFT = re.compile(r"shift/(?P<name>[^/]+)(/(?P<severity>[^/]+))?/(?P<what>logits|probs)")
_OUTSIDE = re.compile(r"outside/(?P<name>[^/]+)/(?P<what>logits|probs)")
_OWN_LABELS = re.compile(r"shift/(?P<name>[^/]+)/labels")
_GROUPS = re.compile(r"((validation_|shift/([^/]+/)?)?)groups")
# A name becomes that of a file, and stands in tables.
_NAME = re.compile(r"\w([\w .+-]{0,58}[\w+-])?")
_TAKEN = {*TAKEN, "shifted images"}  # what those are called that share their images
_SEVERITY = re.compile(r"[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class SetNames:
    """The arrays of one set: its predictions, and its labels."""

    predictions: str
    labels: str

    @property
    def groups(self) -> str:
        """The array that may be beside the labels and says which images belong together."""
        return f"{self.labels.removesuffix('labels')}groups"


@dataclass
class SuiteNames:
    """Shifts of the same images, each at the same severities."""

    labels: str
    cells: dict[tuple[str, int], str] = field(default_factory=dict)
    """The array of predictions for each shift and severity."""

    @property
    def shifts(self) -> tuple[str, ...]:
        """Sorted by name, so that files with another order can be compared."""
        return tuple(sorted({name for name, _ in self.cells}))

    @property
    def severities(self) -> tuple[int, ...]:
        return tuple(sorted({severity for _, severity in self.cells}))


@dataclass(frozen=True)
class Layout:
    clean: SetNames
    validation: SetNames | None
    suites: Mapping[str, SuiteNames]
    """Under the name of the paper's suite the shifts that share their images; each other shift under its own name."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """For each set of outside images, by name, the array of its predictions."""


def find_layout(given: Given) -> Layout:
    """What each of the arrays is for."""
    for name in given.names:
        patterns = (_SHIFT, _OUTSIDE, _OWN_LABELS, _GROUPS)
        if name not in _KNOWN and not any(pattern.fullmatch(name) for pattern in patterns):
            raise given.wrong(str(unknown("array", name, _KNOWN)))
        if (match := _GROUPS.fullmatch(name)) and (labels := f"{match[1]}labels") not in given.names:
            raise given.wrong(
                f"there is {name!r}, but no {labels!r} of the same images; add the labels, or leave it out"
            )
    clean = _find_set(given, "")
    if clean is None:
        raise given.wrong(f"there are no predictions; give the array logits or probs (it has {_listed(given.names)})")
    return Layout(clean, _find_set(given, "validation_"), _find_suites(given), _find_outside(given))


def _find_set(given: Given, prefix: str) -> SetNames | None:
    predictions = [name for name in (f"{prefix}logits", f"{prefix}probs") if name in given.names]
    labels = f"{prefix}labels"
    if len(predictions) == 2:
        raise given.wrong(f"{' and '.join(predictions)} are both given for the same images; give only one of them")
    if not predictions:
        if prefix and labels in given.names:
            raise given.wrong(
                f"there is {labels}, but neither {prefix}logits nor {prefix}probs; give labels and "
                "predictions, or neither"
            )
        return None
    if labels not in given.names:
        raise given.wrong(f"there is {predictions[0]}, but no {labels}; add {labels}, the class number of each image")
    return SetNames(predictions[0], labels)


def _find_suites(given: Given) -> dict[str, SuiteNames]:
    suites: dict[str, SuiteNames] = {}
    for array in given.names:
        if match := _SHIFT.fullmatch(array):
            name, severity = _checked_name(given, array, match["name"]), _severity(given, array, match["severity"])
            own = f"shift/{name}/labels"
            suite = name if own in given.names else CORRUPTED.name
            shared = SHIFT_LABELS if SHIFT_LABELS in given.names else CLEAN
            cells = suites.setdefault(suite, SuiteNames(own if suite == name else shared)).cells
            _take(given, cells, (name, severity), array)
    _check_names(given, suites)
    for names in suites.values():
        _check_severities(given, names)
    return {name: suites[name] for name in sorted(suites, key=lambda name: name != CORRUPTED.name)}


def _find_outside(given: Given) -> dict[str, str]:
    found: dict[str, str] = {}
    for array in sorted(given.names):
        if match := _OUTSIDE.fullmatch(array):
            _take(given, found, _checked_name(given, array, match["name"], "outside images"), array)
    _check_capitals(given, "outside images", list(found))
    return found


def _take(given: Given, arrays: dict[Key, str], key: Key, array: str) -> None:
    """Take an array for a set of images. Logits and probabilities are not both given for the same ones."""
    if (other := arrays.setdefault(key, array)) != array:
        raise given.wrong(f"{other} and {array} are both given for the same images; give only one of them")


def _checked_name(given: Given, array: str, name: str, what: str = "the shift") -> str:
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise given.wrong(
            f"{array!r} names {what} {name!r}; a name may have up to 60 letters, digits, spaces and _ . + -, begins "
            f"with a letter or digit and ends in no space or point, and is none of {_listed(sorted(_TAKEN))}"
        )
    return name


def _severity(given: Given, array: str, text: str | None) -> int:
    """A shift without severities has one."""
    if text is not None and not _SEVERITY.fullmatch(text):
        raise given.wrong(f"{array!r} has the severity {text!r}; it must be a whole number from 1 to 9999")
    return int(text or 1)


def _check_names(given: Given, suites: Mapping[str, SuiteNames]) -> None:
    """Raise for labels without predictions, and for names that some file system takes for the same."""
    shifts = [name for suite in suites.values() for name in suite.shifts]
    for array in given.names:
        match = _OWN_LABELS.fullmatch(array)
        if (match and match["name"] not in shifts) or (array == SHIFT_LABELS and CORRUPTED.name not in suites):
            raise given.wrong(
                f"there is {array!r}, but no predictions for these images; give labels and predictions, or neither"
            )
    _check_capitals(given, "shifts", shifts)


def _check_capitals(given: Given, what: str, names: list[str]) -> None:
    for name in names:
        if alike := [other for other in names if other != name and other.casefold() == name.casefold()]:
            raise given.wrong(f"the {what} {name!r} and {alike[0]!r} differ in capitals only; give them other names")


def _check_severities(given: Given, suite: SuiteNames) -> None:
    for name in suite.shifts:
        found = sorted(severity for shift, severity in suite.cells if shift == name)
        for bare in (f"shift/{name}/logits", f"shift/{name}/probs"):
            if bare in given.names and len(found) > 1:
                raise given.wrong(
                    f"{bare!r} has no severity, but other arrays of the shift {name!r} have one; give each of "
                    "them a severity"
                )
        if lacking := [severity for severity in suite.severities if severity not in found]:
            raise given.wrong(
                f"the shift {name!r} has the severities {_listed(found)} and lacks {_listed(lacking)}; shifts of the "
                "same images must all have the same severities"
            )


def _listed(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "none"
