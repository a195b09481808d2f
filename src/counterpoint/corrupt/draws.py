"""Random numbers that depend on (seed, corruption, severity, image index) and on nothing else.

Philox is a counter-based generator. Its key says what the numbers are for, and its counter which image they belong to.
So a set can be made in any order, in batches of any size, by any number of processes. Only raw words come from NumPy,
because its distributions may change between versions. The uniform and normal numbers are made here.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from counterpoint.corrupt.pixels import Floats

Words = NDArray[np.uint32]

_WORDS_PER_COUNT = 8  # one step of NumPy's Philox4x64 counter gives 256 bits


@dataclass(frozen=True)
class Draws:
    """The draws for images start … start + count − 1 of one cell. Each `purpose` is a stream of its own."""

    seed: int
    corruption: str
    severity: int
    start: int
    count: int

    def uniform(self, purpose: str, *shape: int, low: float = 0.0, high: float = 1.0) -> Floats:
        """Uniform numbers in the open interval (low, high), as (count, *shape)."""
        return low + (high - low) * unit_uniform(self.words(purpose, *shape))

    def normal(self, purpose: str, *shape: int, mean: float = 0.0, sd: float = 1.0) -> Floats:
        """Normal numbers, as (count, *shape)."""
        standard: Floats = ndtri(self.uniform(purpose, *shape))
        return mean + sd * standard

    def integers(self, purpose: str, *shape: int, low: int = 0, high: int) -> NDArray[np.int64]:
        """Integers in [low, high), as (count, *shape)."""
        return np.floor(self.uniform(purpose, *shape, low=low, high=high)).astype(np.int64)

    def words(self, purpose: str, *shape: int) -> Words:
        """32-bit words, as (count, *shape). Image i has the i-th range of counters, so a batch is one long range."""
        size = math.prod(shape)
        counts = -(-size // _WORDS_PER_COUNT)
        philox = np.random.Philox(key=self._key(purpose), counter=self.start * counts)
        raw = np.asarray(philox.random_raw(self.count * counts * 4)).astype("<u8", copy=False)
        return raw.view("<u4").reshape(self.count, -1)[:, :size].reshape(self.count, *shape)

    def _key(self, purpose: str) -> int:
        text = f"{self.seed}/{self.corruption}/{self.severity}/{purpose}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def unit_uniform(word: Words) -> Floats:
    """The uniform number in the open interval (0, 1) that a word stands for."""
    return (word + 0.5) * 2.0**-32
