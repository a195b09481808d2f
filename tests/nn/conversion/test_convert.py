import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import BatchEnsembleConv2d, batch_ensemble, extract_member
from counterpoint.nn.conversion import DEFAULT_INIT_STD
from tests.nn.conversion.layers import SequenceFirst, Text


class Nested(nn.Module):
    """Convolutions inside containers inside modules, one layer used twice, and a root-level linear layer."""

    def __init__(self) -> None:
        super().__init__()
        shared = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, bias=False),
            nn.ModuleDict({"inner": nn.Sequential(shared, nn.BatchNorm2d(4), nn.ReLU())})["inner"],
            shared,
        )
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean(dim=(2, 3)))


class MixesRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        out = self.layer(x.flatten(1))
        return out - out.mean(dim=0)


class ReadsWeights(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(12, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.layer.weight.T


def test_weights_are_kept_and_the_model_is_left_alone() -> None:
    model = Nested()
    before = copy.deepcopy(model.state_dict())
    ensemble = batch_ensemble(model, num_members=3, init_std=0.0)
    images = torch.randn(2, 3, 8, 8)
    model.eval()
    torch.testing.assert_close(ensemble.predict(images), model(images).softmax(-1))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert type(model.body[0]) is nn.Conv2d


@pytest.mark.parametrize("normed", [False, True], ids=["plain", "weight norm"])
def test_what_is_frozen_stays_frozen(normed: bool) -> None:
    """r and s are new, and are trained; everything that the model had keeps its requires_grad."""
    first = nn.Linear(3, 4)
    if normed:
        first = nn.utils.parametrizations.weight_norm(first)
    model = nn.Sequential(first.requires_grad_(False), nn.ReLU(), nn.Linear(4, 2))
    ensemble = batch_ensemble(model, 2)
    trained = {name for name, parameter in ensemble.named_parameters() if parameter.requires_grad}
    head = {"network.2.weight", "network.2.bias"}
    assert trained == {f"network.{i}.{factor}" for i in (0, 2) for factor in "rs"} | head
    alone = {name for name, parameter in extract_member(ensemble, 1).named_parameters() if parameter.requires_grad}
    assert alone == {"2.weight", "2.bias"} | ({"0.r", "0.s"} if normed else set())


def test_a_layer_used_twice_stays_one_layer() -> None:
    body: Any = batch_ensemble(Nested(), num_members=2).network.body
    assert isinstance(body[2], BatchEnsembleConv2d)
    assert body[1][0] is body[2]


@pytest.mark.parametrize("batchnorm", ["shared", "per-member"])
def test_members_equal_plain_networks_with_their_weights(batchnorm: str) -> None:
    torch.manual_seed(0)
    ensemble = batch_ensemble(Nested(), 3, batchnorm=batchnorm, example_input=torch.randn(2, 3, 8, 8)).double()  # type: ignore[arg-type]
    ensemble.train()
    ensemble(torch.randn(3, 4, 3, 8, 8, dtype=torch.float64))  # moves the running statistics
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    probs_MBK = ensemble.predict_members(images)
    for i in range(3):
        plain = extract_member(ensemble, i).eval()
        torch.testing.assert_close(probs_MBK[i], plain(images).softmax(-1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", [MixesRows(), ReadsWeights()], ids=["mixes rows", "reads weights"])
def test_a_model_whose_members_would_be_wrong_is_refused(model: nn.Module) -> None:
    with pytest.raises(InputError, match=r"MixesRows itself mixes the rows|ReadsWeights reads its weight directly"):
        batch_ensemble(model, num_members=2, example_input=torch.randn(3, 3, 2, 2))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InputError, match="unknown batchnorm 'none'"):
        batch_ensemble(Nested(), batchnorm="none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ReLU has no linear layer or convolution to convert"):
        batch_ensemble(nn.ReLU())
    with pytest.raises(InputError, match=r"the input has shape \(3, 3, 8, 8\); it must be \(M, B, …\) with M = 2"):
        batch_ensemble(Nested(), 2)(torch.zeros(3, 3, 8, 8))


def test_random_signs_are_an_option() -> None:
    network: Any = batch_ensemble(Nested(), 2, init="signs").network
    assert set(network.body[0].r.unique().tolist()) <= {-1.0, 1.0}


def test_attention_can_be_left_out_by_its_type() -> None:
    conversion = batch_ensemble(Text(), 2, exclude=[nn.MultiheadAttention]).conversion
    assert conversion is not None
    converted = [layer.name for layer in conversion.converted]
    assert converted == [f"encoder.layers.{i}.linear{k}" for i in range(2) for k in (1, 2)] + ["head"]
    assert {layer.reason for layer in conversion.left_out} == {"it was excluded"}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer_layers_that_take_the_sequence_first_give_each_row_its_own_member() -> None:
    """Without an example nothing would tell that members were mixed: the 16 patches can be divided among 4 of them."""
    torch.manual_seed(0)
    model, images = SequenceFirst().double().eval(), torch.randn(3, 3, 8, 8, dtype=torch.float64)
    unchecked = batch_ensemble(model, 4, 0.5)
    for i, probs in enumerate(unchecked.predict_members(images)):
        torch.testing.assert_close(probs, extract_member(unchecked, i)(images).softmax(-1))
    assert batch_ensemble(model, 4, example_input=images).num_members == 4


def test_a_model_that_is_not_finished_or_cannot_be_copied_is_refused() -> None:
    with pytest.raises(InputError, match=r"0\.weight has no shape yet; run the model once"):
        batch_ensemble(nn.Sequential(nn.LazyLinear(3)))
    model = nn.Sequential(nn.Linear(2, 2))
    model.leftover = model(torch.zeros(1, 2))
    with pytest.raises(InputError, match="Sequential cannot be copied, so it is not converted: Only Tensors created"):
        batch_ensemble(model)


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated:FutureWarning")
@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
def test_a_norm_by_a_hook_converts_after_a_run_without_gradients(norm: Callable[[nn.Module], nn.Module]) -> None:
    model, rows = nn.Sequential(norm(nn.Linear(3, 4)), nn.ReLU(), nn.Linear(4, 2)).eval(), torch.randn(5, 3)
    model(rows)
    with pytest.raises(InputError, match=r"run it once under torch.no_grad\(\) before"):
        batch_ensemble(model, 2)
    with torch.no_grad():
        expected = model(rows).softmax(-1)
    ensemble = batch_ensemble(model, 2, init_std=0, example_input=rows)
    torch.testing.assert_close(ensemble.predict(rows), expected)
    assert ensemble.conversion is not None
    assert [layer.name for layer in ensemble.conversion.converted] == ["0", "2"]


def test_a_default_device_changes_nothing() -> None:
    """Tensors are made on it where no device is named. Those of a model are where the model is."""
    head = nn.Linear(4, 2)
    nn.init.zeros_(head.weight)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ReLU(), head)
    rows, generator = torch.randn(2, 3), torch.Generator()
    expected = batch_ensemble(model, 3, 0.5, example_input=rows, generator=generator.manual_seed(0))
    with torch.device("meta"):
        found = batch_ensemble(model, 3, 0.5, example_input=rows, generator=generator.manual_seed(0))
        signs = batch_ensemble(model, 3, init="signs")
    assert found.state_dict().keys() == expected.state_dict().keys()
    assert all(torch.equal(value, found.state_dict()[name]) for name, value in expected.state_dict().items())
    assert torch.equal(found.predict(rows), expected.predict(rows))
    assert all(parameter.device == rows.device for parameter in signs.parameters())


def test_the_default_start_is_small_and_said() -> None:
    generator = torch.Generator().manual_seed(0)
    ensemble = batch_ensemble(nn.Sequential(nn.Linear(400, 400)), 4, generator=generator)
    layer: Any = ensemble.network.get_submodule("0")
    assert abs(layer.r.std().item() - DEFAULT_INIT_STD) < 0.1 * DEFAULT_INIT_STD
    assert f"N(1, {DEFAULT_INIT_STD:g}²)" in str(ensemble.conversion)


def _replaced(model: nn.Module) -> nn.Module:
    """The model with a forward that calls its old one, as some libraries patch models."""
    old = model.forward
    model.forward = lambda x: old(x)
    return model


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            nn.DataParallel,
            r"the model \(DataParallel\) divides a batch .*; give the model inside it.* in DistributedDataParallel",
        ),
        (
            lambda layer: nn.Sequential(nn.DataParallel(layer)),
            r"'0' \(DataParallel\) divides a batch",
        ),
        (_replaced, r"'forward' of the model \(Linear\) holds a function that uses this very model"),
        (lambda layer: nn.Sequential(_replaced(layer)), r"'forward' of '0' \(Linear\) holds a function that uses"),
    ],
    ids=["parallel", "parallel inside", "replaced forward", "replaced forward inside"],
)
def test_a_model_that_a_copy_cannot_stand_for_is_refused(make: Callable[[nn.Module], nn.Module], message: str) -> None:
    for example in (None, torch.randn(2, 3)):
        with pytest.raises(InputError, match=message):
            batch_ensemble(make(nn.Linear(3, 3)), 2, example_input=example)


