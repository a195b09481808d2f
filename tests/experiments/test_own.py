"""The experiment for a user's own images."""

import pytest

from counterpoint.errors import InputError
from counterpoint.experiments import find_experiment
from counterpoint.experiments.own import own_experiment, with_warmup
from counterpoint.own_images import OwnImages


def test_photographs_have_four_members_with_augmix_of_four_severities() -> None:
    experiment = own_experiment("photos", None, ["images.size=224"])
    assert (experiment.name, experiment.dataset, experiment.images) == ("photos", "images", OwnImages(224))
    assert experiment.policy.augmix is not None
    assert experiment.policy.augmix.severity == (1.0, 2.0, 3.0, 4.0)
    assert (experiment.num_members, experiment.decay_rs, experiment.init_std) == (4, False, 0.5)
    assert (experiment.epochs, experiment.batch_size, experiment.learning_rate) == (100, 32, 0.025)
    assert experiment.policy.crop_scale == (0.25, 1.0)


@pytest.mark.parametrize(
    ("assignments", "size"),
    [
        ([], 64),
        (["model=wide-resnet-28-10", "images.grey=true"], 64),
        (["model=timm/resnet50"], 224),
        (["model=mine:make"], 224),
        (["model=timm/resnet50", "images.size=96"], 96),
    ],
    ids=str,
)
def test_our_own_networks_get_small_images(assignments: list[str], size: int) -> None:
    experiment = own_experiment("photos", None, assignments)
    assert experiment.images == OwnImages(size, grey="images.grey=true" in assignments)
    assert experiment.batch_size == (128 if size == 64 else 32)


def test_a_size_that_is_given_is_the_default() -> None:
    """A run of an earlier version has 224 pixels, and all that follows from it."""
    assert own_experiment("photos", None, [], size=224) == own_experiment("photos", None, ["images.size=224"])
    assert own_experiment("photos", None, ["images.size=16"], size=224).images == OwnImages(16)


@pytest.mark.parametrize(
    "assignments",
    [["model=timm/resnet50", "pretrained=true"], ["images.size=224"]],
    ids=["published", "a run's"],
)
def test_fine_tuning_is_shorter_gentler_and_starts_near_the_weights(assignments: list[str]) -> None:
    experiment = own_experiment("photos", None, assignments, fine_tuned="pretrained=true" not in assignments)
    assert (experiment.epochs, experiment.learning_rate, experiment.weight_decay) == (20, 0.0025, 1e-4)
    assert experiment.init_std is None
    assert experiment.policy.crop_scale == (0.5, 1.0)


@pytest.mark.parametrize(
    ("assignments", "rate"),
    [
        (["images.size=224"], 5e-4),
        (["images.size=64"], 1e-3),
        (["model=timm/vit_small_patch16_224", "pretrained=true"], 5e-5),
        (["model=timm/vit_small_patch16_224", "pretrained=true", "learning_rate=1e-5"], 1e-5),
    ],
    ids=str,
)
def test_adamw_has_rates_of_its_own(assignments: list[str], rate: float) -> None:
    experiment = own_experiment("photos", None, ["optimiser=adamw", *assignments])
    assert (experiment.optimiser, experiment.weight_decay) == ("adamw", 0.05)
    assert experiment.learning_rate == pytest.approx(rate)


def test_small_images_have_larger_batches_and_a_padded_crop() -> None:
    experiment = own_experiment("photos", None, ["images.size=64"])
    assert (experiment.batch_size, experiment.learning_rate) == (128, 0.1)
    assert (experiment.policy.crop_padding, experiment.policy.crop_scale) == (8, None)


@pytest.mark.parametrize(
    ("assignments", "padding", "scale"),
    [
        (["policy.crop_padding=1"], 1, None),
        (["policy.crop_scale=none"], 28, None),
        (["policy.crop_scale=0.1,0.9"], 28, (0.1, 0.9)),
        (["policy.crop_padding=1", "policy.crop_scale=0.1,0.9"], 1, (0.1, 0.9)),
    ],
    ids=str,
)
def test_the_crop_that_is_set_is_taken(assignments: list[str], padding: int, scale: tuple[float, float] | None) -> None:
    policy = own_experiment("photos", None, ["images.size=224", *assignments]).policy
    assert (policy.crop_padding, policy.crop_scale) == (padding, scale)


@pytest.mark.parametrize(
    ("members", "severity", "assignment"),
    [("none", (3.0,), "constant"), ("1", (3.0,), "constant"), ("2", (1.0, 4.0), "diverse"), ("7", None, "diverse")],
)
def test_severities_follow_the_number_of_members(
    members: str, severity: tuple[float, ...] | None, assignment: str
) -> None:
    augmix = own_experiment("photos", None, [f"num_members={members}"]).policy.augmix
    assert augmix is not None
    assert augmix.severity == (severity or (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0))
    assert augmix.assignment == assignment


def test_what_is_set_is_taken() -> None:
    experiment = own_experiment(
        "photos", None, ["num_members=2", "policy.augmix.severity=2,3", "policy.crop_padding=1", "batch_size=8"]
    )
    assert experiment.policy.augmix is not None
    assert experiment.policy.augmix.severity == (2.0, 3.0)
    assert (experiment.policy.crop_padding, experiment.batch_size) == (1, 8)
    assert own_experiment("photos", None, ["name=mine", "policy.augmix=none"]).policy.augmix is None
    deep = own_experiment("photos", None, ["ensemble=deep"], fine_tuned=True)
    assert (deep.ensemble, deep.init_std) == ("deep", 0.5)
    with pytest.raises(InputError, match=r"unknown key 'policy\.crop'"):
        own_experiment("photos", None, ["policy.crop=1"])


def test_a_recipe_is_taken_as_it_is() -> None:
    recipe = find_experiment("cifar10/am-bern-0.875")
    experiment = own_experiment("photos", recipe, ["epochs=3"])
    assert (experiment.name, experiment.images, experiment.epochs) == ("photos/am-bern-0.875", OwnImages(32), 3)
    assert (experiment.policy, experiment.warmup_steps) == (recipe.policy, recipe.warmup_steps)


@pytest.mark.parametrize(
    ("assignments", "images", "steps"),
    [([], 330, 11), (["epochs=2"], 330, 4), (["warmup_steps=7"], 330, 7), (["steps=20"], 330, 4), ([], 10, 1)],
)
def test_the_learning_rate_rises_over_the_first_epoch(assignments: list[str], images: int, steps: int) -> None:
    experiment = own_experiment("photos", None, ["images.size=224", *assignments])
    assert with_warmup(experiment, images, assignments).warmup_steps == steps
