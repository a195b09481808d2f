import pytest

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.own_images import OwnImages


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"size": 0}, "images.size is 0; it must be from 1 to 4,096"),
        ({"size": 4097}, "images.size is 4097"),
        ({"val": -0.1}, r"images.val is -0.1; it must be at least 0 and less than 1"),
        ({"test": 1.0}, r"images.test is 1.0"),
        ({"val": float("nan")}, "images.val is nan"),
        ({"val": 0.5, "test": 0.5}, "leaves nothing to train on"),
        ({"split_seed": -1}, "images.split_seed is -1; it must be 0 or more"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        OwnImages(**settings)  # type: ignore[arg-type]


def test_they_are_for_own_images_alone() -> None:
    with pytest.raises(InputError, match=r"dataset is cifar10, and the settings .* are given"):
        Experiment("a", "cifar10", images=OwnImages())
    with pytest.raises(InputError, match=r"dataset is images, and the settings .* are missing"):
        Experiment("a", "images")
