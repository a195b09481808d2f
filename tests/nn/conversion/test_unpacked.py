"""Attention made of linear layers against torch's own, in float64."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.conversion.unpacked import UnpackedAttention, unpack
from tests.nn.conversion.layers import Text

ROWS, QUERIES, KEYS, HEADS = 3, 4, 5, 2
PADDING: dict[str, Tensor | None] = {
    "none": None,
    "bool": torch.tensor([[False, False, True, False, True]] * ROWS),
    "float": torch.linspace(-1, 1, ROWS * KEYS).double().view(ROWS, KEYS),
}
ATTENTION: dict[str, Tensor | None] = {
    "none": None,
    "bool": torch.ones(QUERIES, KEYS).triu(2) > 0,
    "float": torch.linspace(-1, 2, QUERIES * KEYS).double().view(QUERIES, KEYS),
    "per head": torch.linspace(-1, 2, ROWS * HEADS * QUERIES * KEYS).double().view(ROWS * HEADS, QUERIES, KEYS),
}
# torch wants both masks of one kind.
MASKS = [(p, a) for p in PADDING for a in ATTENTION if "none" in (p, a) or (p == "bool") == (a == "bool")]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"kdim": 5, "vdim": 7}, {"add_bias_kv": True}, {"add_zero_attn": True}],
    ids=str,
)
@pytest.mark.parametrize(("padding", "attention"), MASKS)
def test_it_computes_what_torch_computes(
    padding: str, attention: str, options: dict[str, Any], batch_first: bool
) -> None:
    torch.manual_seed(0)
    packed = nn.MultiheadAttention(8, HEADS, batch_first=batch_first, **options).double()
    for parameter in packed.parameters():
        nn.init.normal_(parameter)
    unpacked = unpack(copy.deepcopy(packed))
    assert type(unpacked) is UnpackedAttention
    sizes = ((QUERIES, 8), (KEYS, options.get("kdim", 8)), (KEYS, options.get("vdim", 8)))
    inputs = [torch.randn(ROWS, *size, dtype=torch.float64) for size in sizes]
    if not batch_first:
        inputs = [x.transpose(0, 1) for x in inputs]
    masks: dict[str, Any] = {"key_padding_mask": PADDING[padding], "attn_mask": ATTENTION[attention]}
    for wanted in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        expected, found = (attend(*inputs, **masks, **wanted) for attend in (packed, unpacked))
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_dropout_falls_on_the_weights_only_in_training() -> None:
    torch.manual_seed(0)
    unpacked = unpack(nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True))
    x = torch.randn(2, 40, 8)
    dropped = unpacked.train()(x, x, x, average_attn_weights=False)[1]
    assert 0.4 < (dropped == 0).double().mean() < 0.6
    assert not (unpacked.eval()(x, x, x)[1] == 0).any()


def test_torchs_fused_path_is_left_and_the_result_is_the_same() -> None:
    torch.manual_seed(0)
    model = Text().eval()
    unpacked = unpack(copy.deepcopy(model)).eval()
    calls: list[nn.Module] = []
    for module in unpacked.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(lambda layer, *_: calls.append(layer))
    tokens, padding = torch.randint(11, (3, 6)), torch.arange(6) > torch.tensor([[3], [5], [4]])
    for mask in (None, padding):
        slow = model(tokens, mask)  # with gradients torch takes no fused path, which would give padding other values
        with torch.inference_mode():
            torch.testing.assert_close(unpacked(tokens, mask), slow)
    assert set(calls) == {module for module in unpacked.modules() if isinstance(module, nn.Linear)}


def test_a_module_used_twice_stays_one() -> None:
    attention = nn.MultiheadAttention(4, 1)
    both: Any = unpack(nn.ModuleList([attention, attention]))
    assert both[0] is both[1]
    assert type(both[0]) is UnpackedAttention


def test_parameters_that_were_shared_stay_shared() -> None:
    first, second = (nn.MultiheadAttention(4, 1) for _ in range(2))
    second.in_proj_weight = first.in_proj_weight
    one, other = (module for module in unpack(nn.ModuleList([first, second])).children())
    assert isinstance(one, UnpackedAttention)
    assert isinstance(other, UnpackedAttention)
    for name in ("q_proj", "k_proj", "v_proj"):
        assert getattr(one, name).weight is getattr(other, name).weight
        assert getattr(one, name).bias is not getattr(other, name).bias


def test_what_torch_allows_without_a_batch_is_refused() -> None:
    unpacked = unpack(nn.MultiheadAttention(4, 1))
    with pytest.raises(InputError, match=r"the query has shape \(3, 4\); attention in an ensemble needs a batch axis"):
        unpacked(*[torch.zeros(3, 4)] * 3)
    with pytest.raises(InputError, match="is_causal needs attn_mask"):
        unpacked(*[torch.zeros(3, 2, 4)] * 3, is_causal=True)
