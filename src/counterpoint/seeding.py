"""Counter-based random streams: a draw depends only on its purpose, never on when or where it is made.

A number is a pure function of (seed, purpose, epoch, member, image index, draw). So it is the same on CPU and GPU, in
any batch size, in any number of processes, and after any resume.

The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). It is computed in
int64 because torch has no unsigned 64-bit product.
"""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from counterpoint.errors import InputError, shown, whole_number

_MASK = 0xFFFFFFFF
_ROUND_FACTORS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORDS_PER_BLOCK = 4
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
"""The types of tensors of whole numbers. Booleans are a mask, not numbers."""


def philox(counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[int, int]) -> Tensor:
    """Philox4x32-10 of four broadcastable int64 counters holding 32-bit values; the four words are the last axis."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        # The product wraps modulo 2^64, so its high and low halves come out right although int64 is signed.
        product0, product1 = x0 * _ROUND_FACTORS[0], x2 * _ROUND_FACTORS[1]
        x0, x1, x2, x3 = (
            ((product1 >> 32) & _MASK) ^ x1 ^ k0,
            product1 & _MASK,
            ((product0 >> 32) & _MASK) ^ x3 ^ k1,
            product0 & _MASK,
        )
        k0, k1 = (k0 + _KEY_STEPS[0]) & _MASK, (k1 + _KEY_STEPS[1]) & _MASK
    return torch.stack(torch.broadcast_tensors(x0, x1, x2, x3), dim=-1)


@dataclass(frozen=True)
class Stream:
    """The draws for one purpose ("order", "flip", "augmix", …) of one epoch and one member.

    `indices` are the images' numbers in the data set; results live on the device of `indices`. The same stream and
    index give the same numbers everywhere.

    >>> import torch
    >>> from counterpoint.seeding import Stream
    >>> stream = Stream(seed=0, purpose="flip", epoch=3)
    >>> torch.equal(stream.uniform(torch.tensor([7]), 2), stream.uniform(torch.arange(10), 2)[7:8])
    True
    """

    seed: int
    purpose: str
    epoch: int = 0
    member: int = 0

    def __post_init__(self) -> None:
        for name, most in (("seed", None), ("epoch", _MASK), ("member", _MASK)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), most=most))
        if not isinstance(self.purpose, str):
            raise InputError(f"purpose is {shown(repr(self.purpose))}; it must be a text, such as 'augmix'")

    def _digest(self, *more: int) -> bytes:
        text = "/".join(map(str, (self.seed, self.purpose, *more)))
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    def words(self, indices: Tensor, draws: int) -> Tensor:
        """`draws` independent uniform 32-bit words for each index, as int64 (N, draws)."""
        is_whole = isinstance(indices, Tensor) and indices.dtype in WHOLE
        if not is_whole or indices.ndim != 1:
            raise InputError(f"indices are {shown(indices)}; they must be a tensor of whole numbers with one axis")
        digest = self._digest()
        key = (int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))
        indices = indices.to(torch.int64)[:, None]
        block = torch.arange(-(-draws // _WORDS_PER_BLOCK), device=indices.device)[None, :]
        epoch, member = (torch.full_like(block, value) for value in (self.epoch, self.member))
        return philox((block, indices, epoch, member), key).flatten(1)[:, :draws]

    def uniform(self, indices: Tensor, draws: int) -> Tensor:
        """`draws` uniform numbers in the open interval (0, 1) for each index, as float64 (N, draws).

        Each number is exact: no rounding takes place.
        """
        return (self.words(indices, draws).to(torch.float64) + 0.5) * 2.0**-32

    def integers(self, indices: Tensor, draws: int, high: int) -> Tensor:
        """`draws` integers in [0, high) for each index, as int64 (N, draws), where `high` is 2^31 at most.

        The bias is less than high / 2^32.
        """
        high = whole_number("high", high, 1, 1 << 31)  # the product with a word must fit into int64
        return (self.words(indices, draws) * high) >> 32

    def permutation(self, n: int, device: torch.device | str = "cpu") -> Tensor:
        """A random order of 0 … n − 1: the indices sorted by 62-bit keys."""
        words = self.words(torch.arange(n, device=device), 2)
        keys = (words[:, 0] << 30) | (words[:, 1] >> 2)
        return torch.argsort(keys, stable=True)

    def generator(self) -> torch.Generator:
        """A CPU generator for draws that belong to no image, such as the initial weights."""
        seed = int.from_bytes(self._digest(self.epoch, self.member), "little") >> 1
        return torch.Generator().manual_seed(seed)
