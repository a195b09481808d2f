"""Folded, compiled and padded inference against the network as it was trained."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from counterpoint.devices import Precision, at_once
from counterpoint.errors import InputError
from counterpoint.evaluation.members import check_trusted, fold_members, load_model, member_logits
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.nn import Ensemble, resnet
from counterpoint.normalisation import Normalisation
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.small import QUICK, few_digits, noise

CPU = torch.device("cpu")


def random_model(num_members: int | None = 4, seed: int = 0) -> Ensemble:
    generator = torch.Generator().manual_seed(seed)
    network = resnet(10, num_members, 8, 4, generator=generator)
    model = network if isinstance(network, Ensemble) else Ensemble(network)
    with torch.no_grad():
        model.train()(torch.randn(model.num_members, 64, 3, 8, 8, generator=generator))
    return model.eval()


@torch.no_grad()
def slow_logits(model: Ensemble, images_NCHW: Tensor) -> np.ndarray:
    views = (images_NCHW / 255 - 0.5) / 0.5
    return model(views.expand(model.num_members, *views.shape)).numpy()


@pytest.mark.parametrize("num_members", [None, 3])
@pytest.mark.parametrize("count", [1, 7, 300])
@pytest.mark.parametrize("precision", ["headline", "strict"])
def test_the_logits_are_those_of_the_network(num_members: int | None, count: int, precision: Precision) -> None:
    model, images_NCHW = random_model(num_members), noise(count)
    logits_MNK = member_logits(fold_members(model, CPU, precision), images_NCHW)
    assert logits_MNK.dtype == np.float32
    assert logits_MNK == pytest.approx(slow_logits(model, images_NCHW), rel=1e-4, abs=1e-5)


def test_bf16_is_near_and_its_logits_are_not_rounded() -> None:
    model, images_NCHW = random_model(), noise(50)
    expected = slow_logits(model, images_NCHW)
    logits = member_logits(fold_members(model, CPU, "bf16"), images_NCHW)
    assert 1e-4 < np.abs(logits - expected).max() / np.abs(expected).max() < 5e-2
    rounded = torch.from_numpy(logits).bfloat16().float().numpy()
    assert (logits != rounded).mean() > 0.9, "the linear layer stays in fp32"


def test_large_images_go_in_smaller_batches_on_a_cpu() -> None:
    """At most as many pixels as 256 images of 64×64 have, and one image at least."""
    assert [at_once(256, side, side) for side in (8, 64, 65, 224, 2048)] == [256, 256, 248, 20, 1]
    members, sizes = fold_members(random_model(), CPU), []

    def forward(network: nn.Module, images_BCHW: Tensor, normalisation: Normalisation) -> Tensor:
        sizes.append(len(images_BCHW))
        return members.forward(network, images_BCHW, normalisation)

    member_logits(
        replace(members, networks=members.networks[:1], forward=forward),
        torch.zeros(25, 3, 224, 224, dtype=torch.uint8),
    )
    assert sizes == [20, 5]


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many graphs were compiled so far; without a code generator, so that no C++ compiler is needed."""
    torch.compiler.reset()
    compiled: list[torch.fx.GraphModule] = []

    def run_as_it_is(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=run_as_it_is))
    return lambda: len(compiled)


def test_all_members_and_batches_share_one_graph(graphs: Callable[[], int]) -> None:
    model, images_NCHW = random_model(), noise(21)
    members = replace(fold_members(model, CPU, compiled=True), images_at_once=8)
    logits = member_logits(members, images_NCHW)
    as_read = images_NCHW.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)[:5]
    again = member_logits(members, as_read)
    assert graphs() == 1, "another member, a smaller batch or another layout was compiled again"
    assert logits == pytest.approx(slow_logits(model, images_NCHW), rel=1e-4, abs=1e-5)
    assert again == pytest.approx(logits[:, :5], rel=1e-5)


def test_another_network_of_the_same_kind_is_not_compiled_again(graphs: Callable[[], int]) -> None:
    images_NCHW = noise(6)
    for seed in (0, 1):
        model = random_model(2, seed)
        members = replace(fold_members(model, CPU, compiled=True), images_at_once=6)
        assert member_logits(members, images_NCHW) == pytest.approx(slow_logits(model, images_NCHW), rel=1e-4, abs=1e-5)
    assert graphs() == 1


