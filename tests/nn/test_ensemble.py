import copy
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, batch_ensemble, deep_ensemble, extract_member, resnet
from counterpoint.nn.norm import left_untouched
from tests.nn.conversion.layers import StandardisedConv2d


def test_prediction_is_the_mean_of_the_members_probabilities() -> None:
    ensemble = resnet(5, 3, width=4)
    assert isinstance(ensemble, Ensemble)
    images = torch.randn(4, 3, 16, 16)
    ensemble.train()
    probs_MBK = ensemble.predict_members(images)
    assert ensemble.training
    with torch.no_grad():
        logits = ensemble.eval()(torch.stack([images] * 3))
    torch.testing.assert_close(probs_MBK, logits.softmax(-1))
    torch.testing.assert_close(ensemble.predict(images), (probs_MBK[0] + probs_MBK[1] + probs_MBK[2]) / 3)


@pytest.mark.parametrize(("model", "probs"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)])
def test_probabilities_have_float32_or_the_models_own_precision(model: torch.dtype, probs: torch.dtype) -> None:
    torch.manual_seed(0)
    network, rows = nn.Linear(3, 4).to(model), torch.randn(5, 3, dtype=model)
    probs_BK = batch_ensemble(network, 2, init_std=0).predict(rows)
    assert probs_BK.dtype == probs
    exact = network(rows).double().softmax(-1)
    torch.testing.assert_close(probs_BK.double(), exact, rtol=0, atol=1e-12 if probs == torch.float64 else 1e-2)


@pytest.mark.parametrize("kind", ["batch", "deep", "single"])
def test_predictions_leave_frozen_batchnorm_frozen(kind: str) -> None:
    """Fine-tuning often keeps BatchNorm in evaluation mode while the rest is in training mode."""

    def make() -> nn.Module:
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)).train()
        network[1].eval()
        return network

    makers = {"batch": lambda: batch_ensemble(make(), 2), "deep": lambda: deep_ensemble(make, 2)}
    ensemble = makers.get(kind, lambda: Ensemble(make()))()
    modes = {name: module.training for name, module in ensemble.named_modules()}
    frozen = {name for name, module in ensemble.named_modules() if isinstance(module, nn.BatchNorm1d)}
    assert {name for name, training in modes.items() if not training} == frozen
    ensemble.predict(torch.randn(5, 3))
    with pytest.raises((RuntimeError, InputError)):
        ensemble.predict(torch.randn(5, 7))  # a pass that fails
    assert {name: module.training for name, module in ensemble.named_modules()} == modes


