from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoint.augment.standard import to_unit
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.images import decode
from counterpoint.normalisation import NORMALISATION
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import read_evaluated
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction, find_correction
from counterpoint.serving.network import load_ensemble
from counterpoint.serving.predict import _FILES_AT_ONCE, Prediction, Predictor, Unread, find_files, load_predictor

UNCORRECTED = Correction(NONE, "none")


def test_it_says_what_the_network_says(bare_run: Run, pictures: list[Path], digits: DataSet) -> None:
    model, _ = load_model(bare_run, torch.device("cpu"))
    images = NORMALISATION.apply(to_unit(digits.test.images_NCHW[:5]))
    probs_MBK = model.predict_members(images).double()
    answers = list(Predictor(bare_run, UNCORRECTED, device="cpu").predict(pictures))
    for i, answer in enumerate(answers):
        assert isinstance(answer, Prediction)
        mean_K = probs_MBK[:, i].mean(0)
        assert answer.path == str(pictures[i])
        assert answer.ensemble.name == digits.test.classes[int(mean_K.argmax())]
        assert answer.ensemble.confidence == pytest.approx(float(mean_K.max()), abs=1e-5)
        classes = [digits.test.classes[int(of_member.argmax())] for of_member in probs_MBK[:, i]]
        assert [member.name for member in answer.members] == classes
        assert [member.confidence for member in answer.members] == pytest.approx(
            [float(of_member.max()) for of_member in probs_MBK[:, i]], abs=1e-5
        )
        assert answer.agree == (len(set(classes)) == 1)
        assert answer.sure is None


def test_pixels_get_the_answer_of_their_file_bit_for_bit(run: Run, pictures: list[Path]) -> None:
    predictor = Predictor(run, replace(find_correction(run.folder), sure_from=0.5), device="cpu")
    for path in pictures:
        (expected,) = predictor.predict([path])
        pixels_CHW = decode(path.read_bytes(), predictor.decoding)
        assert predictor.answer(pixels_CHW, str(path)) == expected
        assert predictor.answer(pixels_CHW).path is None


def test_the_confidence_is_the_recalibrated_one(run: Run, pictures: list[Path]) -> None:
    correction = find_correction(run.folder)
    plain, corrected = (list(Predictor(run, one, device="cpu").predict(pictures)) for one in (UNCORRECTED, correction))
    (log_temperature,) = {parameter.value for parameter in correction.recalibration.log_temperatures}
    for before, after in zip(plain, corrected, strict=True):
        assert isinstance(before, Prediction)
        assert isinstance(after, Prediction)
        assert np.sign(before.ensemble.confidence - after.ensemble.confidence) == np.sign(log_temperature)


