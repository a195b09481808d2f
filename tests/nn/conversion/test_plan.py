import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize, prune

from counterpoint.errors import InputError
from counterpoint.nn import batch_ensemble
from counterpoint.nn.conversion.check import Example
from counterpoint.nn.conversion.plan import Plan, make_plan
from tests.nn.conversion import layers


class Mixed(nn.Module):
    """Layers of many kinds; only what `forward` calls counts as called."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(4))
        self.embedding = nn.Embedding(5, 4)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), layers.CosineLinear(4, 4))
        self.rnn = nn.GRU(4, 4, batch_first=True)
        self.cell = nn.LSTMCell(4, 4)
        self.attention = layers.Attention(4, 1)
        self.bilinear = nn.Bilinear(4, 4, 4)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.read = nn.Linear(4, 4)
        self.unused = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.normed(self.body(x) + self.token).to(self.unused.weight.dtype)
        x = nn.functional.linear(x, self.read.weight, self.read.bias)
        logits: torch.Tensor = self.head(x)
        return logits


def reasons(plan: Plan) -> dict[str, str]:
    return {layer.name: layer.reason for layer in plan.left_out}


def test_what_cannot_be_converted_is_listed_with_its_reason() -> None:
    plan = make_plan(Mixed(), None, (), None)
    assert list(plan.layers) == ["body.0", "normed", "read", "unused", "head"]
    assert reasons(plan) == {
        "body.2": "CosineLinear is not linear in its input",
        "rnn": "a recurrent layer reads its weights in one fused call",
        "cell": "a recurrent layer reads its weights in one fused call",
        "attention": "a subclass of MultiheadAttention may use its weights in another way",
        "bilinear": "it has two inputs, and s can multiply only one",
    }
    assert [(layer.name, layer.kind) for layer in plan.shared] == [
        ("Mixed.token", "parameter"),
        ("embedding", "Embedding"),
        ("body.1", "LayerNorm"),
    ]


def test_an_example_shows_which_layers_are_called() -> None:
    plan = make_plan(Mixed(), None, (), Example.of(torch.randn(2, 4)))
    assert list(plan.layers) == ["body.0", "normed", "head"]
    assert reasons(plan)["read"] == "it is not called: Mixed reads its weight directly"
    assert reasons(plan)["unused"] == "it is not called in evaluation mode"  # its dtype alone is no use of its weight


@pytest.mark.parametrize(
    ("include", "exclude", "converted"),
    [
        (None, ["body"], ["normed", "read", "unused", "head"]),
        (None, ["b*.0", "[ru]*"], ["normed", "head"]),
        (["body", "head"], [], ["body.0", "head"]),
        ([nn.Linear], ["head"], ["body.0", "normed", "read", "unused"]),
        (["head"], [nn.Embedding], ["head"]),
        ([nn.Sequential, "h*"], [], ["body.0", "head"]),
    ],
)
def test_layers_are_chosen_by_name_or_type(
    include: list[str | type[nn.Module]] | None, exclude: list[str | type[nn.Module]], converted: list[str]
) -> None:
    plan = make_plan(Mixed(), include, exclude, None)
    assert list(plan.layers) == converted
    said = {"it was excluded", "it was not included"} & set(reasons(plan).values())
    assert said == {"it was excluded" if include in (None, [nn.Linear]) else "it was not included"}


def test_one_name_or_type_needs_no_list() -> None:
    assert list(make_plan(Mixed(), "head", (), None).layers) == ["head"]
    assert list(make_plan(Mixed(), nn.Linear, (), None).layers) == list(
        make_plan(Mixed(), [nn.Linear], (), None).layers
    )
    assert "head" not in make_plan(Mixed(), None, "head", None).layers


def test_a_layer_may_be_chosen_by_any_of_its_names() -> None:
    """A model may keep a layer, or what it is in, in two places. The plan knows it by the first."""
    network = nn.Module()
    network.body = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))])
    network.head, network.all = network.body[1], nn.ModuleList([network.body])
    assert list(make_plan(network, None, "head", None).layers) == ["body.0"]
    assert list(make_plan(network, "head.0", (), None).layers) == ["body.1.0"]
    assert list(make_plan(network, None, ["all.*.1"], None).layers) == ["body.0"]


def test_a_choice_that_no_layer_has_is_a_slip() -> None:
    with pytest.raises(InputError, match="unknown layer 'haed'; did you mean 'head'"):
        make_plan(Mixed(), None, ["haed"], None)
    with pytest.raises(InputError, match="unknown type of layer 'Conv2d'"):
        make_plan(Mixed(), [nn.Conv2d], (), None)


def test_a_layer_of_a_strange_class_with_a_weight_is_not_passed_over_in_silence() -> None:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 2))

    plan = make_plan(nn.Sequential(Product(), nn.Linear(2, 2)), None, (), None)
    assert reasons(plan) == {"0": "counterpoint does not know how it uses its weight"}


def test_a_bias_that_is_computed_is_no_members_own() -> None:
    """Whatever computes it would put it in the place of the members' biases."""
    pruned = prune.l1_unstructured(nn.Linear(2, 2), "bias", 0.5)
    bounded = parametrize.register_parametrization(nn.Linear(2, 2), "bias", nn.Tanh())
    plan = make_plan(nn.Sequential(pruned, bounded, nn.Linear(2, 2)), None, (), None)
    assert list(plan.layers) == ["2"]
    reason = "its bias is computed before each call, so that members cannot have their own"
    assert reasons(plan) == {"0": reason, "1": reason}


def test_a_function_that_returns_several_tensors_reads_weights_too() -> None:
    class Splits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = torch.split(self.layer.weight, 2)
            logits: torch.Tensor = self.head(x @ torch.cat([first, second]).T)
            return logits

    plan = make_plan(Splits(), None, (), Example.of(torch.randn(2, 4)))
    assert reasons(plan)["layer"] == "it is not called: Splits reads its weight directly"


class WithPositions(nn.Module):
    """A layer that makes a bias from a table, the same for every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Buffer(torch.randn(1, 5, 2))
        self.positions, self.head = nn.Linear(2, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head((x + self.positions(self.table)).mean(1))
        return logits


def test_a_layer_that_is_not_applied_to_rows_is_shared() -> None:
    plan = make_plan(WithPositions(), None, (), Example.of(torch.randn(2, 5, 4)))
    assert list(plan.layers) == ["head"]
    assert reasons(plan)["positions"].startswith("its input is not a batch")
    ensemble = batch_ensemble(WithPositions(), 2, 0.5, example_input=torch.randn(2, 5, 4))
    assert ensemble.predict(torch.randn(3, 5, 4)).shape == (3, 3)


def test_a_model_that_fails_on_the_example_is_refused_with_the_place() -> None:
    model = nn.Sequential(nn.Identity(), nn.Sequential(nn.Linear(3, 2)))
    with pytest.raises(InputError, match=r"the model fails on the example input: '1.0' \(Linear\) raised RuntimeError"):
        make_plan(model, None, (), Example.of(torch.randn(2, 4)))
