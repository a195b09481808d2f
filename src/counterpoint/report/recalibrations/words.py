"""What recalibrations are called, their parameters, and what they were fitted on."""

import math
from collections.abc import Sequence

from counterpoint.records.recalibrated import Care, Parameter, Recalibrated, Recalibration, Slope
from counterpoint.report.suites import corruption_label, counted
from counterpoint.report.tables import Column, Entry, Row, Table

NONE, CLEAN = "none", "before"
"""The names of no recalibration, and of one temperature for all images that was fitted on clean ones."""

WITHOUT = "no recalibration"
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
    "clean": "clean images count and shifted ones do not",
    "both": "clean and shifted images count alike",
    "shift": "shifted images count and clean ones do not",
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


def quoted(name: str, several: bool) -> str:
    """The same within a sentence."""
    return WITHOUT if name == NONE else f"“{way_name(name, several)}”"


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
    signals = "; entropy and disagreement in % of the most that entropy can be" if moving else ""
    both = "; both: clean and shifted images" if found.fitted_on.shift else ""
    return Table(
        f"{caption}; ± one standard error over images{signals}{both}",
        (Column("Temperature"), Column("Fitted on"), Column("Parameters")),
        tuple(
            Row(
                way_name(name, several),
                (Entry(_FITTED_ON[one.fitted_on]), Entry(parameters_in_words(one))),
                "words",
            )
            for name, one in ((name, scaled.recalibration) for name, scaled in found.ways.items())
        ),
    )


def fitted_in_words(found: Recalibrated, is_shifted: bool) -> tuple[str, ...]:
    """What was fitted on what. `is_shifted` says whether there are figures of corrupted images."""
    on = found.fitted_on
    shifted = [f"Corrupted images: {found.corrupted_how}."] if is_shifted else []
    return (
        f"Fitted by NLL on {on.images.images:,} {on.images.part} images of {on.images.dataset} ({on.run}), "
        "never on test images.",
        *_shift_in_words(found),
        f"Clean images: {found.clean_how}.",
        *shifted,
    )


def _shift_in_words(found: Recalibrated) -> Sequence[str]:
    shift = found.fitted_on.shift
    if shift is None:
        return ()
    names = ", ".join(map(corruption_label, shift.corruptions))
    severities = counted(len(shift.severities), "severity", "severities")
    return (
        f"Shifted images: {shift.part} images under {names}, each at {severities}; no test set has these "
        f"corruptions. In fits on both, {_CARES[found.care]} (care: {found.care}).",
    )