class Calls(nn.Module):
    """Calls its layer through a function that it keeps."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        layer, weight = self.layer, self.layer.weight

        def method(x: Tensor, method: Any = layer.forward) -> Tensor:
            return method(x)

        def default(x: Tensor, called: nn.Module = layer) -> Tensor:
            return called(x)

        def named_default(x: Tensor, *, called: nn.Module = layer) -> Tensor:
            return called(x)

        self.function: Any = {
            "variable": lambda x: layer(x),
            "method": method,
            "default": default,
            "named default": named_default,
            "parameter": lambda x: nn.functional.linear(x, weight),
            "function of a function": _twice(_twice(lambda x: layer(x))),
            "compiled": torch.compile(layer.forward, backend="eager"),
        }[how]

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _twice(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: function(function(x))


@pytest.mark.parametrize(
    "how", ["variable", "method", "default", "named default", "parameter", "function of a function", "compiled"]
)
def test_a_model_that_keeps_a_function_with_itself_in_it_is_refused(how: str) -> None:
    """A copy's function would go on using the old layer, without r and s, and would not train the copy's weights."""
    for example in (None, torch.randn(2, 3)):
        with pytest.raises(InputError, match=r"'function' of the model \(Calls\) holds a function that uses this very"):
            batch_ensemble(Calls(how), 2, example_input=example)


def test_a_list_of_functions_with_the_model_in_them_is_refused() -> None:
    model: Any = nn.Sequential(nn.Linear(3, 3))
    model.steps = [torch.relu, lambda x: model[0](x)]
    with pytest.raises(InputError, match=r"'steps' of the model \(Sequential\) holds a function that uses this very"):
        batch_ensemble(model, 2)


@dataclass(slots=True)
class Step:
    function: Any

    def run(self, x: Tensor) -> Tensor:
        return self.function(x)


def _applied(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(x)


HIDDEN: dict[str, Callable[[nn.Linear], Any]] = {
    "a partial of a function": lambda layer: partial(lambda x: layer(x)),
    "a partial with a function": lambda layer: partial(_applied, lambda x: layer(x)),
    "a method of an object with a function": lambda layer: Step(lambda x: layer(x)).run,
    "a function that is a method": lambda layer: MethodType(lambda _self, x: layer(x), Step(None)),
    "a method of a weight": lambda layer: layer.weight.matmul,
    "objects in lists in dicts": lambda layer: {"steps": [(Step(lambda x: layer(x)),)]},
    "a set": lambda layer: {lambda x: layer(x)},
    "a function with a partial": lambda layer: (lambda applied: lambda x: applied(x))(partial(_applied, layer)),
    "a function with an object": lambda layer: (lambda step: lambda x: step.run(x))(Step(layer)),
    "an object, and a function with it": lambda layer: (lambda step: (step, lambda x: step.run(x), step))(Step(layer)),
    "a function with a dict": lambda layer: (lambda layers: lambda x: layers["first"](x))({"first": layer}),
    "a function with a list of functions": lambda layer: (lambda steps: lambda x: steps[0](x))([lambda x: layer(x)]),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_a_function_with_the_model_in_it_is_found_wherever_it_is_kept(how: str) -> None:
    model: Any = nn.Sequential(nn.Linear(3, 3))
    model.kept = HIDDEN[how](model[0])
    with pytest.raises(InputError, match=r"'kept' of the model \(Sequential\) holds a function that uses this very"):
        batch_ensemble(model, 2)


@pytest.mark.parametrize(
    "keep", [lambda layer: layer.__call__, lambda layer: partial(_applied, layer), lambda layer: Step(layer).run]
)
def test_what_a_copy_takes_along_is_not_refused(keep: Callable[[nn.Linear], Any]) -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.kept = keep(self.layer)

        def forward(self, x: Tensor) -> Tensor:
            return self.kept(x)

    torch.manual_seed(0)
    ensemble = batch_ensemble(Keeps(), 2, 0.5, example_input=torch.randn(2, 3))
    probs_MBK = ensemble.predict_members(torch.randn(2, 3))
    assert not torch.allclose(probs_MBK[0], probs_MBK[1]), "its members are the layer's"


def test_a_hook_of_saving_and_loading_may_use_the_model() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    model.register_state_dict_post_hook(lambda _module, saved, _prefix, _extra: saved.update(parts=len(model)))
    model.register_load_state_dict_post_hook(lambda _module, _keys: model.train())
    assert batch_ensemble(model, 2, example_input=torch.randn(2, 3)).num_members == 2


def test_a_hook_with_the_model_in_it_is_refused() -> None:
    model, adapter = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)), nn.Linear(3, 3)
    model.adapter = adapter
    model[0].register_forward_hook(lambda _layer, _inputs, output: output + adapter(output))
    with pytest.raises(
        InputError, match=r"'_forward_hooks' of '0' \(Linear\) holds a function .*add it to the ensemble's network"
    ):
        batch_ensemble(model, 2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused_with_and_without_an_example() -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 3)))
    for model in (scripted, nn.Sequential(scripted)):
        for example in (None, torch.randn(2, 3)):
            with pytest.raises(InputError, match="is TorchScript, whose layers cannot be changed"):
                batch_ensemble(model, 2, example_input=example)


def test_a_layer_with_a_forward_of_its_own_is_left_out() -> None:
    """It would pass the members over: Python finds the layer's own forward before that of its class."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    first: Any = model[0]
    first.forward = MethodType(lambda self, x: nn.functional.linear(x, 2 * self.weight), first)
    model[1].forward = MethodType(nn.Linear.forward, model[1])
    rows = torch.randn(2, 3)
    with pytest.raises(InputError, match=r"1 \(Linear\): its forward was replaced on this very layer"):
        batch_ensemble(model, 2)
    del model[1].forward
    ensemble = batch_ensemble(model, 2, init_std=0, example_input=rows)
    torch.testing.assert_close(ensemble.predict(rows), model(rows).softmax(-1))
    assert ensemble.conversion is not None
    assert [layer.name for layer in ensemble.conversion.left_out] == ["0"]


