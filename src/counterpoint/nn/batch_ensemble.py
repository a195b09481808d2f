"""The BatchEnsemble layers: torch's linear layer and convolutions, and any other layer that is linear in its input."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from counterpoint.errors import whole_number
from counterpoint.nn.members import Init, MemberLayer, initial_factors


class FoldableLayer(MemberLayer):
    """A layer that uses its weight as it is, so that a member's weight can be formed.

    Parameters: `weight` (shared), `r` (M, out), `s` (M, in) and `bias` (M, out) or None.
    """

    groups: int = 1
    transposed: bool = False
    bias: Any  # torch says Parameter here and Parameter | None there

    def bias_of_members(self) -> Tensor | None:
        bias: Tensor | None = self.bias
        return bias

    def member_weight(self, index: int) -> Tensor:
        """W ∘ r_i s_iᵀ. With groups, an output channel sees only its group's part of s_i."""
        index = whole_number("member", index, 0, self.num_members - 1)
        r, s = self.r[index], self.s[index]
        first, second = (s, r) if self.transposed else (r, s)  # a transposed convolution's weight is (in, out, …)
        rows, columns = len(first) // self.groups, len(second) // self.groups
        by_group = second.view(self.groups, 1, columns).expand(-1, rows, -1).reshape(len(first), columns)
        kernel = (1,) * (self.weight.dim() - 2)
        return self.weight * first.view(-1, 1, *kernel) * by_group.view(-1, columns, *kernel)


class _Convolution(FoldableLayer):
    def apply_weight(self, scaled: Tensor) -> Tensor:
        output: Tensor = self._conv_forward(scaled, self.weight, None)  # type: ignore[operator]
        return output


class BatchEnsembleConv1d(_Convolution, nn.Conv1d):
    plain = nn.Conv1d


class BatchEnsembleConv2d(_Convolution, nn.Conv2d):
    """A convolution with members: `weight` is shared; `r` (M, out), `s` (M, in) and `bias` (M, out) are the members'.

    The input is folded: the rows of member 0 first, then those of member 1, and so on. The arguments are `num_members`
    and those of `torch.nn.Conv2d`, but for `device` and `dtype`: use `.to(…)`. r and s start as N(1, init_std²), or as
    random signs with init="signs". With bias=False, `bias` is None.

    >>> import torch
    >>> from counterpoint.nn import BatchEnsembleConv2d
    >>> layer = BatchEnsembleConv2d(3, 8, 3, num_members=4, padding=1)
    >>> layer(torch.randn(4 * 2, 3, 32, 32)).shape  # 4 members × 2 images
    torch.Size([8, 8, 32, 32])
    >>> layer.member_weight(0).shape  # W ∘ r sᵀ of member 0
    torch.Size([8, 3, 3, 3])
    """

    plain = nn.Conv2d

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        *,
        num_members: int,
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        init: Init = "normal",
        init_std: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        num_members = whole_number("num_members", num_members, 1)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        _add_factors(self, in_channels, out_channels, num_members, init, init_std, generator)
        if bias:
            self.bias = nn.Parameter(torch.zeros(num_members, out_channels))


class BatchEnsembleConv3d(_Convolution, nn.Conv3d):
    plain = nn.Conv3d


class _TransposedConvolution(FoldableLayer):
    function: Any

    def apply_weight(self, scaled: Tensor, output_size: list[int] | None = None) -> Tensor:
        layer: Any = self
        axes = self.weight.dim() - 2
        sizes = (layer.stride, layer.padding, layer.kernel_size, axes, layer.dilation)
        padding = layer._output_padding(scaled, output_size, *sizes)
        options = (layer.stride, layer.padding, padding, self.groups, layer.dilation)
        output: Tensor = type(self).function(scaled, self.weight, None, *options)
        return output


class BatchEnsembleConvTranspose1d(_TransposedConvolution, nn.ConvTranspose1d):
    plain, function = nn.ConvTranspose1d, staticmethod(nn.functional.conv_transpose1d)


class BatchEnsembleConvTranspose2d(_TransposedConvolution, nn.ConvTranspose2d):
    plain, function = nn.ConvTranspose2d, staticmethod(nn.functional.conv_transpose2d)


class BatchEnsembleConvTranspose3d(_TransposedConvolution, nn.ConvTranspose3d):
    plain, function = nn.ConvTranspose3d, staticmethod(nn.functional.conv_transpose3d)