class Waiting(nn.Module):
    """Says what mode it is in before and after it has waited."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.leave, self.training_there = Event(), Event(), list[bool]()

    def forward(self, x: Tensor) -> Tensor:
        self.training_there.append(self.training)
        self.entered.set()
        assert self.leave.wait(60)
        self.training_there.append(self.training)
        return x


def test_threads_that_predict_at_once_stay_in_evaluation_mode() -> None:
    """The one that began first ends first, in the middle of the other; the two share a part alone."""
    shared = nn.Dropout(0.5)
    waiting = early, late = Waiting(), Waiting()
    ensembles = [Ensemble(nn.Sequential(one, shared, nn.Linear(4, 3)), num_members=2).train() for one in waiting]
    modes = []
    with ThreadPoolExecutor(2) as threads:
        ended = []
        for one, ensemble in zip(waiting, ensembles, strict=True):
            ended.append(threads.submit(ensemble.predict, torch.ones(64, 4)))
            assert one.entered.wait(60)
        for one, future in zip(waiting, ended, strict=True):
            one.leave.set()
            probs_BK = future.result(60)
            assert probs_BK.equal(probs_BK[:1].expand_as(probs_BK)), "nothing was dropped"
            modes.append(shared.training)
    assert modes == [False, True], "the last one gives the mode back"
    assert early.training_there + late.training_there == [False] * 4
    assert all(module.training for ensemble in ensembles for module in ensemble.modules())


def test_without_a_mask_nothing_is_dropped() -> None:
    ensemble = resnet(5, 2, width=4).train()
    assert isinstance(ensemble, Ensemble)
    views = torch.randn(2, 8, 3, 16, 16)
    with left_untouched(ensemble):
        assert torch.equal(ensemble(views), ensemble(views, torch.ones(ensemble.num_blocks, 16)))
        assert not torch.equal(ensemble(views), ensemble(views, torch.zeros(ensemble.num_blocks, 16)))


def test_a_mask_has_a_number_for_each_branch_and_row() -> None:
    ensemble = resnet(5, 2, width=4)
    assert isinstance(ensemble, Ensemble)
    views = torch.randn(2, 3, 3, 16, 16)
    blocks = ensemble.num_blocks
    for shape in ((blocks + 1, 6), (blocks - 1, 6), (blocks, 3), (blocks, 1), (blocks,), (blocks, 2, 3)):
        with pytest.raises(InputError, match=rf"{re.escape(f'keep has shape {shape}')}; it must be \({blocks}, 6\)"):
            ensemble(views, torch.ones(shape))


def test_a_network_without_branches_takes_no_mask() -> None:
    with pytest.raises(InputError, match="Flatten has no residual branches that counterpoint can drop"):
        Ensemble(nn.Flatten(), 1)(torch.randn(1, 2, 3, 4, 4), keep=torch.ones(1, 2))


class Pair(nn.Module):
    """Two inputs and a number; the logits wherever `output` puts them."""

    def __init__(self, output: Callable[[Tensor], Any] = lambda logits: logits) -> None:
        super().__init__()
        self.images, self.tokens, self.head = nn.Linear(3, 4), nn.Embedding(7, 4), nn.Linear(4, 2)
        self.output = output

    def forward(self, images: Tensor, tokens: Tensor, *, scale: Any = 1.0, extra: Any = None) -> Any:
        hidden = self.images(images) + self.tokens(tokens).mean(1)
        return self.output(self.head(hidden * scale if extra is None else hidden * extra["factor"][0]))


def test_inputs_of_any_number_and_shape_are_folded() -> None:
    torch.manual_seed(0)
    model = Pair().eval()
    ensemble = batch_ensemble(model, 3, 0.5, example_input=(torch.randn(2, 3), torch.randint(7, (2, 5))))
    images, tokens = torch.randn(3, 4, 3), torch.randint(7, (3, 4, 5))
    factor = torch.rand(3, 4, 1)
    logits = ensemble(images, tokens=tokens, extra={"factor": [factor], "note": "kept"})
    for i in range(3):
        alone = extract_member(ensemble, i)(images[i], tokens[i], scale=factor[i])
        torch.testing.assert_close(logits[i], alone)
    scaled = ensemble(images, tokens, scale=torch.tensor(2.0))  # a number has no rows
    torch.testing.assert_close(scaled[0], extract_member(ensemble, 0)(images[0], tokens[0], scale=2.0))
    assert ensemble.predict(images[0], tokens=tokens[0]).shape == (4, 2)


class Fields(dict[str, Any]):
    """A library's own kind of dict, whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


class OfFields(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, fields: Any) -> Tensor:
        logits: Tensor = self.layer(fields.rows)
        return logits


def test_a_dict_of_another_kind_stays_what_it_is() -> None:
    rows = torch.randn(2, 5, 3)
    fields = Fields(rows=rows, note="kept")
    ensemble = batch_ensemble(OfFields(), 2, example_input=(Fields(rows=rows[0]),))
    assert torch.equal(ensemble(fields), ensemble(Fields(rows=rows)))
    assert fields["rows"] is rows, "the caller's dict is not changed"
    assert deep_ensemble(OfFields, 2)(fields).shape == (2, 5, 2)


class Output:
    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


@pytest.mark.parametrize(
    ("output", "read"),
    [
        (lambda logits: logits, None),
        (Output, None),
        (lambda logits: {"loss": None, "logits": logits}, None),
        (lambda logits: (logits, "more"), lambda output: output[0]),
    ],
)
def test_logits_are_found_where_models_put_them(output: Callable[[Tensor], Any], read: Any) -> None:
    torch.manual_seed(0)
    model, example = Pair(output).eval(), (torch.randn(2, 3), torch.randint(7, (2, 5)))
    ensemble = batch_ensemble(model, 2, 0.0, example_input=example, logits=read)
    plain = Pair()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(ensemble.predict(*example), plain(*example).softmax(-1))


