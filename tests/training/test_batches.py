"""Where images lie and how many steps are made together changes nothing but speed and memory."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from counterpoint.data import ImageSet, MappedSet, load_images
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.training import batches
from counterpoint.training.batches import epoch_batches, place, steps_at_once
from tests.images.pictures import write_classes
from tests.small import TINY

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(name="mapped")
def images_in_a_file(tmp_path: Path) -> MappedSet:
    folder = write_classes(tmp_path / "photos", {"a": 30, "b": 20})
    return load_images(folder, 8, cache=tmp_path / "cache", workers=1).train


def test_images_in_a_file_stay_there_and_others_go_to_the_device(mapped: MappedSet) -> None:
    assert place(mapped, CPU) is mapped
    assert isinstance(place(mapped.to("cpu"), CPU), ImageSet)


@pytest.mark.parametrize(("free", "moved"), [(4, True), (3, False)])
def test_a_gpu_with_plenty_of_room_gets_the_images(
    mapped: MappedSet, free: int, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(mapped) * 3 * 8 * 8
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free * size, 9 * size))
    on_gpu = mapped.to("cpu")
    monkeypatch.setattr(MappedSet, "to", lambda *_: on_gpu)
    assert place(mapped, GPU) is (on_gpu if moved else mapped)


def test_batches_of_a_file_are_those_of_memory(mapped: MappedSet) -> None:
    in_memory = mapped.to("cpu")
    assert torch.equal(in_memory.numbers_N, mapped.numbers_N)
    for first, at_once in ((0, 1), (0, 3), (2, 4)):
        pairs = zip(
            *(
                epoch_batches(images, TINY, seed=1, epoch=2, first=first, at_once=at_once, num_blocks=3)
                for images in (mapped, in_memory)
            ),
            strict=True,
        )
        count = 0
        for one, other in pairs:
            count += 1
            assert all(torch.equal(a, b) for a, b in zip(one.tensors, other.tensors, strict=True))
        assert count == -(-len(mapped) // TINY.batch_size) - first


@pytest.mark.parametrize(
    ("size", "device", "expected"), [(32, GPU, 64), (32, CPU, 4), (224, GPU, 1), (96, GPU, 9), (1000, CPU, 1)]
)
def test_fewer_steps_are_made_together_where_views_are_large(size: int, device: torch.device, expected: int) -> None:
    experiment = replace(TINY, num_members=4, batch_size=128, policy=MemberPolicy())
    assert steps_at_once(experiment, (3, size, size), device) == expected


def test_three_views_of_an_image_count_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "_VIEW_BYTES", 2 * 8 * 3 * 8 * 8 * 4 * 6)  # of six steps
    plain = replace(TINY, policy=MemberPolicy(augmix=AugMix((1.0, 2.0))))
    consistent = replace(TINY, policy=MemberPolicy(augmix=AugMix((1.0, 2.0), jsd=12.0)))
    assert [steps_at_once(experiment, (3, 8, 8), GPU) for experiment in (plain, consistent)] == [6, 2]
