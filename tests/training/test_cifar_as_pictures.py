"""CIFAR-10 as a user would have it, PNG files and a table, trains to the bits of CIFAR-10 by its name."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from PIL import Image

from counterpoint.data import DataSet, ImageSet, load, load_images
from counterpoint.own_images import OwnImages
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.training.loop import Options, train
from tests.small import TINY

BY_NAME = replace(TINY, dataset="cifar10", steps=6, batch_size=32)


def a_tenth(data: DataSet) -> DataSet:
    """The first images of each part: all 60,000 would be written and read for half a minute."""
    return replace(data, train=data.train.first(5_000), test=data.test.first(1_000))


def write_pictures(data: DataSet, folder: Path) -> Path:
    """Each image as a PNG, and a table that lists them in their order."""
    folder.mkdir()
    lines = ["path,label,part"]
    for part, images in (("train", data.train), ("test", data.test)):
        lines += [f"{name},{images.classes[label]},{part}" for name, label in written(images, folder, part)]
    table = folder / "cifar.csv"
    table.write_text("\n".join(lines) + "\n")
    return table


def written(images: ImageSet, folder: Path, part: str) -> Iterator[tuple[str, int]]:
    pixels_NHWC = images.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    for number, (pixels_HWC, label) in enumerate(zip(pixels_NHWC, images.labels_N.tolist(), strict=True)):
        name = f"{part}-{number}.png"
        Image.fromarray(pixels_HWC).save(folder / name, compress_level=0)
        yield name, label


def test_it_trains_to_the_same_bits(real_data: Path, tmp_path: Path) -> None:
    by_name = a_tenth(load("cifar10", real_data))
    table = write_pictures(by_name, tmp_path / "pictures")
    pictures = load_images(table, 32, val=0, cache=tmp_path / "cache")
    assert (len(pictures.train), pictures.test and len(pictures.test)) == (5_000, 1_000)
    assert pictures.test is not None
    assert torch.equal(pictures.test.images_NCHW, by_name.test.images_NCHW)
    as_pictures = replace(BY_NAME, dataset="images", images=OwnImages(size=32))
    assert train(BY_NAME, tmp_path / "by name", by_name, options=Options(device="cpu"))
    assert train(as_pictures, tmp_path / "as pictures", pictures, options=Options(device="cpu"))
    first, second = (latest_checkpoint(tmp_path / name) for name in ("by name", "as pictures"))
    assert first is not None
    assert second is not None
    assert first.step == second.step == 6
    assert first.tensors.keys() == second.tensors.keys()
    for name, tensor in first.tensors.items():
        assert torch.equal(tensor, second.tensors[name]), name
