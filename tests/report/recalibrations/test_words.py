import math

import pytest

from counterpoint.records.recalibrated import Parameter, Recalibrated, Recalibration, Slope
from counterpoint.report.recalibrations.words import (
    fitted_in_words,
    meanings,
    parameters_in_words,
    parameters_table,
    quoted,
    way_name,
)
from tests.report.made import MakeEvaluated, changed, changed_all


def record(make_evaluated: MakeEvaluated, members: int = 2) -> Recalibrated:
    found = make_evaluated(members=members, shifted=True, more=True).recalibrated
    assert found is not None
    return found


def said(recalibration: Recalibration) -> str:
    return parameters_in_words(recalibration).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("name", "of_ensemble", "of_network"),
    [
        ("none", "no recalibration", "no recalibration"),
        ("before", "before averaging", "one for all images"),
        ("before, shifted", "before averaging, shifted", "one for all images, shifted"),
        ("per-member, shifted", "one per member, shifted", "one per member, shifted"),
        ("by entropy", "by entropy", "by entropy"),
        ("by both", "by entropy and disagreement", "by entropy and disagreement"),
        ("<new>", "<new>", "<new>"),
    ],
)
def test_names_in_plain_words(name: str, of_ensemble: str, of_network: str) -> None:
    assert (way_name(name, True), way_name(name, False)) == (of_ensemble, of_network)


def test_in_a_sentence_only_names_are_quoted() -> None:
    assert (quoted("none", True), quoted("after", True)) == ("no recalibration", "“after averaging”")


def test_a_temperature_with_its_standard_error() -> None:
    one = Recalibration("before", "clean", (Parameter(math.log(1.5), 0.02),))
    assert said(one) == "T = 1.50 ± 0.03", "the error of e^x is e^x times that of x"
    many = Recalibration("per-member", "clean", (Parameter(math.log(0.61), 0.05), Parameter(math.log(2), 0.1)))
    assert said(many) == "T = 0.61 ± 0.03, 2.00 ± 0.20"


@pytest.mark.parametrize(
    ("error", "expected"),
    [(0.004, "1.000 ± 0.004"), (0.0004, "1.0000 ± 0.0004"), (0.0, "1.0000 ± 0.0000"), (None, "1.00")],
)
def test_a_small_error_is_not_shown_as_none(error: float | None, expected: str) -> None:
    assert said(Recalibration("before", "clean", (Parameter(0.0, error),))) == f"T = {expected}"


def test_slopes_are_factors_for_a_tenth_of_a_signal() -> None:
    slopes = (Slope("entropy", Parameter(2.0, 0.5)), Slope("disagreement", Parameter(0.0)))
    found = Recalibration("before", "shifted", (Parameter(0.0, 0.1),), slopes)
    factor = math.exp(0.2)
    assert said(found) == (
        f"T = 1.00 ± 0.10, × {factor:.2f} ± {factor * 0.05:.2f} per 10 % of entropy, "
        "× 1.00 per 10 % of disagreement (the least)"
    )
    steepest = Recalibration("before", "shifted", (Parameter(0.0),), (Slope("entropy", Parameter(50.0)),))
    assert said(steepest) == "T = 1.00, × 148.41 per 10 % of entropy (the most)"


def test_the_table_says_what_each_was_fitted_on(make_evaluated: MakeEvaluated) -> None:
    found = record(make_evaluated)
    table = parameters_table(found)
    assert [(row.label, row.entries[0].text) for row in table.rows] == [
        ("before averaging", "clean"),
        ("after averaging", "clean"),
        ("one per member", "clean"),
        ("before averaging, shifted", "both"),
        ("after averaging, shifted", "both"),
        ("one per member, shifted", "both"),
        ("by entropy", "both"),
        ("by disagreement", "both"),
        ("by entropy and disagreement", "both"),
    ]
    assert [row.entries[1].text for row in table.rows] == [
        parameters_in_words(scaled.recalibration) for scaled in found.ways.values()
    ]
    alone = changed_all(found, {"ways": {"before": found.ways["before"]}, "fitted_on.shift": None})
    assert parameters_table(alone).caption == "what was fitted; ± one standard error over images"


def test_what_it_was_fitted_on(make_evaluated: MakeEvaluated) -> None:
    found = record(make_evaluated)
    assert fitted_in_words(found, True) == (
        "The fits minimise the NLL of 120 validation images of digits (this run). No test image was used.",
        "Some fits also use corrupted validation images, with these corruptions at 2 severities each: Speckle noise, "
        "Gaussian blur, Spatter, Saturate. No test set has these corruptions. In a fit on clean and corrupted images, "
        "both count alike (care: both).",
        "The clean images were recalibrated like this: cross-fitted on two seeded halves of the validation images.",
        "The corrupted images were recalibrated like this: parameters of all validation images.",
    )
    assert len(fitted_in_words(changed(found, "fitted_on.shift", None), False)) == 2
    alike = changed(found, "clean_how", found.corrupted_how)
    (*_, last) = fitted_in_words(alike, True)
    assert last == "The clean and corrupted images were recalibrated like this: parameters of all validation images."


def test_every_name_is_explained(make_evaluated: MakeEvaluated) -> None:
    ensemble, single = record(make_evaluated), record(make_evaluated, members=1)
    names = {way_name(name, True).removesuffix(", shifted") for name in ensemble.ways}
    assert meanings([ensemble]).keys() == names | {"shifted"}
    assert list(meanings([single])) == ["one for all images", "by entropy", "shifted"]
    assert meanings([single, ensemble])["one for all images"] == "One temperature for all images."
