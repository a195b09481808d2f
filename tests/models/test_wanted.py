"""What is wanted of a network, and what is said when a library is not there."""

import sys
from dataclasses import replace

import pytest

from counterpoint.errors import InputError
from counterpoint.models import Wanted, describe_model, wanted_of
from counterpoint.models.wanted import published_normalisation
from counterpoint.normalisation import Normalisation
from tests.small import TINY


@pytest.mark.parametrize(
    ("name", "package"),
    [("timm/resnet18", "timm"), ("torchvision/resnet18", "torchvision"), ("hf/a/b", "transformers")],
)
def test_a_missing_package_is_named_with_what_to_type(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as Python itself marks what cannot be imported
    with pytest.raises(InputError, match=f"{name} needs {package}, which is not installed; pip install {package}"):
        describe_model(Wanted(name, {}, 10, 3))


def test_a_package_that_does_not_fit_this_torch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> object:
        raise RuntimeError("operator torchvision::nms does not exist\nand more")

    monkeypatch.setattr("counterpoint.models.wanted.import_module", broken)
    with pytest.raises(
        InputError, match=r"torchvision, which cannot be imported here \(RuntimeError: operator .*exist\)"
    ):
        describe_model(Wanted("torchvision/resnet18", {}, 10, 3))
    # The library that does not fit may be one that the wanted library needs.
    with pytest.raises(
        InputError, match=r"needs timm, which cannot be imported.*; install the torchvision that belongs"
    ):
        describe_model(Wanted("timm/resnet18", {}, 10, 3))


def test_an_experiments_fields_are_options_of_the_models_that_have_them() -> None:
    resnet = wanted_of(replace(TINY, depth=14), 5, 1, (8, 8), pretrained=False)
    assert resnet == Wanted("resnet", {"depth": 14, "width": 4}, 5, 1, (8, 8))
    own = replace(TINY, model="timm/a", model_options={"drop_rate": 0.5}, pretrained=True)
    assert wanted_of(own, 5, 3, (8, 8), pretrained=True) == Wanted("timm/a", {"drop_rate": 0.5}, 5, 3, (8, 8), True)
    assert wanted_of(own, 5, 3, (8, 8), pretrained=True).short == "a"


def test_grey_images_get_the_mean_of_the_colours() -> None:
    mean, std = (0.1, 0.2, 0.6), (0.2, 0.2, 0.5)
    assert published_normalisation(mean, std, 3) == Normalisation(mean, std)
    grey = published_normalisation(mean, std, 1)
    assert (grey.mean, grey.std) == pytest.approx((0.3, 0.3))
    with pytest.raises(InputError, match="is for 3 channels, and the images have 4"):
        published_normalisation(mean, std, 4)
