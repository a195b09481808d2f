"""Every array is checked, and the error names it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.evaluation.imported.checks import read_classes, read_set, read_text
from counterpoint.evaluation.imported.given import Given, given_arrays, given_file
from counterpoint.evaluation.imported.layout import SetNames
from tests.made_predictions import made_labels, made_logits, save, softmax

LABELS = made_labels(7)
LOGITS = made_logits(LABELS, members=3)
PROBS = softmax(LOGITS)


def given(**arrays: Any) -> Given:
    return given_arrays({"logits": LOGITS, "probs": PROBS, "labels": LABELS} | arrays)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
def test_logits_are_kept_as_they_are(dtype: type[np.generic]) -> None:
    found = read_set(given(logits=LOGITS.astype(dtype)), SetNames("logits", "labels"))
    assert np.array_equal(found.logits_MNK, LOGITS.astype(dtype))
    assert found.logits_MNK.dtype == (np.float64 if dtype is np.int8 else dtype)
    assert np.array_equal(found.labels_N, LABELS)
    assert (found.size, found.precision) == ((3, 4), f"logits in {np.dtype(dtype)}, as given")


def test_one_model_needs_no_axis_of_members() -> None:
    found = read_set(given(logits=LOGITS[0]), SetNames("logits", "labels"))
    assert np.array_equal(found.logits_MNK, LOGITS[:1])
    assert found.size == (1, 4)


def test_probabilities_become_logits_that_give_them_back() -> None:
    found = read_set(given(), SetNames("probs", "labels"))
    assert np.abs(softmax(found.logits_MNK) - PROBS).max() < 1e-15
    assert found.precision == "probabilities in float64, as given"


def test_a_probability_of_zero_counts_as_the_smallest_float32() -> None:
    certain_NK = np.eye(4)[LABELS]
    found = read_set(given(probs=certain_NK), SetNames("probs", "labels"))
    assert np.isfinite(found.logits_MNK).all()
    assert np.array_equal(softmax(found.logits_MNK)[0].max(axis=1), np.ones(7))
    assert found.logits_MNK.min() == np.log(float(np.finfo(np.float32).tiny))


def test_the_key_is_one_of_labels_and_classes() -> None:
    def key(labels: Any, classes: int = 4) -> str:
        arrays = {"logits": np.zeros((len(labels), classes)), "labels": np.asarray(labels)}
        return read_set(given_arrays(arrays), SetNames("logits", "labels")).key

    assert key([0, 1, 2]) == key(np.array([0, 1, 2], np.uint8)) == key(np.array([0, 1, 2], ">i4"))
    assert len({key([0, 1, 2]), key([0, 2, 1]), key([0, 1, 2, 0]), key([0, 1, 2], 5)}) == 4


def changed(array: np.ndarray, value: float) -> np.ndarray:
    other = array.copy()
    other[-1, -1, -1] = value
    return other


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logits": LOGITS[0, 0]}, "'logits' has the shape (4,); it must be (images, classes) or (members, images"),
        ({"logits": LOGITS[None]}, "'logits' has the shape (1, 3, 7, 4); it must be (images, classes)"),
        ({"logits": LOGITS[:, :0]}, "'logits' has the shape (3, 0, 4); it must have at least one image"),
        ({"logits": LOGITS[:0]}, "'logits' has the shape (0, 7, 4); it must have at least one image"),
        (
            {"logits": LOGITS[..., :1]},
            "'logits' has the shape (3, 7, 1); it must have at least one image and two classes",
        ),
        ({"logits": changed(LOGITS, np.nan)}, "'logits' holds nan; every value must be finite"),
        ({"logits": changed(LOGITS, -np.inf)}, "'logits' holds -inf; every value must be finite"),
        ({"logits": LOGITS.astype(str)}, "'logits' has dtype <U"),
        ({"logits": LOGITS + 0j}, "'logits' has dtype complex128; it must hold real numbers"),
        ({"probs": changed(PROBS, np.nan)}, "'probs' holds nan; every value must lie between 0 and 1"),
        ({"probs": changed(PROBS, -0.001)}, "'probs' holds -0.001; every value must lie between 0 and 1"),
        ({"probs": changed(PROBS, 1.001)}, "'probs' holds 1.001; every value must lie between 0 and 1"),
        ({"probs": PROBS * 1.0002}, "a row of 'probs' sums to 1.0002; each must sum to 1"),
        ({"probs": LOGITS}, "every value must lie between 0 and 1"),
        (
            {"labels": LABELS[:-1]},
            "'logits' has 7 images, and 'labels' has 6 labels; axes are (members, images, classes)",
        ),
        ({"labels": LABELS[None]}, "'labels' has shape (1, 7); there are 7 predictions"),
        ({"labels": LABELS.astype(float)}, "'labels' has dtype float64; class numbers must be integers"),
        ({"labels": LABELS > 1}, "'labels' has dtype bool; class numbers must be integers"),
        ({"labels": LABELS.astype(str)}, "'labels' has dtype <U"),
        ({"labels": LABELS - 4}, "with 4 classes 0 … 3 exist"),
        ({"labels": LABELS + 1}, "'labels' holds 4; with 4 classes 0 … 3 exist"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_wrong_array_is_refused_by_name(arrays: dict[str, Any], message: str) -> None:
    (name,) = arrays
    predictions = name if name != "labels" else "logits"
    with pytest.raises(InputError) as refused:
        read_set(given(**arrays), SetNames(predictions, "labels"))
    assert message in str(refused.value)


def test_rounding_is_no_error() -> None:
    rounded = PROBS.astype(np.float32)
    assert np.abs(rounded.sum(axis=2, dtype=np.float64) - 1).max() > 0
    found = read_set(given(probs=rounded), SetNames("probs", "labels"))
    assert np.abs(softmax(found.logits_MNK) - PROBS).max() < 1e-6
    read_set(given(probs=PROBS * 1.00009), SetNames("probs", "labels"))


def test_every_set_has_the_members_and_classes_of_the_clean_one() -> None:
    with pytest.raises(
        InputError, match="'logits' has 3 members and 4 classes, and the predictions for the clean images have 2 and 4"
    ):
        read_set(given(), SetNames("logits", "labels"), (2, 4))
    with pytest.raises(
        InputError, match="'logits' has 3 members and 4 classes, and the predictions for the clean images have 3 and 5"
    ):
        read_set(given(), SetNames("logits", "labels"), (3, 5))


def test_a_shift_of_other_length_says_what_its_labels_would_be_called() -> None:
    source = given(**{"shift/fog/2/logits": LOGITS[:, :5]})
    with pytest.raises(InputError, match=r"give their labels as shift/fog/labels, or as shift/labels for all"):
        read_set(source, SetNames("shift/fog/2/logits", "labels"))


def test_a_file_is_named_with_its_array(tmp_path: Path) -> None:
    path = save(tmp_path / "p.npz", {"logits": changed(LOGITS, np.inf), "labels": LABELS})
    with pytest.raises(InputError, match=r"'logits' of .*p\.npz holds inf"):
        read_set(given_file(path), SetNames("logits", "labels"))


def test_names_are_texts() -> None:
    assert read_text(given(name="a forest"), "name", "otherwise") == "a forest"
    assert read_text(given(), "name", "otherwise") == "otherwise"
    for wrong in (["a", "b"], 3, b"bytes"):
        with pytest.raises(InputError, match=r"'name' is .*; it must be one text"):
            read_text(given(name=wrong), "name", "")
    for text in ("", "  ", "a\nb", "\x1b[31mred", "x" * 201):
        with pytest.raises(InputError, match=r"'name' holds .*; it must be a text of 1 to 200 characters"):
            read_text(given(name=text), "name", "")


def test_classes_are_as_many_different_names() -> None:
    assert read_classes(given(classes=["猫", "b", "c", "d"]), 4) == ("猫", "b", "c", "d")
    assert read_classes(given(), 4) == ()
    for wrong in (["a", "b", "c"], ["a", "b", "c", "c"], [0, 1, 2, 3], [["a", "b", "c", "d"]]):
        with pytest.raises(InputError, match=r"'classes' is .*; it must be a list of 4 different names"):
            read_classes(given(classes=wrong), 4)
    with pytest.raises(InputError, match="'classes' holds"):
        read_classes(given(classes=["a", "b", "c", "\t"]), 4)


def test_objects_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="'labels' holds Python objects"):
        given(labels=np.array([0, None], object))
    with pytest.raises(InputError, match="'logits' cannot be read as an array"):
        given(logits=[[1, 2], [3]])


def test_tensors_of_a_training_loop_are_taken() -> None:
    logits = torch.tensor([[0.5, -3.0]], requires_grad=True)
    for tensor in (logits, logits.to(torch.bfloat16)):
        array = given(logits=tensor).read("logits")
        assert array.dtype == np.float32
        assert array.tolist() == [[0.5, -3.0]]


def test_arrays_have_a_hash_of_all_that_they_hold() -> None:
    hashes = [
        given().sha256,
        given(labels=LABELS[::-1]).sha256,
        given(labels=LABELS.astype(np.int32)).sha256,
        given(logits=LOGITS[0]).sha256,
        given(name="a").sha256,
        given(dataset="a").sha256,
    ]
    assert len(set(hashes)) == len(hashes)
    assert given_arrays({"labels": LABELS, "probs": PROBS, "logits": LOGITS}).sha256 == hashes[0]
    assert given(logits=np.asfortranarray(LOGITS)).sha256 == hashes[0]
