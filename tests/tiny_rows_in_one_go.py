"""benchmarks/row_in_one_go.py with tiny rows on tiny images, in the processes that it starts too. Its smoke schedule
has enough steps to be interrupted.

python -m tests.tiny_rows_in_one_go ARGUMENTS
"""

import sys

import pytest
import row_in_one_go
import torch

from counterpoint.data.sets import DataSet, ImageSet
from tests.made_rows import make_rows_tiny
from tests.small import noise

STEPS = 200


def learnable_data(name: str) -> DataSet:
    """Noise that is brighter in red, green, blue or nowhere: four classes, with a fifth of the labels wrong, so that a
    temperature can be fitted.
    """
    pixels, numbers = noise(60, 32, name=name, below=200), torch.arange(60)
    for channel in range(3):
        pixels[numbers % 4 == channel, channel] += 55
    images = ImageSet(pixels, (numbers + (numbers % 5 == 0)) % 4, ("red", "green", "blue", "grey"))
    return DataSet(name, images, images.select(numbers[:12]))


def make_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tests.made_rows.row_data", learnable_data)
    make_rows_tiny(patch, steps=STEPS)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_in_one_go, "__file__", __file__)  # what it starts
        make_small(patch)
        sys.exit(row_in_one_go.main())
