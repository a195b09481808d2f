"""Which device is chosen, and that torch's settings are put back."""

from contextlib import AbstractContextManager, nullcontext

import pytest
import torch

from counterpoint.devices import arithmetic, choose_device, describe_precision, training_arithmetic
from counterpoint.errors import InputError

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
Settings = tuple[bool, bool, bool, bool]


def settings() -> Settings:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return torch.are_deterministic_algorithms_enabled(), cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32


@pytest.mark.parametrize(
    ("name", "message"),
    [("gpu", "device 'gpu' is not known"), ("meta", "device 'meta' is not supported"), ("cuda:99", "does not exist")],
)
def test_a_device_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_device(name)


@pytest.mark.parametrize("deterministic", [False, True])
def test_training_sets_torch_up_and_puts_it_back(monkeypatch: pytest.MonkeyPatch, deterministic: bool) -> None:
    stood_on: list[torch.device] = []

    def stand_on(device: torch.device) -> AbstractContextManager[None]:
        stood_on.append(device)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "device", stand_on)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", deterministic)
    before = settings()
    with training_arithmetic(CUDA, deterministic):
        assert settings()[:2] == (deterministic, not deterministic)
    assert settings() == before
    assert stood_on == [CUDA]


def test_a_cpu_needs_no_setting() -> None:
    before = settings()
    with training_arithmetic(CPU, deterministic=True):
        assert settings() == before


def test_an_evaluations_precision_is_put_back() -> None:
    before = settings()
    for precision, tf32 in (("headline", True), ("strict", False)):
        with arithmetic(precision, CPU):  # type: ignore[arg-type]
            assert settings()[1:] == (True, tf32, False)
        assert settings() == before


def test_precisions_are_described() -> None:
    cuda = torch.device("cuda")
    assert describe_precision("headline", cuda) == "fp32 activations, TF32 convolutions"
    assert describe_precision("strict", cuda) == describe_precision("headline", torch.device("cpu")) == "fp32"
    assert describe_precision("bf16", cuda) == "bf16 activations and convolutions, fp32 linear layers"
