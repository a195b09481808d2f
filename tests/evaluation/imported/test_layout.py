"""Which array is for what: by its name alone, and never guessed."""

from collections.abc import Sequence

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.imported.given import Given
from counterpoint.evaluation.imported.layout import Layout, SetNames, SuiteNames, find_layout

CLEAN = ("logits", "labels")


def layout_of(*names: str) -> Layout:
    return find_layout(Given(names, lambda _: np.zeros(0), None, "hash"))


def test_the_clean_images_are_enough() -> None:
    assert layout_of(*CLEAN) == Layout(SetNames("logits", "labels"), None, {})
    assert layout_of("labels", "probs", "name", "classes", "dataset").clean == SetNames("probs", "labels")


def test_the_validation_part_may_be_given_otherwise() -> None:
    found = layout_of(*CLEAN, "validation_probs", "validation_labels").validation
    assert found == SetNames("validation_probs", "validation_labels")


def test_shifts_of_the_clean_images_are_one_suite() -> None:
    found = layout_of(*CLEAN, "shift/snow/2/logits", "shift/fog/10/probs", "shift/snow/10/logits", "shift/fog/2/probs")
    cells = {
        ("snow", 2): "shift/snow/2/logits",
        ("fog", 10): "shift/fog/10/probs",
        ("snow", 10): "shift/snow/10/logits",
        ("fog", 2): "shift/fog/2/probs",
    }
    assert found.suites == {"corrupted": SuiteNames("labels", cells)}
    assert (found.suites["corrupted"].shifts, found.suites["corrupted"].severities) == (("fog", "snow"), (2, 10))


def test_labels_of_their_own_make_other_images() -> None:
    shared = layout_of(*CLEAN, "shift/fog/logits", "shift/labels")
    assert shared.suites == {"corrupted": SuiteNames("shift/labels", {("fog", 1): "shift/fog/logits"})}
    found = layout_of(
        *CLEAN, "shift/b/2/logits", "shift/b/labels", "shift/fog/1/logits", "shift/a/probs", "shift/a/labels"
    )
    assert next(iter(found.suites)) == "corrupted"
    assert found.suites == {
        "corrupted": SuiteNames("labels", {("fog", 1): "shift/fog/1/logits"}),
        "b": SuiteNames("shift/b/labels", {("b", 2): "shift/b/2/logits"}),
        "a": SuiteNames("shift/a/labels", {("a", 1): "shift/a/probs"}),
    }


def test_a_name_may_be_in_any_script() -> None:
    assert layout_of(*CLEAN, "shift/夜 v2.1+x-y/logits").suites["corrupted"].shifts == ("夜 v2.1+x-y",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), "there are no predictions; give the array logits or probs (it has none)"),
        (("labels",), "there are no predictions; give the array logits or probs (it has labels)"),
        (("logits",), "there is logits, but no labels; add labels, the class number of each image"),
        (("logits", "probs", "labels"), "logits and probs are both given for the same images; give only one of them"),
        ((*CLEAN, "logit"), "unknown array 'logit'; did you mean 'logits'"),
        ((*CLEAN, "arr_0"), "unknown array 'arr_0'"),
        ((*CLEAN, "Labels"), "unknown array 'Labels'; did you mean 'labels'"),
        ((*CLEAN, "shift/fog/1/labels"), "unknown array 'shift/fog/1/labels'"),
        ((*CLEAN, "shift/fog/1/2/logits"), "unknown array 'shift/fog/1/2/logits'"),
        ((*CLEAN, "shift/fog"), "unknown array 'shift/fog'"),
        ((*CLEAN, "shift//logits"), "unknown array 'shift//logits'"),
        (
            (*CLEAN, "validation_labels"),
            "there is validation_labels, but neither validation_logits nor validation_probs",
        ),
        ((*CLEAN, "validation_logits"), "there is validation_logits, but no validation_labels"),
        (
            (*CLEAN, "validation_logits", "validation_probs", "validation_labels"),
            "validation_logits and validation_probs are both given for the same images",
        ),
        (
            (*CLEAN, "shift/fog/1/logits", "shift/fog/1/probs"),
            "shift/fog/1/logits and shift/fog/1/probs are both given for the same images",
        ),
        ((*CLEAN, "shift/fog/logits", "shift/fog/1/logits"), "are both given for the same images"),
        (
            (*CLEAN, "shift/fog/logits", "shift/fog/2/logits"),
            "'shift/fog/logits' has no severity, but other arrays of the shift 'fog' have one",
        ),
        ((*CLEAN, "shift/fog/0/logits"), "'shift/fog/0/logits' has the severity '0'; it must be a whole number from 1"),
        ((*CLEAN, "shift/fog/01/logits"), "has the severity '01'"),
        ((*CLEAN, "shift/fog/high/logits"), "has the severity 'high'"),
        ((*CLEAN, "shift/fog/²/logits"), "has the severity '²'"),
        (
            (*CLEAN, "shift/fog/1/logits", "shift/fog/2/logits", "shift/snow/1/logits"),
            "the shift 'snow' has the severities 1 and lacks 2; shifts of the same images must all have the same",
        ),
        ((*CLEAN, "shift/labels"), "there is 'shift/labels', but no predictions for these images"),
        ((*CLEAN, "shift/fog/labels"), "there is 'shift/fog/labels', but no predictions for these images"),
        (
            (*CLEAN, "shift/labels", "shift/a/labels", "shift/a/logits"),
            "there is 'shift/labels', but no predictions for these images",
        ),
        ((*CLEAN, "shift/fog/logits", "shift/Fog/logits"), "the shifts 'Fog' and 'fog' differ in capitals only"),
        ((*CLEAN, "shift/clean/logits"), "'shift/clean/logits' names the shift 'clean'"),
        (
            (*CLEAN, "outside/a/logits", "outside/a/probs"),
            "outside/a/logits and outside/a/probs are both given",
        ),
        ((*CLEAN, "outside/a/logits", "outside/A/probs"), "the outside images 'A' and 'a' differ in capitals only"),
        ((*CLEAN, "outside/../logits"), "'outside/../logits' names outside images '..'; a name may have"),
        ((*CLEAN, "outside/a/labels"), "unknown array 'outside/a/labels'"),
        ((*CLEAN, "outside/logits"), "unknown array 'outside/logits'"),
    ],
    ids=str,
)
def test_what_would_have_to_be_guessed_is_refused(names: Sequence[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        layout_of(*names)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "name", ["..", ".", ".hidden", "a\\b", "c:", "a\0", "-x", " a", "a ", "a.", "a\n", "x" * 61, "corrupted", "*"]
)
def test_a_name_that_is_none_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="a name may have up to 60 letters, digits, spaces"):
        layout_of(*CLEAN, f"shift/{name}/1/logits")
