"""Our own networks by name."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.models import ModelFacts, Wanted, describe_model, make_network
from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear, batch_ensemble, resnet, wide_resnet
from counterpoint.nn.vit import ViT
from counterpoint.normalisation import NORMALISATION


def made(name: str, **options: object) -> nn.Module:
    wanted = Wanted(name, options, num_classes=7, in_channels=1, size=(16, 16))
    assert describe_model(wanted) == ModelFacts(NORMALISATION, None)
    return make_network(wanted, describe_model(wanted), torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("wide-resnet-10-2", lambda g: wide_resnet(7, depth=10, widen=2, in_channels=1, generator=g)),
        ("resnet", lambda g: resnet(7, in_channels=1, generator=g)),
    ],
)
def test_a_name_is_the_network_of_its_function(name: str, twin: object) -> None:
    ours, theirs = made(name).state_dict(), twin(torch.Generator().manual_seed(0)).state_dict()  # type: ignore[operator]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("name", ["resnext29", "resnet", "wide-resnet-10-1", "vit"])
def test_every_one_converts_wholly(name: str) -> None:
    network = made(name)
    ensemble = batch_ensemble(network, 3, 0.5, example_input=torch.randn(2, 1, 16, 16))
    layers = [m for m in ensemble.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) > 5
    assert all(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in layers)
    assert ensemble(torch.randn(3, 2, 1, 16, 16)).shape == (3, 2, 7)


def test_the_check_of_a_name_imports_no_compiler() -> None:
    """Torch's own takes 3 s, and every command that reads images would wait for it."""
    code = (
        "import sys; from counterpoint.models import Wanted, check_model\n"
        "for name in ('resnext29', 'resnet', 'wide-resnet-10-1', 'vit'):\n"
        "    check_model(Wanted(name, {}, num_classes=2, in_channels=3, size=(32, 32)))\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_vits_options_are_its_sizes() -> None:
    network = made("vit", patch_size=8, depth=3, width=24, heads=2)
    assert isinstance(network, ViT)
    assert (network.patches.kernel_size, network.num_blocks, network.norm.normalized_shape) == ((8, 8), 6, (24,))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "vit",
            {"wdth": 3},
            r"unknown option of vit 'wdth'; did you mean 'width'.*known: patch_size, depth, width, heads",
        ),
        ("vit", {"width": "big"}, r"model_options.width is 'big'; it must be a whole number"),
        ("vit", {"depth": True}, r"model_options.depth is True; it must be a whole number"),
        ("vit", {"depth": 1.5}, r"model_options.depth is 1.5; it must be a whole number"),
        (
            "vit",
            {"patch_size": 5},
            r"images of 16×16 pixels do not divide into patches of 5×5; choose another patch_size",
        ),
        ("wide-resnet-10-1", {"depth": 16}, r"takes no model_options \(depth\); its sizes are in its name"),
        ("wide-resnet-11-1", {}, r"depth is 11; it must be 6n \+ 4: 10, 16"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(name, **options)