def test_bad_files_stand_among_the_others(bare_run: Run, pictures: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_text("no picture")
    paths = [pictures[0], bad, tmp_path / "gone.png", pictures[1]] + [pictures[2]] * 70
    answers = list(Predictor(bare_run, replace(UNCORRECTED, sure_from=0.0), device="cpu").predict(paths))
    assert [answer.path for answer in answers] == [str(path) for path in paths]
    assert [type(answer) for answer in answers[:4]] == [Prediction, Unread, Unread, Prediction]
    first, second = answers[1], answers[2]
    assert isinstance(first, Unread)
    assert isinstance(second, Unread)
    assert first.error.startswith("is no picture of a known format")
    assert second.error == "cannot be read (No such file or directory)"
    assert all(answer.sure for answer in answers if isinstance(answer, Prediction))


def test_files_in_folders_are_found_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.png", "a/c.png", ".hidden/d.png", "a/.e.png", "a/Thumbs.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = list(find_files([tmp_path, Path("elsewhere.png")]))
    assert found == [tmp_path / "a" / "c.png", tmp_path / "b.png", Path("elsewhere.png")]


def test_a_correction_for_other_weights_is_refused(run: Run) -> None:
    correction = replace(find_correction(run.folder), weights="others")
    with pytest.raises(InputError, match="was recalibrated with other weights than it has now"):
        Predictor(run, correction, device="cpu")
    assert read_evaluated(run.folder).recalibrated is not None


def test_a_predictor_from_a_folder_corrects_as_the_command_does(run: Run, pictures: list[Path]) -> None:
    expected = Predictor(run, find_correction(run.folder), device="cpu", top=2).predict(pictures)
    found = load_predictor(str(run.folder), device="cpu", top=2).predict(map(str, pictures))
    assert list(found) == list(expected)
    for sure_from in (0.4, "40%"):
        assert load_predictor(run.folder, not_sure_below=sure_from, device="cpu").correction.sure_from == 0.4
    with pytest.raises(InputError, match="has no threshold for its present figures"):
        load_predictor(run.folder, not_sure_below="threshold", device="cpu")


def test_images_in_memory_get_the_probabilities_of_their_files(run: Run, pictures: list[Path], digits: DataSet) -> None:
    predictor = load_predictor(run.folder, device="cpu")
    probs_NK, members_MNK = predictor.probabilities(digits.test.images_NCHW[:5])
    answers = [answer for answer in predictor.predict(pictures) if isinstance(answer, Prediction)]
    assert [answer.ensemble.confidence for answer in answers] == probs_NK.max(axis=1).tolist()
    of_members = [[member.confidence for member in answer.members] for answer in answers]
    assert of_members == members_MNK.max(axis=2).T.tolist()


def test_arrays_may_run_backwards_and_be_read_only(bare_run: Run, digits: DataSet) -> None:
    predictor = load_predictor(bare_run.folder, device="cpu")
    images = digits.test.images_NCHW[:5].numpy()
    backwards = np.ascontiguousarray(images[..., ::-1])[..., ::-1]
    turned = np.ascontiguousarray(images.swapaxes(2, 3)).swapaxes(2, 3)
    fixed = images.copy()
    fixed.flags.writeable = False
    expected = predictor.probabilities(torch.from_numpy(images))
    for same in (images, backwards, turned, fixed):
        for found, wanted in zip(predictor.probabilities(same), expected, strict=True):
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (torch.zeros(2, 1, 32, 32), r"float32 of shape \(2, 1, 32, 32\)"),
        (np.zeros((1, 32, 32), np.uint8), r"uint8 of shape \(1, 32, 32\)"),
        (np.zeros((2, 32, 32, 1), np.uint8), r"uint8 of shape \(2, 32, 32, 1\)"),
        (np.zeros((0, 1, 32, 32), np.uint8), r"uint8 of shape \(0, 1, 32, 32\)"),
        (np.array([None]), r"object of shape \(1,\)"),
        (torch.tensor(0, dtype=torch.uint8), r"uint8 of shape \(\)"),
        ([[0]], "a list, and no tensor or NumPy array"),
        ("new.png", "a str, and no tensor or NumPy array"),
    ],
)
def test_other_images_in_memory_are_refused(bare_run: Run, images: Any, words: str) -> None:
    needed = r"they must be uint8 of shape \(N, 1, 32, 32\), with N of 1 or more"
    with pytest.raises(InputError, match=f"the images are {words}; {needed}"):
        load_predictor(bare_run.folder, device="cpu").probabilities(images)


@pytest.mark.parametrize("images", [np.zeros((2, 1, 32, 32), np.uint8), [Image.new("L", (32, 32))], b"new.png"])
def test_images_in_memory_are_no_paths(bare_run: Run, images: Any) -> None:
    predictor = load_predictor(bare_run.folder, device="cpu")
    with pytest.raises(InputError, match=r"a picture is named with a .*`probabilities` takes images in memory"):
        list(predictor.predict(images))


@pytest.mark.parametrize("top", [-1, 1.5, "3"])
def test_a_number_of_classes_that_is_none_is_refused(bare_run: Run, top: Any) -> None:
    with pytest.raises(InputError, match=f"top is {top!r}; it must be a whole number of 0 or more"):
        load_predictor(bare_run.folder, top=top, device="cpu")


def test_a_batch_has_no_more_rows_than_files_are_read_at_once(bare_run: Run) -> None:
    """On a GPU every batch is filled up to this size, also that of a single picture."""
    assert load_predictor(bare_run.folder, device="cpu")._members.images_at_once == _FILES_AT_ONCE


def test_one_path_is_a_file_or_all_files_of_a_folder(bare_run: Run, pictures: list[Path]) -> None:
    predictor = load_predictor(bare_run.folder, device="cpu")
    assert list(predictor.predict(str(pictures[0]))) == list(predictor.predict(pictures[:1]))
    (folder,) = {picture.parent for picture in pictures}
    assert list(predictor.predict(folder)) == list(predictor.predict(pictures))


def test_the_network_of_a_run_is_the_one_that_was_trained(bare_run: Run) -> None:
    ensemble = load_ensemble(bare_run.folder, device="cpu")
    expected, _ = load_model(bare_run, torch.device("cpu"))
    images = torch.randn(3, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    assert not ensemble.training
    assert torch.equal(ensemble.predict_members(images), expected.predict_members(images))
