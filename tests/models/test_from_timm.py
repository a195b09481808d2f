"""timm's models, where timm is installed."""

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.models import Wanted, describe_model
from counterpoint.normalisation import Normalisation
from tests.models.conftest import MakeModel
from tests.other_models import needs

pytestmark = [needs("timm", "torchvision", "huggingface_hub"), pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_model_has_our_classes_and_channels(make_model: MakeModel, channels: int) -> None:
    network = make_model("timm/resnet10t", channels=channels)
    assert network(torch.randn(2, channels, 32, 32)).shape == (2, 7)


def test_the_same_seed_gives_the_same_weights(make_model: MakeModel) -> None:
    first, again = (make_model("timm/test_vit", img_size=32).state_dict() for _ in "ab")
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_the_normalisation_is_timms() -> None:
    facts = describe_model(Wanted("timm/resnet18", {}, 7, 3))
    assert facts.normalisation == Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert facts.configuration is None
    assert describe_model(Wanted("timm/resnet18.tv_in1k", {}, 7, 1)).normalisation.mean == pytest.approx(0.449)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "timm/resnt18",
            {},
            r"unknown model 'timm/resnt18'; did you mean 'timm/resnet18'.*timm.list_models\(\) lists all",
        ),
        (
            "timm/resnet18.a9_in1k",
            {},
            r"unknown model 'timm/resnet18.a9_in1k'; did you mean 'timm/resnet18.a[123]_in1k'",
        ),
        ("timm/hf-hub:timm/resnet18.a1_in1k", {}, "unknown model 'timm/hf-hub:timm/resnet18.a1_in1k'"),
        ("timm/local-dir:.", {}, "unknown model 'timm/local-dir:.'"),
        (
            "timm/resnet18",
            {"colour": "red"},
            "timm/resnet18 cannot be made with model_options.colour=red: TypeError: .*colour",
        ),
        (
            "timm/resnet18",
            {"checkpoint_path": "x.pth"},
            "model_options.checkpoint_path cannot be set: counterpoint decides",
        ),
        ("timm/resnet18", {"pretrained_cfg": "a"}, "model_options.pretrained_cfg cannot be set"),
        ("timm/resnet18", {"num_classes": 3}, "model_options.num_classes cannot be set"),
        (
            "timm/vit_tiny_patch16_224",
            {},
            r"timm/vit_tiny_patch16_224 does not take images with 3 channels of 32×32 pixels \(AssertionError: .*\); a "
            "model with a fixed size has model_options.img_size=32, and .* model_options.patch_size",
        ),
        ("timm/resnet18", {"features_only": True}, r"returns list for 2 images in evaluation; it must return logits"),
    ],
)
def test_what_cannot_be_made_is_refused(
    make_model: MakeModel, name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_model(name, **options)


def test_a_transformer_of_another_size_is_made_as_the_error_says(make_model: MakeModel) -> None:
    network = make_model("timm/vit_tiny_patch16_224", img_size=32, patch_size=8, depth=1)
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 7)


def in_the_cache(home: Path, repository: str, weights: dict[str, torch.Tensor]) -> None:
    """Put the file where huggingface_hub keeps what it has downloaded."""
    folder = home / "hub" / f"models--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("0" * 40)
    (folder / "snapshots" / ("0" * 40)).mkdir(parents=True)
    safetensors.torch.save_file(weights, folder / "snapshots" / ("0" * 40) / "model.safetensors")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no connection to the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path


def published(name: str, **options: Any) -> dict[str, torch.Tensor]:
    import timm

    torch.manual_seed(5)
    network: nn.Module = timm.create_model(name, **options)
    return {key: tensor.contiguous() for key, tensor in network.state_dict().items()}


@pytest.mark.parametrize("channels", [1, 3])
def test_published_weights_are_kept_but_for_the_head(make_model: MakeModel, hub: Path, channels: int) -> None:
    theirs = published("resnet10t")
    in_the_cache(hub, "timm/resnet10t.c3_in1k", theirs)
    ours = make_model("timm/resnet10t", pretrained=True, channels=channels).state_dict()
    differing = {
        key for key in theirs if theirs[key].shape != ours[key].shape or not torch.equal(theirs[key], ours[key])
    }
    assert differing == {"fc.weight", "fc.bias"} | ({"conv1.0.weight"} if channels == 1 else set())
    if channels == 1:  # as if a grey image were given as three equal colours
        torch.testing.assert_close(ours["conv1.0.weight"], theirs["conv1.0.weight"].sum(dim=1, keepdim=True))


def test_positions_are_fitted_to_another_size(make_model: MakeModel, hub: Path) -> None:
    theirs = published("test_vit")
    in_the_cache(hub, "timm/test_vit.r160_in1k", theirs)
    ours = make_model("timm/test_vit", pretrained=True, img_size=32).state_dict()
    assert ours["pos_embed"].shape != theirs["pos_embed"].shape
    assert torch.equal(ours["blocks.0.mlp.fc1.weight"], theirs["blocks.0.mlp.fc1.weight"])


@pytest.mark.usefixtures("hub")
def test_weights_that_cannot_be_had_are_refused(make_model: MakeModel) -> None:
    with pytest.raises(
        InputError, match=r"weights of timm/resnet10t \(model.safetensors of timm/resnet10t.*cannot be downloaded"
    ):
        make_model("timm/resnet10t", pretrained=True)
    with pytest.raises(
        InputError, match="timm has no weights for timm/gcvit_xxtiny as safetensors; leave pretrained out"
    ):
        make_model("timm/gcvit_xxtiny", pretrained=True)
