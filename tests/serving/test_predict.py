from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

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
from counterpoint.serving.predict import Prediction, Predictor, Unread, find_files

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
