"""The experiment for a user's own images: an experiment of the paper as its recipe, or one for photographs.

counterpoint train --images photos --out runs/photos --model timm/resnet50 --pretrained
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from counterpoint.config import ADAMW, Experiment, override
from counterpoint.model_names import is_own
from counterpoint.own_images import OwnImages
from counterpoint.policy import AugMix, MemberPolicy

SMALL = 64  # pixels; larger images have smaller batches, and crops that are enlarged
_LARGE = 224  # pixels: what published weights were trained on
# Shares of the area. A picture is kept at the size that the network takes, so a quarter of it is enlarged twofold:
# ImageNet's usual 0.08 would show the network a blur. Trained weights have seen objects at all sizes. In the few epochs
# of fine-tuning it is more important that a crop seldom misses the object of the picture.
_SCALE, _FINE_TUNED_SCALE = (0.25, 1.0), (0.5, 1.0)
_PHOTOGRAPHS = Experiment(
    name="photographs",
    dataset="images",
    images=OwnImages(),
    model="resnet",
    depth=20,
    width=32,
    decay_rs=False,
)


def own_experiment(
    name: str,
    recipe: Experiment | None = None,
    assignments: Sequence[str] = (),
    *,
    fine_tuned: bool = False,
    size: int | None = None,
) -> Experiment:
    """The experiment on images that are called `name`, with each `key=value` applied.

    A recipe is taken as it is, on images of 32 pixels. Without one there are four members with AugMix of severity 1 to
    4. Settings that are not given then depend on the size, on the number of members, and on whether weights are
    `fine_tuned` (those of another run, or published ones). If only crop_padding is given, the padded crop is used.

    `size` is the side of the images if that is not set. By default it is 64 pixels for counterpoint's own networks,
    which are made for small images: their first layers keep the images large, and a step on 224 pixels needs 44 GiB.

    >>> from counterpoint.experiments.own import own_experiment
    >>> experiment = own_experiment("photos", assignments=["optimiser=adamw", "policy.flip=false"])
    >>> experiment.learning_rate, experiment.images.size
    (0.001, 64)
    """
    if recipe is not None:
        title = f"{name}/{recipe.name.rpartition('/')[2]}"
        return override(replace(recipe, name=title, dataset="images", images=OwnImages(size=32)), assignments)
    # A policy that is set may not fit the number of members before that is known.
    known = override(_PHOTOGRAPHS, [one for one in assignments if not one.strip().startswith("policy.")])
    if not _is_set("images.size", assignments):
        assert known.images is not None
        size = size or (SMALL if is_own(known.model) else _LARGE)
        known = replace(known, images=replace(known.images, size=size))
    photographs = _photographs(name, known, fine_tuned or known.pretrained)
    if _is_set("policy.crop_padding", assignments):
        photographs = replace(photographs, policy=replace(photographs.policy, crop_scale=None))
    return override(photographs, assignments)


def _is_set(key: str, assignments: Sequence[str]) -> bool:
    return any(one.partition("=")[0].strip() == key for one in assignments)


def _photographs(name: str, known: Experiment, fine_tuned: bool) -> Experiment:
    assert known.images is not None
    small = known.images.size <= SMALL
    batch_size = 128 if small else 32
    rate, decay = _rate_and_decay(known, batch_size / 128, fine_tuned)
    return replace(
        _PHOTOGRAPHS,
        name=name,
        images=known.images,
        num_members=known.num_members,
        policy=_policy(known, small, fine_tuned),
        epochs=20 if fine_tuned else 100,
        batch_size=batch_size,
        optimiser=known.optimiser,
        learning_rate=rate,
        weight_decay=decay,
        init_std=None if fine_tuned and known.ensemble == "batch" else _PHOTOGRAPHS.init_std,
    )


def _rate_and_decay(known: Experiment, share: float, fine_tuned: bool) -> tuple[float, float]:
    """Usual ones for a batch of 128. For a `share` of it SGD's rate goes down in proportion, AdamW's with the root."""
    if known.optimiser == "adamw":
        return ADAMW["learning_rate"] * math.sqrt(share) * (0.1 if fine_tuned else 1), ADAMW["weight_decay"]
    return (0.01 * share, 1e-4) if fine_tuned else (0.1 * share, 5e-4)


def _policy(known: Experiment, small: bool, fine_tuned: bool) -> MemberPolicy:
    assert known.images is not None
    scale = None if small else _FINE_TUNED_SCALE if fine_tuned else _SCALE
    return MemberPolicy(crop_padding=known.images.size // 8, crop_scale=scale, augmix=_augmix(known.members))


def _augmix(members: int) -> AugMix:
    """Severities from 1 to 4, evenly spaced; a single network has one between."""
    if members == 1:
        return AugMix((3.0,), "constant")
    return AugMix(tuple(1 + 3 * member / (members - 1) for member in range(members)))


def with_warmup(experiment: Experiment, training_images: int, assignments: Sequence[str] = ()) -> Experiment:
    """The learning rate rises over the first epoch, or the first fifth of a shorter training, unless that is set.

    >>> from counterpoint.experiments.own import own_experiment, with_warmup
    >>> with_warmup(own_experiment("photos"), 1000).warmup_steps  # 1000 images in batches of 128
    8
    """
    if _is_set("warmup_steps", assignments):
        return experiment
    per_epoch = math.ceil(training_images / experiment.batch_size)
    total = experiment.steps or experiment.epochs * per_epoch
    return replace(experiment, warmup_steps=min(per_epoch, total // 5))
