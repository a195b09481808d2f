"""What must hold on a GPU; skipped where there is none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from counterpoint.augment.views import sample_views
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.train import Options, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

POLICY = MemberPolicy(
    augmix=AugMix((1.0, 3.0)),
    adversarial=Adversarial((0.05, 0.1), "shuffled"),
    stochastic_depth=StochasticDepth((0.1, 0.2)),
)
EXPERIMENT = Experiment(
    "tiny", "cifar10", train_on="all", model="resnet", num_members=2, epochs=2, batch_size=32, policy=POLICY
)


def tiny_data() -> DataSet:
    numbers = torch.arange(200)
    pixels = Stream(0, "tiny").integers(numbers, 3 * 32 * 32, 256).view(200, 3, 32, 32).to(torch.uint8)
    images = ImageSet(pixels, numbers % 10, tuple("abcdefghij"))
    return DataSet("tiny", images, images)


def test_the_streams_are_the_same_on_both_devices() -> None:
    stream = Stream(1, "x", 2, 3)
    numbers = torch.arange(10_000)
    assert torch.equal(stream.uniform(numbers.cuda(), 7).cpu(), stream.uniform(numbers, 7))
    assert torch.equal(stream.permutation(10_000, "cuda").cpu(), stream.permutation(10_000))


def test_the_views_are_the_same_on_both_devices() -> None:
    images = tiny_data().train.images_NCHW
    numbers = torch.arange(200)
    on_cpu, on_gpu = (
        sample_views(
            images.to(device),
            POLICY,
            num_members=2,
            indices_B=numbers.to(device),
            steps_B=(numbers // 32).to(device),
            seed=0,
            epoch=1,
            num_blocks=3,
        )
        for device in ("cpu", "cuda")
    )
    assert (on_gpu.views_MBCHW.cpu() - on_cpu.views_MBCHW).abs().max() < 2e-6  # 1e-6 of [0, 1], stretched to [−1, 1]
    assert on_cpu.amount_MB is not None
    assert on_gpu.amount_MB is not None
    assert torch.equal(on_gpu.amount_MB.cpu(), on_cpu.amount_MB)
    assert on_cpu.keep_LMB is not None
    assert on_gpu.keep_LMB is not None
    assert torch.equal(on_gpu.keep_LMB.cpu(), on_cpu.keep_LMB)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_resume_gives_the_same_bits_when_deterministic(tmp_path: Path, compiled: bool) -> None:
    options = Options(device="cuda", deterministic=True, compile=compiled)
    assert train(EXPERIMENT, tmp_path / "whole", tiny_data(), options=options)
    calls = 0

    def after_three_steps() -> bool:
        nonlocal calls
        calls += 1
        return calls == 3

    assert not train(EXPERIMENT, tmp_path / "parts", tiny_data(), options=options, should_stop=after_three_steps)
    assert train(EXPERIMENT, tmp_path / "parts", tiny_data(), options=options)
    whole, parts = (
        load_file(sorted((tmp_path / name / "checkpoints").glob("step-*"))[-1]) for name in ("whole", "parts")
    )
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_the_gpu_learns_what_the_cpu_learns(tmp_path: Path) -> None:
    """The first epochs' losses agree to bf16's precision."""
    experiment = replace(EXPERIMENT, policy=MemberPolicy(), epochs=1)
    losses = []
    for device in ("cpu", "cuda"):
        train(experiment, tmp_path / device, tiny_data(), options=Options(device=device, compile=False))
        log = (tmp_path / device / "log.jsonl").read_text()
        losses.append(float(log.rpartition('"loss": ')[2].partition(",")[0]))
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
