"""What recalibrations are called, their parameters, and what they were fitted on."""

import math
from collections.abc import Iterable

from counterpoint.records.images import Shift
from counterpoint.records.recalibrated import Care, Parameter, Recalibrated, Recalibration, Slope
from counterpoint.report.run import drawn_over
from counterpoint.report.suites import corruption_label, counted
from counterpoint.report.tables import Column, Table, plain_row

NONE, CLEAN = "none", "before"
"""The names of no recalibration, and of one temperature for all images that was fitted on clean ones."""

WITHOUT = "no recalibration"
LINES = ("first", "second", "third")
"""The lines of a chart of recalibrations, as the style sheet knows them."""
_SHIFTED = ", shifted"
_NAMES = {
    NONE: WITHOUT,
    CLEAN: "before averaging",
    "after": "after averaging",
    "per-member": "one per member",
    "by both": "by entropy and disagreement",
}
_OF_ONE_NETWORK = {CLEAN: "one for all images"}
_FITTED_ON = {"clean": "clean", "shifted": "both"}
_CARES: dict[Care, str] = {
    "clean": "only the clean images count",
    "both": "both count alike",
    "shift": "only the corrupted images count",
}
_MEANINGS = {
    CLEAN: "One temperature divides the logits of every member. Then the probabilities are averaged.",
    "after": "The members’ probabilities are averaged first. Then one temperature corrects the average.",
    "per-member": "Each member has a temperature of its own. Then the probabilities are averaged.",
    "by entropy": "Each image has its own temperature. It grows with the entropy: how unsure the prediction is.",
    "by disagreement": "Each image has its own temperature. It grows with the disagreement: how far the members lie "
    "apart.",
    "by both": "Each image has its own temperature. It grows with the entropy and with the disagreement.",
}
_SPACE = "\N{NO-BREAK SPACE}"
_STEP = 0.1  # of a signal, for which a slope is shown as a factor


def is_ensemble(found: Recalibrated) -> bool:
    return any(len(scaled.clean.members) > 1 for scaled in found.ways.values())


def way_name(name: str, several: bool) -> str:
    """A recalibration in plain words. Of one network there is nothing to average. A name that is not known stays."""
    kind = name.removesuffix(_SHIFTED)
    names = _NAMES if several else _NAMES | _OF_ONE_NETWORK
    return names.get(kind, kind) + name[len(kind) :]


def label_of(name: str, found: Recalibrated) -> str:
    """The name, and whether this recalibration was chosen."""
    chosen = "chosen: " if found.choice and found.choice.chosen == name else ""
    return chosen + way_name(name, is_ensemble(found))


def compared_ways(found: Recalibrated) -> list[str]:
    """A temperature of clean images and what `predict` uses, as far as they are there, or else the first of all."""
    names = (CLEAN, found.best)
    return list(dict.fromkeys(name for name in names if name in found.ways)) or [next(iter(found.ways))]


def meanings(found: Iterable[Recalibrated]) -> dict[str, str]:
    """What each name stands for, of all recalibrations of these runs."""
    names = list(dict.fromkeys((name, is_ensemble(one)) for one in found for name in one.ways))
    kinds = [(name.removesuffix(_SHIFTED), several) for name, several in names]
    of_one = _MEANINGS | {CLEAN: "One temperature for all images."}
    words = {
        way_name(kind, several): (_MEANINGS if several else of_one)[kind]
        for kind, several in kinds
        if kind in _MEANINGS
    }
    if any(name.endswith(_SHIFTED) for name, _ in names):
        words[_SHIFTED.strip(", ")] = "The fit uses clean and corrupted validation images, not clean ones alone."
    return words


def quoted(name: str, several: bool) -> str:
    """The same within a sentence."""
    return WITHOUT if name == NONE else f"“{way_name(name, several)}”"


def named(name: str, several: bool) -> str:
    """The same after the word “recalibration”."""
    return NONE if name == NONE else way_name(name, several)


def used_in_words(found: Recalibrated) -> str:
    """Which of them the other commands apply, and why."""
    why = "it was chosen" if found.choice else "it has the lowest NLL on validation images"
    return f"The commands predict, serve and export use {quoted(found.best, is_ensemble(found))}: {why}."


def parameters_in_words(recalibration: Recalibration) -> str:
    """Temperatures with their standard errors, and for each signal the factor by which it raises them."""
    temperatures = ", ".join(_power(one, 1.0) for one in recalibration.log_temperatures)
    return ", ".join((f"T{_SPACE}={_SPACE}{temperatures}", *map(_slope_in_words, recalibration.slopes)))


def _slope_in_words(one: Slope) -> str:
    """A slope that is held at an end of what is allowed has no standard error."""
    end = "" if one.slope.standard_error is not None else " (the most)" if one.slope.value > 0 else " (the least)"
    return f"×{_SPACE}{_power(one.slope, _STEP)} per {100 * _STEP:.0f} % of {one.signal}{end}"


def _power(parameter: Parameter, times: float) -> str:
    """e to so many times the parameter, with the standard error that follows from the parameter's."""
    value = math.exp(times * parameter.value)
    if parameter.standard_error is None:
        return f"{value:.2f}"
    error = value * times * parameter.standard_error
    digits = next((digits for digits in (2, 3) if round(error, digits) > 0), 4)
    return f"{value:.{digits}f}{_SPACE}±{_SPACE}{error:.{digits}f}"


def parameters_table(found: Recalibrated, caption: str = "what was fitted") -> Table:
    several = is_ensemble(found)
    moving = any(scaled.recalibration.slopes for scaled in found.ways.values())
    signals = "; entropy and disagreement in % of the largest possible entropy" if moving else ""
    both = "; both: clean and corrupted images" if found.fitted_on.shift else ""
    return Table(
        f"{caption}; ± one standard error {drawn_over(found.fitted_on.images.groups)}{signals}{both}",
        (Column("Temperature"), Column("Fitted on"), Column("Parameters")),
        tuple(
            plain_row(way_name(name, several), _FITTED_ON[one.fitted_on], parameters_in_words(one), kind="words")
            for name, one in ((name, scaled.recalibration) for name, scaled in found.ways.items())
        ),
    )


def fitted_in_words(found: Recalibrated, is_shifted: bool) -> tuple[str, ...]:
    """What was fitted on what. `is_shifted` says whether there are figures of corrupted images."""
    on = found.fitted_on
    hows = {"clean": found.clean_how} | ({"corrupted": found.corrupted_how} if is_shifted else {})
    if len(set(hows.values())) == 1:
        hows = {" and ".join(hows): found.clean_how}
    return (
        f"The fits minimise the NLL of {on.images.images:,} {on.images.part} images of {on.images.dataset} "
        f"({on.run}). No test image was used.",
        *([_shift_in_words(found, on.shift)] if on.shift else []),
        *(f"The {images} images were recalibrated like this: {how}." for images, how in hows.items()),
    )


def _shift_in_words(found: Recalibrated, shift: Shift) -> str:
    names = ", ".join(map(corruption_label, shift.corruptions))
    severities = counted(len(shift.severities), "severity", "severities")
    return (
        f"Some fits also use corrupted {shift.part} images, with these corruptions at {severities} each: {names}. No "
        f"test set has these corruptions. In a fit on clean and corrupted images, {_CARES[found.care]} "
        f"(care: {found.care})."
    )
