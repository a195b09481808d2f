"""What gives a layer members: vectors r_i and s_i around its weight W, so that member i's weight is W ∘ r_i s_iᵀ.

Inputs are folded, member-major: rows 0 … B−1 belong to member 0, the next B to member 1, and so on. The weight of a
member is never formed. Instead its rows are multiplied by s_i before W is applied and by r_i afterwards (Wen et al.
2020, eq. 5).
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, is_finite, shown, unknown

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


def initial_factors(shape: tuple[int, int], init: Init, std: float, generator: torch.Generator | None) -> Tensor:
    """r or s before training: N(1, std²), or random signs with init="signs"."""
    if not is_finite(std) or std < 0:
        raise InputError(f"init_std is {shown(repr(std))}; it must be a finite number of 0 or more")
    if not isinstance(generator, torch.Generator | None):
        raise InputError(
            f"generator is {shown(repr(generator))}; it must be a torch.Generator, such as "
            "torch.Generator().manual_seed(0), or None"
        )
    device = "cpu" if generator is None else generator.device  # whatever torch.set_default_device says
    if init == "normal":
        return torch.randn(shape, generator=generator, device=device) * float(std) + 1
    if init == "signs":
        return torch.randint(0, 2, shape, generator=generator, device=device) * 2.0 - 1
    raise unknown("init", init, ("normal", "signs"))


class MemberLayer(nn.Module):
    """The base of every converted layer: `r` (M, out), `s` (M, in) and, if the layer has one, a bias (M, out)."""

    plain: type[nn.Module]
    """The class that the layer had before."""
    num_members: int
    r: nn.Parameter
    s: nn.Parameter
    weight: Tensor
    batch_axis: int = 0
    """Where the rows are in inputs of three or more axes. An input (rows, features) always has its rows first."""

    def forward(self, input: Tensor, *arguments: Any, **by_name: Any) -> Tensor:
        self._check_input(input)
        scaled = (input * self._of_rows(self.s, input)).to(input.dtype)
        output = self.apply_weight(scaled, *arguments, **by_name)
        # In mixed precision the factors are fp32, so the product and the bias are added in fp32 and rounded once.
        result = output * self._of_rows(self.r, output)
        if (bias := self.bias_of_members()) is not None:
            result = result + self._of_rows(bias, output)
        return result.to(output.dtype)

    def apply_weight(self, scaled: Tensor, *arguments: Any, **by_name: Any) -> Tensor:
        """The layer as it was, without its bias."""
        raise NotImplementedError

    def bias_of_members(self) -> Tensor | None:
        """(M, out), or None."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, num_members={self.num_members}"

    @property
    def _channel_axis(self) -> int:
        return -1 if isinstance(self, nn.Linear) else 1

    def _check_input(self, input: Tensor) -> None:
        """Refuse inputs that the product with s would silently broadcast."""
        linear = self._channel_axis == -1
        axes = "two axes or more, (rows, …, features)" if linear else f"{self.weight.dim()} axes, (rows, channels, …)"
        if input.dim() < 2 or (not linear and input.dim() != self.weight.dim()):
            raise InputError(
                f"a {self.plain.__name__} with members got an input of shape {tuple(input.shape)}; it needs {axes}"
            )
        if not (input.is_floating_point() or input.is_complex()):
            raise InputError(
                f"a {self.plain.__name__} got an input of {input.dtype}; it takes real numbers. Normalise pixels as in "
                "training: the views of make_views are images / 127.5 - 1"
            )
        channels, expected = input.shape[self._channel_axis], self.s.shape[1]
        if channels != expected:
            what = "features" if linear else "channels"
            raise InputError(
                f"a {self.plain.__name__} got {channels} {what} (shape {tuple(input.shape)}); it takes {expected}"
            )

    def _of_rows(self, values_MC: Tensor, like: Tensor) -> Tensor:
        """Each row's vector, shaped so that it multiplies `like`."""
        batch_axis = self.batch_axis if like.dim() > 2 else 0
        shape = [1] * like.dim()
        shape[batch_axis], shape[self._channel_axis] = like.shape[batch_axis], values_MC.shape[1]
        return expand_to_rows(values_MC, like.shape[batch_axis]).view(shape)
