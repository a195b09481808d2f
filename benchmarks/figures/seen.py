"""What the members see: views by epoch, what an AugMix severity allows, and adversarial views."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment import make_views, ops, perturb
from counterpoint.augment.augmix_plan import degrees_of, shear_of, threshold_of
from counterpoint.data import ImageSet
from counterpoint.evaluation.members import load_model
from counterpoint.experiments import EXPERIMENTS
from counterpoint.normalisation import NORMALISATION
from counterpoint.policy import Adversarial, MemberPolicy
from figures.sources import Sources
from figures.svg import Drawing, Picture

_TILE, _STEP = 84, 90
_DOG, _DIGIT = 17833, 32  # numbers of training images: a dog on grass, and a five
_SEVERITIES = (1.0, 2.0, 3.0, 4.0)
_ADVERSARIAL = (0.0, 0.05, 0.1, 0.15)

Operation = Callable[[Tensor, Tensor], Tensor]


def views(sources: Sources) -> Drawing:
    """One picture of CIFAR-10 and one digit, as each member of the paper's diverse ensemble sees them in two epochs."""
    drawing = Drawing(616, 430, "A dog and a digit, as four members with AugMix severity 1 to 4 see them in two epochs")
    for column, words in enumerate(("the image", *(f"member {m + 1}" for m in range(4)))):
        drawing.text(146 + column * _STEP, 28, words, "middle strong" if column else "middle")
        drawing.text(146 + column * _STEP, 44, f"severity {column}" if column else "", "small middle")
    policy = EXPERIMENTS["cifar10/am-bern-0.875"].policy
    rows = [
        (sources.cifar.train, _DOG, policy, "CIFAR-10"),
        (sources.digits.train, _DIGIT, replace(policy, flip=False), "a digit"),
    ]
    for block, (images, number, policy, label) in enumerate(rows):
        top = 54 + block * (2 * _STEP + 8)
        drawing.text(16, top + _TILE + 8, label)
        drawing.tile(_pictures(images.images_NCHW[[number]])[0], 104, top + _STEP / 2, _TILE)
        for epoch in range(2):
            drawing.text(604, top + epoch * _STEP + 46, f"epoch {epoch + 1}", "small end")
            for member, view in enumerate(_views(images, number, policy, epoch)):
                drawing.tile(view, 104 + (member + 1) * _STEP, top + epoch * _STEP, _TILE)
    return drawing


def severities(sources: Sources) -> Drawing:
    """The strongest that three operations get at each AugMix severity."""
    drawing = Drawing(620, 396, "A picture rotated, sheared and solarized as strongly as AugMix severity 1 to 4 allows")
    image_NCHW = sources.cifar.train.images_NCHW[[_DOG]]
    levels = torch.tensor(_SEVERITIES, dtype=torch.float64)
    degrees, shears, thresholds = degrees_of(levels), shear_of(levels), threshold_of(levels)
    rows: list[tuple[str, Operation, Tensor, Sequence[str]]] = [
        ("rotate", ops.rotate, degrees, [f"{d} degrees" for d in degrees.tolist()]),
        ("shear", ops.shear_x, shears, [f"slope {s:.2f}" for s in shears.tolist()]),
        ("solarize", ops.solarize, thresholds, [f"values from {t}" for t in thresholds.tolist()]),
    ]
    drawing.text(66, 28, "the image", "middle")
    drawing.tile(_pictures(image_NCHW)[0], 24, 46, _TILE)
    for column, severity in enumerate(_SEVERITIES):
        drawing.text(238 + column * 112, 28, f"severity {severity:g}", "middle strong")
    for row, (name, operation, amounts, labels) in enumerate(rows):
        top = 46 + row * 114
        drawing.text(180, top + 46, name, "end")
        for column, label in enumerate(labels):
            changed = operation(image_NCHW, amounts[[column]])
            drawing.tile(_pictures(changed)[0], 196 + column * 112, top, _TILE)
            drawing.text(238 + column * 112, top + _TILE + 16, label, "small middle")
    return drawing


def adversarial(sources: Sources) -> Drawing:
    """What eq. 1 adds to a digit at each severity, at its strongest, by the gradient of the demo's ensemble."""
    drawing = Drawing(620, 250, "What the adversarial perturbation adds to a digit for each member, and the result")
    image_BCHW = sources.digits.train.images_NCHW[[_DIGIT]]
    label_B = sources.digits.train.labels_N[[_DIGIT]]
    views_MBCHW = NORMALISATION.apply(image_BCHW / 255).expand(len(_ADVERSARIAL), *image_BCHW.shape)
    model, _ = load_model(sources.ensemble, torch.device("cpu"))
    moved_MBCHW = perturb(
        lambda views: cross_entropy(model(views).flatten(0, 1), label_B.repeat(len(views))),
        views_MBCHW,
        torch.tensor(_ADVERSARIAL)[:, None],
        Adversarial(),
    )
    added_MCHW = ((moved_MBCHW - views_MBCHW) / max(_ADVERSARIAL) / 2 + 0.5)[:, 0]
    seen_MCHW = NORMALISATION.undo(moved_MBCHW).clamp(0, 1)[:, 0]
    for row, (label, pictures) in enumerate((("what is added", added_MCHW), ("what it sees", seen_MCHW))):
        drawing.text(138, 104 + row * _STEP, label, "end")
        for column, picture in enumerate(_pictures((pictures * 255).round().byte())):
            drawing.tile(picture, 158 + column * 112, 58 + row * _STEP, _TILE)
    for column, severity in enumerate(_ADVERSARIAL):
        drawing.text(200 + column * 112, 28, f"member {column + 1}", "middle strong")
        drawing.text(200 + column * 112, 44, f"severity {severity:g}", "small middle")
    return drawing


def _views(images: ImageSet, number: int, policy: MemberPolicy, epoch: int) -> list[Picture]:
    views_MBCHW = make_views(
        images.images_NCHW[[number]],
        policy,
        num_members=len(_SEVERITIES),
        indices_B=torch.tensor([number]),
        epoch=epoch,
    )
    return _pictures((NORMALISATION.undo(views_MBCHW[:, 0]).clamp(0, 1) * 255).round().byte())


def _pictures(images_NCHW: Tensor) -> list[Picture]:
    return list(np.ascontiguousarray(images_NCHW.permute(0, 2, 3, 1).numpy()))
