from dataclasses import replace

import pytest
import torch

from counterpoint.config import Experiment
from counterpoint.data import held_out_split
from counterpoint.data.split import count_training_images, held_out_images, split_training_images
from counterpoint.errors import InputError
from tests.small import TINY, noise_data

ON_SPLIT = replace(TINY, train_on="split")


def test_the_split_is_a_partition_that_never_changes() -> None:
    train, validation = held_out_split(50_000, 5_000)
    assert (len(train), len(validation)) == (45_000, 5_000)
    assert sorted(train.tolist() + validation.tolist()) == list(range(50_000))
    assert train.tolist() == sorted(train.tolist())
    assert validation.tolist() == sorted(validation.tolist())
    assert validation[:5].tolist() == [9, 14, 15, 24, 36]


def test_the_split_depends_on_the_seed_alone() -> None:
    first, again, reseeded = (held_out_split(1_000, 100, seed=seed)[1] for seed in (0, 0, 1))
    assert torch.equal(first, held_out_split(1_000, 100)[1])
    assert torch.equal(first, again)
    assert not torch.equal(first, reseeded)


def test_nothing_held_out_leaves_everything_to_train_on() -> None:
    train, validation = held_out_split(10, 0)
    assert train.tolist() == list(range(10))
    assert len(validation) == 0


@pytest.mark.parametrize("held_out", [-1, 10, 11])
def test_an_impossible_split_is_refused(held_out: int) -> None:
    with pytest.raises(InputError, match=f"held_out is {held_out}.*less than the 10"):
        held_out_split(10, held_out)


@pytest.mark.parametrize(("images", "few"), [(50, 16), (1797, 500), (6000, 600)])
def test_a_tenth_is_held_out_on_the_split_and_of_few_images_up_to_a_third(images: int, few: int) -> None:
    data = noise_data(images, 3)
    trained, held_out = split_training_images(data, ON_SPLIT)
    assert (len(trained), len(held_out)) == (images - few, few)


def test_the_two_parts_of_the_split_are_everything() -> None:
    data = noise_data(50, 3)
    trained, held_out = split_training_images(data, ON_SPLIT)
    assert sorted([*trained.numbers_N.tolist(), *held_out.numbers_N.tolist()]) == list(range(50))
    assert torch.equal(held_out.images.images_NCHW, data.train.images_NCHW[held_out.numbers_N])
    everything, nothing = split_training_images(data, TINY)
    assert (len(everything), len(nothing)) == (50, 0)


@pytest.mark.parametrize("experiment", [ON_SPLIT, TINY], ids=["split", "all"])
def test_the_images_held_out_are_those_of_the_split(experiment: Experiment) -> None:
    data = noise_data(50, 3)
    trained, held_out = split_training_images(data, experiment)
    images = held_out_images(data, experiment)
    assert torch.equal(images.images_NCHW, held_out.images.images_NCHW)
    assert torch.equal(images.labels_N, held_out.images.labels_N)
    assert images.classes == data.train.classes
    assert count_training_images(data, experiment) == len(trained) == 50 - len(images)
