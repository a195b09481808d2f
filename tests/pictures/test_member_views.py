from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoint.augment import make_views
from counterpoint.config import Experiment
from counterpoint.data.digits import load_digits
from counterpoint.errors import InputError
from counterpoint.experiments import find_experiment
from counterpoint.pictures.member_views import draw_views
from counterpoint.policy import Adversarial
from counterpoint.seeding import Stream
from tests.small import TINY, noise_data

EXPERIMENT = replace(find_experiment("digits/quickstart"), train_on="all")


def tiles(path: Path, rows: int, columns: int) -> np.ndarray:
    """The pictures of a sheet, brought back to 32 × 32 grey."""
    sheet = np.asarray(Image.open(path))
    left = sheet.shape[1] - 20 - columns * 100 + 4
    return np.stack(
        [
            [
                sheet[48 + 100 * r : 144 + 100 * r : 3, left + 100 * c : left + 100 * c + 96 : 3, 0]
                for c in range(columns)
            ]
            for r in range(rows)
        ]
    )


def test_the_picture_shows_what_members_see(tmp_path: Path) -> None:
    data = load_digits()
    draw_views(EXPERIMENT, data, tmp_path / "views.png", images=3, seed=4, epoch=2)
    shown = tiles(tmp_path / "views.png", 3, 5)
    numbers = Stream(4, "order", 2).permutation(len(data.train))[:3]
    images = data.train.images_NCHW[numbers]
    assert np.array_equal(shown[:, 0], images[:, 0].numpy())
    views = make_views(images, EXPERIMENT.policy, num_members=4, indices_B=numbers, seed=4, epoch=2)
    expected = ((views / 2 + 0.5) * 255).round().byte()[:, :, 0].transpose(0, 1).numpy()
    assert np.array_equal(shown[:, 1:], expected)


def test_the_adversarial_perturbation_is_in_it(tmp_path: Path) -> None:
    data = load_digits()
    adversarial = Adversarial((0.0, 0.1, 0.2, 0.3), p=1.0)
    for name, policy in {
        "without": EXPERIMENT.policy,
        "with": replace(EXPERIMENT.policy, adversarial=adversarial),
    }.items():
        draw_views(replace(EXPERIMENT, policy=policy), data, tmp_path / f"{name}.png", images=2)
    without, perturbed = (tiles(tmp_path / f"{name}.png", 2, 5).astype(int) for name in ("without", "with"))
    moved = np.abs(perturbed - without).max(axis=(0, 2, 3))
    assert (moved[:2] == 0).all(), "the image and the member of severity 0"
    assert (moved[2:] > 0).all()
    assert torch.tensor(moved).max() <= 0.3 * 255 / 2 + 1


def test_too_many_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2000 images cannot be shown; give 1 to 1347"):
        draw_views(EXPERIMENT, load_digits(), tmp_path / "views.png", images=2000)


@pytest.mark.parametrize(
    ("experiment", "last"), [(EXPERIMENT, EXPERIMENT.epochs - 1), (replace(EXPERIMENT, batch_size=128, steps=12), 1)]
)
def test_an_epoch_that_is_never_trained_is_refused(tmp_path: Path, experiment: Experiment, last: int) -> None:
    draw_views(experiment, load_digits(), tmp_path / "views.png", images=1, epoch=last)
    with pytest.raises(
        InputError, match=f"epoch is {last + 1}; digits/quickstart is trained in the epochs 0 to {last}"
    ):
        draw_views(experiment, load_digits(), tmp_path / "views.png", images=1, epoch=last + 1)


def test_a_name_that_the_font_cannot_draw_loses_its_accents_or_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        "counterpoint.pictures.member_views.draw_sheet",
        lambda rows, *_: drawn.extend(label for label, _ in rows),
    )
    data = noise_data(12, 3)
    named = replace(data.train, classes=("old_shoe", "grün, groß", "猫"))
    draw_views(TINY, replace(data, train=named), tmp_path / "views.png", images=12)
    assert {label.partition(", no. ")[0] for label in drawn} == {"old shoe", "grun, gross", "class 3"}
