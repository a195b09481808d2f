"""torchvision's models, where torchvision is installed."""

from pathlib import Path
from typing import Any

import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.models import Wanted, describe_model
from counterpoint.normalisation import Normalisation
from tests.models.conftest import MakeModel
from tests.other_models import needs

pytestmark = [needs("torchvision"), pytest.mark.filterwarnings("default")]


def test_a_model_has_our_classes(make_model: MakeModel) -> None:
    first, again = (make_model("torchvision/resnet18") for _ in "ab")
    assert first(torch.randn(2, 3, 32, 32)).shape == (2, 7)
    assert torch.equal(first.state_dict()["fc.weight"], again.state_dict()["fc.weight"])


def test_the_normalisation_is_torchvisions() -> None:
    facts = describe_model(Wanted("torchvision/resnet18", {}, 7, 3))
    assert facts.normalisation == Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("torchvision/resnet1", {}, r"unknown model 'torchvision/resnet1'; did you mean 'torchvision/resnet18'"),
        ("torchvision/fcn_resnet50", {}, r"unknown model 'torchvision/fcn_resnet50'"),
        ("torchvision/resnet18", {"colour": 1}, "cannot be made with model_options.colour=1: TypeError: .*colour"),
        (
            "torchvision/resnet18",
            {"weights": "DEFAULT"},
            "model_options.weights cannot be set: counterpoint decides it",
        ),
        (
            "torchvision/vit_b_16",
            {},
            r"torchvision/vit_b_16 does not take images with 3 channels of 32×32 pixels \(AssertionError: .*\); a "
            r"transformer has model_options.image_size=32 \(and patch_size\)",
        ),
        ("torchvision/googlenet", {}, "returns GoogLeNetOutputs for 2 images in training; it must return logits"),
    ],
)
def test_what_cannot_be_made_is_refused(
    make_model: MakeModel, name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_model(name, **options)


def test_grey_images_are_refused_with_the_reason(make_model: MakeModel) -> None:
    with pytest.raises(
        InputError, match=r"takes three channels, and these images have 1; torchvision has no option for"
    ):
        make_model("torchvision/resnet18", channels=1)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Weights where torch.hub keeps what it has downloaded."""
    import torchvision

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    torch.manual_seed(5)
    file = tmp_path / "hub" / "checkpoints" / Path(torchvision.models.ResNet18_Weights.DEFAULT.url).name
    file.parent.mkdir(parents=True)
    torch.save(torchvision.models.resnet18().state_dict(), file)
    return file


def test_published_weights_are_kept_but_for_the_head(make_model: MakeModel, cached: Path) -> None:
    ours, theirs = make_model("torchvision/resnet18", pretrained=True).state_dict(), torch.load(cached)
    assert ours.keys() == theirs.keys()
    assert {key for key in ours if not torch.equal(ours[key], theirs[key])} == {"fc.weight", "fc.bias"}
    assert ours["fc.weight"].shape == (7, 512)


def test_weights_that_do_not_fit_are_refused(make_model: MakeModel, cached: Path) -> None:
    weights = torch.load(cached)
    torch.save(weights | {"conv1.weight": torch.zeros(64, 1, 7, 7)}, cached)
    with pytest.raises(
        InputError, match=r"do not fit torchvision/resnet18 .*: conv1.weight is \(64, 1, 7, 7\) there and"
    ):
        make_model("torchvision/resnet18", pretrained=True)
    torch.save({name: tensor for name, tensor in weights.items() if name != "bn1.bias"}, cached)
    with pytest.raises(InputError, match=r"torchvision/resnet18 cannot be made: RuntimeError: .*state_dict for ResNet"):
        make_model("torchvision/resnet18", pretrained=True)


class Evil:
    def __reduce__(self) -> Any:
        return print, ("code of the file was run",)


def test_a_file_with_code_in_it_is_refused(
    make_model: MakeModel, cached: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save({"fc.bias": Evil()}, cached)
    with pytest.raises(
        InputError, match=r"weights of torchvision/resnet18 \(https://.*\) cannot be downloaded: UnpicklingError"
    ):
        make_model("torchvision/resnet18", pretrained=True)
    assert "code of the file was run" not in capsys.readouterr().out
