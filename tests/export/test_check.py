from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.data import load
from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.export.check import Agreement, check_images, compare, refuse_difference
from counterpoint.recalibration.choose import NONE
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction
from tests.export.conftest import MakeTrained

PLAIN = Correction(NONE, "none")


def test_the_data_sets_own_test_images_are_taken_where_they_are(trained: MakeTrained) -> None:
    images_NCHW, words = check_images(trained(), None)
    assert words == "16 test images of digits and 12 made ones"
    assert images_NCHW.shape == (28, 1, 32, 32)
    assert torch.equal(images_NCHW[:16], load("digits").test.images_NCHW[:16])
    made = images_NCHW[16:].flatten(1)
    assert len(torch.unique(made, dim=0)) == 12
    assert [int(value) for value in torch.unique(made[made.min(1).values == made.max(1).values])] == [0, 255]


def test_made_images_alone_do_where_there_are_no_others(trained: MakeTrained, tmp_path: Path) -> None:
    images_NCHW, words = check_images(trained("shared BatchNorm", "cifar10"), tmp_path)
    assert words == "12 made images, since those of cifar10 are not at hand"
    assert images_NCHW.shape == (12, 3, 32, 32)


def test_images_of_another_size_are_not_those_of_the_run(trained: MakeTrained) -> None:
    run = trained("shared BatchNorm", "cifar10")
    _, words = check_images(replace(run, experiment=replace(run.experiment, dataset="digits")), None)
    assert words.startswith("12 made images")


def said_by(run: Run, images_NHWC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The unfolded network's probabilities."""
    model, _ = load_model(run, torch.device("cpu"))
    seen = run.description.normalisation.apply(torch.from_numpy(images_NHWC).permute(0, 3, 1, 2) / 255)
    members_MNK = model.predict_members(seen)
    return members_MNK.mean(0).numpy(), members_MNK.numpy()


def test_the_largest_difference_is_found_wherever_it_is(trained: MakeTrained) -> None:
    run = trained()
    model, _ = load_model(run, torch.device("cpu"))
    images_NCHW, _ = check_images(run, None)
    sizes: list[int] = []

    def compared(member: int | None, change: float) -> float:
        def exported(images_NHWC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            sizes.append(len(images_NHWC))
            probs_NK, members_MNK = said_by(run, images_NHWC)
            changed = probs_NK if member is None else members_MNK[member]
            changed[-1, 7] += change
            return probs_NK, members_MNK

        return compare(exported, model, run, PLAIN, images_NCHW)

    assert compared(None, 0.0) < 1e-5
    assert sizes == [1, 27]
    assert compared(None, 0.25) == pytest.approx(0.25, abs=1e-5)
    assert compared(1, -0.125) == pytest.approx(0.125, abs=1e-5)
    assert np.isnan(compared(None, float("nan")))
    assert np.isnan(compared(0, float("nan")))


def test_another_shape_is_a_difference(trained: MakeTrained) -> None:
    run = trained()
    model, _ = load_model(run, torch.device("cpu"))

    def exported(images_NHWC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probs_NK, members_MNK = said_by(run, images_NHWC)
        return probs_NK, members_MNK[:1]

    assert compare(exported, model, run, PLAIN, check_images(run, None)[0]) == float("inf")


@pytest.mark.parametrize("difference", [1.1e-4, 0.3, float("inf"), float("nan")])
def test_a_difference_is_refused(difference: float) -> None:
    with pytest.raises(InputError, match=r"model\.onnx was not written: .* by up to .* on 5 images, and 0\.0001 is"):
        refuse_difference(Agreement(difference, "5 images"), Path("model.onnx"))


def test_rounding_is_not() -> None:
    refuse_difference(Agreement(9e-5, "5 images"), Path("model.onnx"))
