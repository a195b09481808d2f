"""BatchEnsemble layers: one shared weight W, and vectors r_i, s_i that make member i's weight W ∘ r_i s_iᵀ.

Inputs are folded, member-major: rows 0 … B−1 belong to member 0, the next B to member 1, and so on. The weight of a
member is never formed. Instead its rows are multiplied by s_i before W is applied and by r_i afterwards (Wen et al.
2020, eq. 5).
"""

from typing import Literal

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, unknown

Init = Literal["normal", "signs"]


def rows_per_member(rows: int, num_members: int) -> int:
    """B of a folded batch of M·B rows."""
    if rows % num_members:
        raise InputError(
            f"a batch of {rows} rows cannot be divided among {num_members} members; "
            f"fold (M, B, …) views member-major, so that the rows are a multiple of {num_members}"
        )
    return rows // num_members


def expand_to_rows(values_MC: Tensor, rows: int) -> Tensor:
    """Each member's vector repeated for each of its rows: (M, C) to (M·B, C)."""
    members, channels = values_MC.shape
    return values_MC[:, None].expand(members, rows_per_member(rows, members), channels).reshape(rows, channels)


def _initial_factors(shape: tuple[int, int], init: Init, std: float, generator: torch.Generator | None) -> Tensor:
    if init == "normal":
        return torch.randn(shape, generator=generator) * std + 1
    if init == "signs":
        return torch.randint(0, 2, shape, generator=generator) * 2.0 - 1
    raise unknown("init", init, ("normal", "signs"))


def _check_members(num_members: int) -> None:
    if num_members < 1:
        raise InputError(f"num_members is {num_members}; it must be 1 or more")


def _check_member(index: int, num_members: int) -> None:
    if not 0 <= index < num_members:
        raise InputError(f"member {index} does not exist; members are 0 to {num_members - 1}")


class BatchEnsembleConv2d(nn.Conv2d):
    """A convolution with the parameters `weight` (shared), `r` (M, out), `s` (M, in) and `bias` (M, out) or None.

    r and s start as N(1, init_std²), or as random signs with init="signs".
    """

    r: nn.Parameter
    s: nn.Parameter

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
        _check_members(num_members)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self.num_members = num_members
        self.r = nn.Parameter(_initial_factors((num_members, out_channels), init, init_std, generator))
        self.s = nn.Parameter(_initial_factors((num_members, in_channels), init, init_std, generator))
        if bias:
            self.bias = nn.Parameter(torch.zeros(num_members, out_channels))

    def forward(self, input: Tensor) -> Tensor:
        rows = input.shape[0]
        scaled = (input * expand_to_rows(self.s, rows)[..., None, None]).to(input.dtype)
        output = self._conv_forward(scaled, self.weight, None)
        # In mixed precision the factors are fp32, so the product and the bias are added in fp32 and rounded once.
        result = output * expand_to_rows(self.r, rows)[..., None, None]
        if self.bias is not None:
            result = result + expand_to_rows(self.bias, rows)[..., None, None]
        return result.to(output.dtype)

    def member_weight(self, index: int) -> Tensor:
        """W ∘ r_i s_iᵀ. With groups, an output channel sees only its group's part of s_i."""
        _check_member(index, self.num_members)
        s_by_group = self.s[index].view(self.groups, 1, -1).expand(-1, self.out_channels // self.groups, -1)
        s_OI = s_by_group.reshape(self.out_channels, self.in_channels // self.groups)
        return self.weight * self.r[index][:, None, None, None] * s_OI[:, :, None, None]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_members={self.num_members}"


class BatchEnsembleLinear(nn.Linear):
    """A linear layer with the parameters `weight` (shared), `r` (M, out), `s` (M, in) and `bias` (M, out) or None.

    The input may have further axes between the rows and the features.
    """

    r: nn.Parameter
    s: nn.Parameter

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
        _check_members(num_members)
        super().__init__(in_features, out_features, bias=False)
        self.num_members = num_members
        self.r = nn.Parameter(_initial_factors((num_members, out_features), init, init_std, generator))
        self.s = nn.Parameter(_initial_factors((num_members, in_features), init, init_std, generator))
        if bias:
            self.bias = nn.Parameter(torch.zeros(num_members, out_features))

    def forward(self, input: Tensor) -> Tensor:
        rows, between = input.shape[0], (1,) * (input.dim() - 2)
        s, r = (expand_to_rows(factor, rows).view(rows, *between, -1) for factor in (self.s, self.r))
        output = nn.functional.linear((input * s).to(input.dtype), self.weight)
        result = output * r
        if self.bias is not None:
            result = result + expand_to_rows(self.bias, rows).view(rows, *between, -1)
        return result.to(output.dtype)

    def member_weight(self, index: int) -> Tensor:
        """W ∘ r_i s_iᵀ."""
        _check_member(index, self.num_members)
        return self.weight * self.r[index][:, None] * self.s[index][None, :]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_members={self.num_members}"
