"""MODULE:FUNCTION: imported because the user says so, and for no other reason."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.models import ModelFacts, Wanted, make_network

SOURCE = """
import torch
from torch import nn

imported = True

def make_model(num_classes, in_channels, width=4):
    return nn.Sequential(nn.Conv2d(in_channels, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(width, num_classes))

def lazy(num_classes, in_channels):
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))

def anything(**arguments):
    return make_model(**{key: arguments[key] for key in ("num_classes", "in_channels")})

def a_number(num_classes, in_channels):
    return num_classes

def too_few(num_classes, in_channels):
    return make_model(num_classes - 1, in_channels)

def for_tokens(num_classes, in_channels):
    return nn.Embedding(10, num_classes)

class InTraining(nn.Module):
    def forward(self, images):
        logits = images.mean(dim=(1, 2, 3))[:, None].expand(-1, 5)
        return (logits, logits) if self.training else logits

def with_softmax(num_classes, in_channels):
    return make_model(num_classes, in_channels).append(nn.Softmax(dim=-1))

def tuple_in_training(num_classes, in_channels):
    return InTraining()

def broken(num_classes, in_channels):
    raise ZeroDivisionError("of the user's own")

constant = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"networks_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    (tmp_path / f"{name}_needy.py").write_text("import a_package_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


Made = Callable[..., nn.Module]


@pytest.fixture
def made(module: str) -> Made:
    def made(
        function: str, trusted_model: str | None = "the same", name: str | None = None, **options: Any
    ) -> nn.Module:
        name = f"{name or module}:{function}"
        wanted = Wanted(name, options, num_classes=5, in_channels=3, size=(8, 8))
        trusted_model = name if trusted_model == "the same" else trusted_model
        return make_network(wanted, ModelFacts(), torch.Generator().manual_seed(0), trusted_model)

    return made


def test_the_function_gets_classes_channels_and_options(made: Made) -> None:
    network = made("make_model", width=6)
    assert isinstance(network, nn.Sequential)
    assert isinstance(network[0], nn.Conv2d)
    assert (network[0].in_channels, network[0].out_channels) == (3, 6)
    assert network(torch.randn(2, 3, 8, 8)).shape == (2, 5)
    assert made("anything", whatever="else")(torch.randn(2, 3, 8, 8)).shape == (2, 5)


@pytest.mark.parametrize("trusted_model", [None, "another:make_model", "make_model"])
def test_without_the_users_word_nothing_is_imported(made: Made, module: str, trusted_model: str | None) -> None:
    with pytest.raises(
        InputError,
        match=f"is a function that is imported only if you name it .*--model {module}:make_model or trusted_model='",
    ):
        made("make_model", trusted_model=trusted_model)
    assert module not in sys.modules


def test_weights_depend_on_the_generator_and_leave_torchs_own_draws_alone(made: Made) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    first = made("make_model").state_dict()
    assert torch.equal(torch.rand(3), expected), "the global generator is put back"
    again = made("make_model").state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_layers_that_wait_for_an_image_get_their_shape(made: Made) -> None:
    assert made("lazy")[1].weight.shape == (5, 192)  # type: ignore[index]


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("make_modl", {}, r"unknown function of networks_of_.* \(.*\.py\) 'make_modl'; did you mean 'make_model'"),
        ("constant", {}, r"unknown function of networks_of_.* 'constant'"),
        ("make_model", {"wdth": 3}, r"make_model\(num_classes=…, in_channels=…, wdth=…\): got an unexpected keyword"),
        ("make_model", {"num_classes": 3}, r"model_options.num_classes cannot be set: counterpoint decides it"),
        ("a_number", {}, r":a_number returned int; it must return a torch.nn.Module"),
        ("too_few", {}, r"returns \(2, 4\) for 2 images in evaluation; it must return logits of the shape \(2, 5\)"),
        ("with_softmax", {}, r"returns probabilities: .* leave out the softmax at the end of the network"),
        ("tuple_in_training", {}, r"returns tuple for 2 images in training; it must return logits"),
        (
            "for_tokens",
            {},
            r"does not take images with 3 channels of 8×8 pixels \(.*\); the function is called with num_cl",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(made: Made, function: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(function, **options)


def test_a_module_that_is_not_there_is_named(made: Made) -> None:
    with pytest.raises(
        InputError, match=r"the model nowhere_at_all:f needs a module 'nowhere_at_all', and there is none"
    ):
        made("f", name="nowhere_at_all")


def test_what_the_users_code_raises_is_the_users_to_see(made: Made, module: str) -> None:
    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        made("broken")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        made("f", name=f"{module}_needy")