class BatchEnsembleLinear(FoldableLayer, nn.Linear):
    """A linear layer with members: `weight` is shared; `r` (M, out), `s` (M, in) and `bias` (M, out) are the members'.

    The input is folded: the rows of member 0 first, then those of member 1, and so on. It may have further axes between
    the rows and the features.

    >>> import torch
    >>> from counterpoint.nn import BatchEnsembleLinear
    >>> layer = BatchEnsembleLinear(16, 10, num_members=4)
    >>> layer(torch.randn(4 * 2, 16)).shape  # 4 members × 2 rows
    torch.Size([8, 10])
    >>> sorted(name for name, _ in layer.named_parameters())
    ['bias', 'r', 's', 'weight']
    """

    plain = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        num_members: int,
        bias: bool = True,
        init: Init = "normal",
        init_std: float = 0.5,
        generator: torch.Generator | None = None,
    ) -> None:
        num_members = whole_number("num_members", num_members, 1)
        super().__init__(in_features, out_features, bias=False)
        _add_factors(self, in_features, out_features, num_members, init, init_std, generator)
        if bias:
            self.bias = nn.Parameter(torch.zeros(num_members, out_features))

    def apply_weight(self, scaled: Tensor) -> Tensor:
        return nn.functional.linear(scaled, self.weight)


class WrappedLayer(MemberLayer):
    """Any layer that is linear in its input, whatever it does to its weight before use; its own code is called.

    That code must not add a bias before r is multiplied. So `bias` is None, and the members' is called `member_bias`.
    """

    member_bias: nn.Parameter | None

    def apply_weight(self, scaled: Tensor, *arguments: Any, **by_name: Any) -> Tensor:
        output: Tensor = self.plain.forward(self, scaled, *arguments, **by_name)
        return output

    def bias_of_members(self) -> Tensor | None:
        return self.member_bias

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Its class is made when it is needed, so pickle cannot import it.
        return _blank, (self.plain,), self.__getstate__()


FOLDABLE: dict[type[nn.Module], type[FoldableLayer]] = {
    layer.plain: layer
    for layer in (
        BatchEnsembleConv1d,
        BatchEnsembleConv2d,
        BatchEnsembleConv3d,
        BatchEnsembleConvTranspose1d,
        BatchEnsembleConvTranspose2d,
        BatchEnsembleConvTranspose3d,
        BatchEnsembleLinear,
    )
}


def is_foldable(layer: nn.Module) -> bool:
    """Whether a layer uses its weight as it is: no subclass, and no hook that computes the weight before each call."""
    return type(layer) in FOLDABLE and isinstance(layer.weight, nn.Parameter)


def give_members(
    layer: nn.Module, num_members: int, init: Init, init_std: float, generator: torch.Generator | None
) -> None:
    """Make `layer` a layer of M members. It stays the same object, with its weight, its hooks and whatever it has."""
    old: Any = layer
    bias = old.bias
    inputs, outputs = channels(layer)
    layer.__class__ = FOLDABLE[type(layer)] if is_foldable(layer) else _wrapped(type(layer))
    _add_factors(old, inputs, outputs, num_members, init, init_std, generator)
    members_bias = None
    if bias is not None:  # a frozen bias stays frozen
        members_bias = nn.Parameter(bias.detach().expand(num_members, -1).clone(), bias.requires_grad)
    if isinstance(layer, FoldableLayer):
        layer.bias = members_bias
    else:
        old.bias = None
        old.register_parameter("member_bias", members_bias)


@torch.no_grad()
def keep_one_member(layer: MemberLayer, index: int) -> None:
    """Make `layer` what member `index` has: a plain layer if its weight can be formed, else a layer of one member."""
    bias = layer.bias_of_members()
    if isinstance(layer, FoldableLayer):
        one: Any = layer
        one.weight = nn.Parameter(layer.member_weight(index), layer.weight.requires_grad)
        one.bias = None if bias is None else nn.Parameter(bias[index].clone(), bias.requires_grad)
        del one.r, one.s, one.num_members
        one.__class__ = layer.plain
    elif isinstance(layer, WrappedLayer):
        layer.num_members = 1
        for name, factors in (("r", layer.r), ("s", layer.s), ("member_bias", bias)):
            if factors is not None:
                setattr(layer, name, nn.Parameter(factors[index : index + 1].clone(), factors.requires_grad))


def channels(layer: nn.Module) -> tuple[int, int]:
    """How many channels or features a layer takes and gives."""
    plain: Any = layer
    if isinstance(layer, nn.Linear):
        return plain.in_features, plain.out_features
    return plain.in_channels, plain.out_channels


def _add_factors(
    layer: Any, inputs: int, outputs: int, num_members: int, init: Init, std: float, generator: torch.Generator | None
) -> None:
    layer.num_members = num_members
    like = next(layer.parameters())  # `weight` may be what a hook computed before the layer got its dtype
    for name, size in (("r", outputs), ("s", inputs)):
        factors = initial_factors((num_members, size), init, std, generator)
        setattr(layer, name, nn.Parameter(factors.to(like)))


def _wrapped(plain: type[nn.Module]) -> type[WrappedLayer]:
    return type(f"BatchEnsemble{plain.__name__}", (WrappedLayer, plain), {"plain": plain})


def _blank(plain: type[nn.Module]) -> WrappedLayer:
    cls = _wrapped(plain)
    return cls.__new__(cls)