def test_functions_without_the_model_in_them_do_no_harm() -> None:
    model: Any = nn.Sequential(nn.Linear(3, 2), nn.Identity())
    factor, other = 3.0, nn.Linear(3, 2)
    model[1].forward = lambda x: x * factor
    model.losses = [lambda x: calls_itself(other(x))]
    model[0].register_forward_hook(lambda _layer, _inputs, output: output * factor)

    def calls_itself(x: Tensor) -> Tensor:
        return calls_itself(x - 1) if x.sum() > 0 else never(x)

    model.recursive = calls_itself
    if factor < 0:

        def never(x: Tensor) -> Tensor:
            return x

    rows = torch.randn(2, 3)
    ensemble = batch_ensemble(model, 2, init_std=0, example_input=rows)
    torch.testing.assert_close(ensemble.predict(rows), model(rows).softmax(-1))


def test_a_model_that_was_compiled_in_place_converts() -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    model.compile(backend="eager")
    rows = torch.randn(2, 3)
    ensemble = batch_ensemble(model, 2, init_std=0, example_input=rows)
    torch.testing.assert_close(ensemble.predict(rows), model.forward(rows).softmax(-1))


@pytest.mark.parametrize("inside", [False, True], ids=["the model", "a part of it"])
def test_a_compiled_model_converts_and_is_checked(inside: bool) -> None:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled: Any = torch.compile(body, backend="eager")
    model = nn.Sequential(compiled) if inside else compiled
    rows = torch.randn(5, 3)
    ensemble = batch_ensemble(model, 2, 0.5, example_input=rows)
    probs_MBK = ensemble.predict_members(rows)
    for i in range(2):
        torch.testing.assert_close(probs_MBK[i], extract_member(ensemble, i)(rows).softmax(-1))
    assert not torch.allclose(probs_MBK[0], probs_MBK[1])