@pytest.fixture
def allow_tf32() -> Iterator[Callable[[bool], None]]:
    """Sets what is allowed outside; monkeypatch cannot, because torch hides one of the two from it."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, matmul.allow_tf32

    def allow(value: bool) -> None:
        cudnn.allow_tf32 = matmul.allow_tf32 = value

    yield allow
    cudnn.allow_tf32, matmul.allow_tf32 = before


class Probe(nn.Module):
    """Notes the arithmetic that is allowed while it runs."""

    def __init__(self, seen: list[tuple[bool, bool, bool]]) -> None:
        super().__init__()
        self.seen = seen

    def forward(self, images_NCHW: Tensor) -> Tensor:
        tf32 = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        self.seen.append((*tf32, torch.is_autocast_enabled("cpu")))
        return images_NCHW.mean(dim=(2, 3))

    def __deepcopy__(self, memo: dict[int, Any]) -> "Probe":
        return self


@pytest.mark.parametrize(
    ("precision", "allowed"),
    [("headline", (True, False, False)), ("bf16", (False, False, True)), ("strict", (False, False, False))],
)
@pytest.mark.parametrize("before", [True, False])
def test_a_precision_allows_what_it_says_and_leaves_no_trace(
    precision: Precision, allowed: tuple[bool, bool, bool], before: bool, allow_tf32: Callable[[bool], None]
) -> None:
    allow_tf32(before)
    tuned = torch.backends.cudnn.benchmark
    seen: list[tuple[bool, bool, bool]] = []
    member_logits(fold_members(Ensemble(Probe(seen)), CPU, precision), noise(2))
    assert seen == [allowed]
    assert torch.backends.cudnn.benchmark == tuned
    assert torch.backends.cudnn.allow_tf32 == before
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_the_model_is_left_as_it_is() -> None:
    model = random_model()
    kinds = [type(module) for module in model.modules()]
    member_logits(fold_members(model, CPU, "bf16"), noise(3))
    assert [type(module) for module in model.modules()] == kinds
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(("most_images", "largest"), [(None, 256), (7, 7), (10_000, 256)])
def test_a_batch_is_no_larger_than_memory_and_the_images_need(most_images: int | None, largest: int) -> None:
    assert fold_members(random_model(), CPU, most_images=most_images).images_at_once == largest


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown precision 'bf61'; did you mean 'bf16'\?"):
        fold_members(random_model(), CPU, "bf61")  # type: ignore[arg-type]


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    data = few_digits(40)
    train(QUICK, tmp_path / "run", data, options=Options(device="cpu", max_minutes=0.0))
    with pytest.raises(InputError, match=r"is not finished: 1 of 11 steps are done; continue it with"):
        load_model(load_run(tmp_path / "run"), CPU)


@pytest.mark.parametrize(
    ("model", "trusted_model", "message"),
    [
        ("resnet", None, None),
        ("resnet", "resnet", None),
        ("m:f", "m:f", None),
        (
            "m:f",
            None,
            "runs/a says that its network is made by m:f, but .* `counterpoint predict runs/a … --model m:f`, or "
            "trusted_model='m:f' in Python",
        ),
        ("m:f", "m:g", "the model of runs/a is m:f, not m:g; give m:f as trusted_model"),
        ("resnet", "vit", "the model of runs/a is resnet, not vit"),
    ],
)
def test_a_function_of_the_users_needs_the_users_word(
    model: str, trusted_model: str | None, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/counterpoint", "predict", "runs/a", "a.png", "b.png"])
    run = Run(Path("runs/a"), replace(QUICK, model=model), {})
    if message is None:
        check_trusted(run, trusted_model)
        return
    for refuse in (
        check_trusted,
        lambda run, trusted_model: load_model(run, CPU, trusted_model),
        lambda run, trusted_model: evaluate_run(run, trusted_model=trusted_model),
    ):
        with pytest.raises(InputError, match=message):
            refuse(run, trusted_model)


@pytest.mark.parametrize("other", [Normalisation(0.4, 0.3), Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))])
def test_images_are_normalised_as_in_training(other: Normalisation) -> None:
    model, images_NCHW = random_model(), noise(20)
    seen = other.apply(images_NCHW / 255)
    with torch.no_grad():
        expected = model(seen.expand(model.num_members, *seen.shape)).numpy()
    logits_MNK = member_logits(fold_members(model, CPU, normalisation=other), images_NCHW)
    assert logits_MNK == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert logits_MNK != pytest.approx(slow_logits(model, images_NCHW), rel=1e-2)
