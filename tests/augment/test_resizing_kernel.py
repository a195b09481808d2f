"""The kernel on a GPU or under Triton's interpreter, against PyTorch on a CPU: the same bits."""

import pytest
import torch

pytest.importorskip("triton")

from counterpoint.augment.resized_crop import BITS, resize_boxes, sample_box, taps_of
from counterpoint.augment.resizing_kernel import resize_by_kernel
from counterpoint.seeding import Stream

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
MANY = 300 if ON_GPU else 1  # times as many images as an interpreter has time for


@pytest.mark.parametrize(
    ("count", "size"), [(4, (3, 21, 47)), (6, (1, 16, 32)), (4, (4, 5, 3)), (3, (3, 1, 9))], ids=str
)
def test_same_bits_as_on_a_cpu(count: int, size: tuple[int, int, int]) -> None:
    """16×32 images are whole tiles of pixels, the others are not."""
    generator = torch.Generator().manual_seed(0)
    images_NCHW = torch.randint(0, 256, (count * MANY, *size), dtype=torch.uint8, generator=generator)
    plan = sample_box(torch.arange(count * MANY), Stream(0, "crop"), flip=True, scale=(0.01, 1.0), size=size[1:])
    columns, rows = (tuple(table.to(DEVICE) for table in taps) for taps in taps_of(plan, *size[1:]))
    found = resize_by_kernel(images_NCHW.to(DEVICE), columns, rows, BITS).cpu()
    assert torch.equal(found, resize_boxes(images_NCHW, plan))
