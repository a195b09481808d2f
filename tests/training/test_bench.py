"""The floor that a step is measured against, from numbers worked out by hand; the timing itself needs a GPU."""

import math
from dataclasses import replace

import pytest
import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.policy import Adversarial, MemberPolicy
from counterpoint.training import bench
from counterpoint.training.bench import differences, floor_milliseconds, time_steps

EXPERIMENT = Experiment("four members", "cifar10", num_members=4, batch_size=2)
SINGLE = replace(EXPERIMENT, num_members=None, batch_size=1)

# Values of an image after each convolution of ResNeXt-29 (4×32d): (height², channels) of the stem, then for each stage
# of the first block's 1×1, grouped 3×3, shortcut and 1×1, and of the two other blocks' three each.
STEM = 32 * 32 * 64
STAGE_1 = 32 * 32 * (128 + 128 + 256 + 256) + 2 * 32 * 32 * (128 + 128 + 256)
STAGE_2 = 32 * 32 * 256 + 16 * 16 * (256 + 512 + 512) + 2 * 16 * 16 * (256 + 256 + 512)
STAGE_3 = 16 * 16 * 512 + 8 * 8 * (512 + 1024 + 1024) + 2 * 8 * 8 * (512 + 512 + 1024)
WRITTEN = STEM + STAGE_1 + STAGE_2 + STAGE_3

# And what each of them reads; a shortcut with stride 2 reads a quarter of its input.
STAGE_1_READ = 32 * 32 * (64 + 128 + 64 + 128) + 2 * 32 * 32 * (256 + 128 + 128)
STAGE_2_READ = 32 * 32 * (256 + 256) + 16 * 16 * (256 + 256) + 2 * 16 * 16 * (512 + 256 + 256)
STAGE_3_READ = 16 * 16 * (512 + 512) + 8 * 8 * (512 + 512) + 2 * 8 * 8 * (1024 + 512 + 512)
READ = 32 * 32 * 3 + STAGE_1_READ + STAGE_2_READ + STAGE_3_READ

# Multiplications and additions of one image: twice the outputs times the inputs that each sees.
OPERATIONS = 2 * (
    STEM * 27
    + 32 * 32 * (128 * 64 + 256 * 64 + 3 * (128 * 9 * 32 + 256 * 128) + 2 * 128 * 256)
    + 32 * 32 * 256 * 256
    + 16 * 16 * (512 * 256 + 3 * (256 * 9 * 64 + 512 * 256) + 2 * 256 * 512)
    + 16 * 16 * 512 * 512
    + 8 * 8 * (1024 * 512 + 3 * (512 * 9 * 128 + 1024 * 512) + 2 * 512 * 1024)
)


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The rates of an imaginary GPU: bytes and operations per second."""
    rates = {"bandwidth": math.inf, "operations": math.inf}
    monkeypatch.setattr(bench, "copy_bandwidth", lambda: rates["bandwidth"])
    monkeypatch.setattr(bench, "matrix_rate", lambda: rates["operations"])
    return rates


@pytest.mark.parametrize(("adversarial", "products", "norms"), [(False, 3, 7), (True, 5, 14)])
@pytest.mark.parametrize(("experiment", "rows"), [(EXPERIMENT, 8), (SINGLE, 1)], ids=["4 members", "single"])
def test_the_floor_of_either_limit(
    rates: dict[str, float], experiment: Experiment, rows: int, adversarial: bool, products: int, norms: int
) -> None:
    """With and without the adversarial pass, so that what is read and what is written each have to be right."""
    severity = (0.1,) * experiment.members
    policy = MemberPolicy(adversarial=Adversarial(severity)) if adversarial else MemberPolicy()
    experiment = replace(experiment, policy=policy)
    rates["operations"] = rows * OPERATIONS
    assert floor_milliseconds(experiment) == pytest.approx(1000 * products)
    rates.update(operations=math.inf, bandwidth=rows * 2.0)
    assert floor_milliseconds(experiment) == pytest.approx(1000 * (products * (READ + WRITTEN) + norms * WRITTEN))


def test_each_convolution_has_the_limit_that_binds_it(rates: dict[str, float]) -> None:
    """With both limits the floor is above either alone, and below their sum."""
    alone = []
    for name, rate in (("operations", 8 * OPERATIONS), ("bandwidth", 8.0 * (READ + WRITTEN))):
        rates.update({"operations": math.inf, "bandwidth": math.inf, name: rate})
        alone.append(floor_milliseconds(EXPERIMENT))
    rates.update(operations=8 * OPERATIONS, bandwidth=8.0 * (READ + WRITTEN))
    assert max(alone) < floor_milliseconds(EXPERIMENT) < sum(alone)


def test_a_difference_is_relative_to_what_is_exact() -> None:
    """Of the private function: `differences`, which has it, needs a GPU."""
    assert bench._relative(torch.tensor([3.0, 4.0]), torch.tensor([6.0, 8.0])) == pytest.approx(0.5)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("measure", [time_steps, differences])
def test_without_a_gpu_it_says_so(measure: type) -> None:
    with pytest.raises(InputError, match="on an NVIDIA GPU, and torch sees none here"):
        next(measure(EXPERIMENT))


@pytest.mark.parametrize("measure", [time_steps, differences])
def test_a_network_without_a_fast_engine_is_refused(monkeypatch: pytest.MonkeyPatch, measure: type) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(InputError, match="the fast engine needs a GPU and a resnext29, and this is a resnet on cuda"):
        next(measure(replace(EXPERIMENT, model="resnet")))