@pytest.mark.parametrize(
    ("output", "read", "message"),
    [
        (
            lambda logits: (logits,),
            None,
            "the model returned a tuple; counterpoint takes a tensor, an object with .logits",
        ),
        (lambda logits: {"out": logits}, None, "the model returned a dict with 'out'; "),
        (lambda logits: logits, lambda _: "nothing", "the function given as logits= returned a str"),
        (lambda logits: logits.sum(0, keepdim=True), None, r"gave logits of shape \(1, 2\) for 4 rows"),
    ],
)
def test_other_outputs_are_refused(output: Callable[[Tensor], Any], read: Any, message: str) -> None:
    ensemble = batch_ensemble(Pair(output), 2, logits=read)
    with pytest.raises(InputError, match=message):
        ensemble(torch.randn(2, 2, 3), torch.randint(7, (2, 2, 5)))


def test_wrong_inputs_are_named() -> None:
    ensemble = batch_ensemble(Pair(), 2)
    images, tokens = torch.randn(2, 4, 3), torch.randint(7, (2, 4, 5))
    with pytest.raises(InputError, match=r"input 2 has shape \(4, 5\); it must be \(M, B, …\) with M = 2 members"):
        ensemble(images, tokens[0])
    with pytest.raises(InputError, match=r"the input .tokens. has 6 rows \(members × batch\), and the inputs"):
        ensemble(images, tokens=tokens[:, :3])
    with pytest.raises(InputError, match="needs a tensor among its inputs, and was given nothing"):
        ensemble()
    with pytest.raises(InputError, match=r"was given ndarray, ndarray; torch\.from_numpy makes one"):
        ensemble.predict(images.numpy(), tokens=tokens.numpy())


def test_one_logit_has_no_probabilities() -> None:
    """Its softmax is 1: every prediction would be certain."""
    ensemble = batch_ensemble(nn.Linear(3, 1), 2)
    for predict in (ensemble.predict, ensemble.predict_members):
        with pytest.raises(
            InputError, match="BatchEnsembleLinear gave one logit per row, and the softmax of one logit"
        ):
            predict(torch.randn(4, 3))
    assert ensemble(torch.randn(2, 4, 3)).shape == (2, 4, 1)


def test_an_ensemble_can_be_compiled() -> None:
    torch.manual_seed(0)
    ensemble = batch_ensemble(nn.Sequential(StandardisedConv2d(3, 4, 3), nn.Flatten(), nn.Linear(36, 2)), 2, 0.5)
    views = torch.randn(2, 3, 3, 5, 5)
    compiled = torch.compile(ensemble, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(views), ensemble(views))


def test_an_ensemble_trains_under_distributed_data_parallel(tmp_path: Path) -> None:
    torch.manual_seed(0)
    ensemble = batch_ensemble(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), 2, 0.5)
    twin = copy.deepcopy(ensemble)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        views = torch.randn(2, 5, 3)
        nn.parallel.DistributedDataParallel(ensemble)(views).square().sum().backward()
    finally:
        torch.distributed.destroy_process_group()
    twin(views).square().sum().backward()
    for parameter, expected in zip(ensemble.parameters(), twin.parameters(), strict=True):
        assert expected.grad is not None
        torch.testing.assert_close(parameter.grad, expected.grad)


class TwoInputs(nn.Module):
    """A stranger's network, which means its own by num_blocks."""

    def __init__(self, num_blocks: Any = 12) -> None:
        super().__init__()
        self.num_blocks = num_blocks
        self.images, self.numbers = nn.Linear(3, 2), nn.Linear(4, 2)

    def forward(self, images: Tensor, numbers: Tensor) -> Tensor:
        logits: Tensor = self.images(images) + self.numbers(numbers)
        return logits


@pytest.mark.parametrize("blocks", [12, [1, 2], nn.ModuleList()], ids=["a number", "a list", "modules"])
@pytest.mark.parametrize("kind", ["batch", "deep"])
def test_another_meaning_of_num_blocks_is_none(kind: str, blocks: Any) -> None:
    """Its second input is no mask."""
    torch.manual_seed(0)
    makers = {
        "batch": lambda: batch_ensemble(TwoInputs(blocks), 2, 0.5),
        "deep": lambda: deep_ensemble(lambda: TwoInputs(blocks), 2),
    }
    ensemble = makers[kind]()
    assert ensemble.num_blocks == 0
    images, numbers = torch.randn(2, 5, 3), torch.randn(2, 5, 4)
    logits_MBK = ensemble(images, numbers)
    for i in range(2):
        torch.testing.assert_close(logits_MBK[i], extract_member(ensemble, i)(images[i], numbers[i]))
