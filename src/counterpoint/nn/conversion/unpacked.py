"""Layers that read their weights instead of calling a layer, rewritten so that they call nn.Linear layers.

nn.MultiheadAttention keeps three projections in one weight. transformers' Conv1D is a linear layer whose weight is
transposed. Once they are made of nn.Linear, they convert like everything else.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention

from counterpoint.errors import InputError

_PROJECTIONS = ("q_proj", "k_proj", "v_proj")


class UnpackedAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention with the linear layers `q_proj`, `k_proj`, `v_proj` and `out_proj`.

    It has no packed weight. Seeing that, torch's transformer layers leave their fused inference path, which would read
    the weights past the members.
    """

    q_proj: nn.Module
    k_proj: nn.Module
    v_proj: nn.Module

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As torch's, for inputs with a batch axis. `is_causal` is only a hint there too: the mask must be given."""
        if query.dim() != 3:
            raise InputError(f"the query has shape {tuple(query.shape)}; attention in an ensemble needs a batch axis")
        if is_causal and attn_mask is None:
            raise InputError("is_causal needs attn_mask, the mask itself")
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        k, v, added = self._with_added_keys(k, v)
        mask = _joined_mask(key_padding_mask, attn_mask, len(q), self.num_heads, added, q.dtype)
        q, k, v = (x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in (q, k, v))
        rate = self.dropout if self.training else 0.0
        if need_weights:
            attended, weights = _attend(q, k, v, mask, rate)
        else:
            attended, weights = scaled_dot_product_attention(q, k, v, mask, rate), None
        output = self.out_proj(attended.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(dim=1)
        return output if self.batch_first else output.transpose(0, 1), weights

    def _with_added_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """Keys and values with those that add_bias_kv and add_zero_attn append, and how many these are."""
        before = k.shape[1]
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (torch.cat([x, bias.expand(len(x), 1, -1)], 1) for x, bias in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = (torch.cat([x, torch.zeros_like(x[:, :1])], 1) for x in (k, v))
        return k, v, k.shape[1] - before


@dataclass(frozen=True, eq=False)
class _Piece:
    """One of several equal parts of a parameter, transposed or not."""

    parameter: nn.Parameter
    part: int = 0
    parts: int = 1
    transposed: bool = False

    @property
    def key(self) -> tuple[int, int]:
        return id(self.parameter), self.part

    def copied(self) -> nn.Parameter:
        values = self.parameter.detach().chunk(self.parts)[self.part]
        values = values.t() if self.transposed else values
        return nn.Parameter(values.clone(memory_format=torch.contiguous_format), self.parameter.requires_grad)


SharedParameters = dict[tuple[int, int], nn.Parameter]
"""The new parameter of each piece, so that modules that shared a parameter share the new one."""


def unpack(network: nn.Module) -> nn.Module:
    """`network`, changed in place, with each module above made of nn.Linear layers and fused paths switched off.

    A module or a parameter that is used in two places stays one.
    """
    shared: SharedParameters = {}
    unpacked = {module: _unpacked(module, shared) for module in list(network.modules())}
    for parent in unpacked:
        for name, child in parent._modules.items():
            if child is not None and child in unpacked:  # attention has new children of its own
                parent._modules[name] = unpacked[child]
    return unpacked[network]


def _unpacked(module: nn.Module, shared: SharedParameters) -> nn.Module:
    if type(module) is nn.MultiheadAttention:
        _unpack_attention(module, shared)
    elif isinstance(module, nn.TransformerEncoder):
        module.use_nested_tensor = False  # nested tensors have no rows that could belong to a member
    elif isinstance(module, nn.TransformerEncoderLayer):
        module.activation_relu_or_gelu = 0  # which torch asks before it takes the fused path
    elif f"{type(module).__module__}.{type(module).__name__}" == "transformers.pytorch_utils.Conv1D":
        conv1d: Any = module
        return _linear(_Piece(conv1d.weight, transposed=True), _Piece(conv1d.bias), shared)
    return module


def _unpack_attention(attention: Any, shared: SharedParameters) -> None:
    packed, bias = attention.in_proj_weight, attention.in_proj_bias
    attention.__class__ = UnpackedAttention
    for part, name in enumerate(_PROJECTIONS):
        separate = getattr(attention, f"{name}_weight")
        weight = _Piece(separate) if packed is None else _Piece(packed, part, 3)
        setattr(attention, name, _linear(weight, None if bias is None else _Piece(bias, part, 3), shared))
    for name in ("in_proj_weight", "in_proj_bias", *(f"{projection}_weight" for projection in _PROJECTIONS)):
        setattr(attention, name, None)
    attention._qkv_same_embed_dim = False
    attention.out_proj.__class__ = nn.Linear  # a subclass whose only difference is that torch does not quantise it


def _linear(weight: _Piece, bias: _Piece | None, shared: SharedParameters) -> nn.Linear:
    """A layer with new parameters, or with those that were made of the same pieces before."""
    values = shared.setdefault(weight.key, weight.copied())
    linear = nn.Linear(values.shape[1], values.shape[0], bias is not None, device="meta")
    linear.weight = values
    if bias is not None:
        linear.bias = shared.setdefault(bias.key, bias.copied())
    return linear


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float) -> tuple[Tensor, Tensor]:
    """Attention written out, for callers who want the weights (N, heads, L, S)."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    weights = dropout((scores if mask is None else scores + mask).softmax(-1), rate)
    return weights @ v, weights


def _joined_mask(
    padding_NS: Tensor | None, attention: Tensor | None, rows: int, heads: int, added: int, dtype: torch.dtype
) -> Tensor | None:
    """Both masks as one that is added to the scores; the keys that were added are seen by every query."""
    masks = []
    if padding_NS is not None:
        masks.append(_additive(padding_NS, dtype)[:, None, None, :])
    if attention is not None:
        additive = _additive(attention, dtype)
        masks.append(additive if attention.dim() == 2 else additive.unflatten(0, (rows, heads)))
    if not masks:
        return None
    mask = masks[0] if len(masks) == 1 else masks[0] + masks[1]
    return nn.functional.pad(mask, (0, added)) if added else mask


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """True, where a key is not to be seen, becomes minus infinity."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, float("-inf"))
