"""Random bytes that are looked up from random words, not computed: an inverse distribution function for each level."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterpoint.corrupt.draws import Words, unit_uniform
from counterpoint.corrupt.pixels import Floats, Images

_FINEST = 2.0**-33  # no uniform number is nearer to 0 or 1
_BITS = 11  # of a word: with more of them fewer words are undecided, but the guide does not fit into the cache
_UNDECIDED = np.int16(-1)


@dataclass(frozen=True)
class Quantiles:
    """The inverse distribution functions of the 256 levels, one after the other.

    Level l's function has the steps l + P(byte ≤ k). Searching for l + u in all of them is then inverse transform
    sampling for all levels at once. Most words need no search: their first bits say between which steps they lie.
    """

    steps: Floats
    bytes: Images
    guide: NDArray[np.int16]  # the byte for each level and each beginning of a word, unless a step falls into it

    def look_up(self, level: Images, word: Words) -> Images:
        found = self.guide.take((level.astype(np.uint32) << np.uint32(_BITS)) | (word >> np.uint32(32 - _BITS)))
        undecided = np.nonzero(found == _UNDECIDED)
        sought = level[undecided] + unit_uniform(word[undecided])
        found[undecided] = self.bytes[np.searchsorted(self.steps, sought)]
        return found.astype(np.uint8)


def tabulate(cumulative_LK: Floats, byte_K: Images) -> Quantiles:
    """From P(byte ≤ byte_K[k]) for each level.

    What no 32-bit uniform number reaches is left out, so each function ends at l + 1.
    """
    cumulative_LK = np.where(cumulative_LK >= 1 - _FINEST, 1, cumulative_LK)
    before_LK = np.pad(cumulative_LK, ((0, 0), (1, 0)))[:, :-1]
    reached = (cumulative_LK >= _FINEST) & (before_LK < 1)
    steps = (np.arange(256)[:, None] + cumulative_LK)[reached]
    bytes_ = np.broadcast_to(byte_K, reached.shape)[reached]
    inside = np.bincount((steps * 2**_BITS).astype(np.int64))[: 256 << _BITS]
    passed = np.minimum(inside.cumsum() - inside, len(bytes_) - 1)
    return Quantiles(steps, bytes_, np.where(inside == 0, bytes_[passed], _UNDECIDED))
