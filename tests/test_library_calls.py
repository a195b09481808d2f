"""Calls of the library with what is nearly right: an InputError says what is wrong, or it is taken as it was meant."""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import counterpoint
from counterpoint import (
    Adversarial,
    AugMix,
    BatchEnsembleLinear,
    Ensemble,
    Experiment,
    InputError,
    MemberPolicy,
    StochasticDepth,
    batch_ensemble,
    deep_ensemble,
    make_views,
    perturb,
    resnet,
    resnext29,
    vit,
)
from counterpoint.augment import concatenate, ops
from counterpoint.corrupt import corrupt, find_frost, read_about, read_cell, write_corrupted_set
from counterpoint.data import load, load_images
from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
from counterpoint.export import export_run
from counterpoint.images import Decoding, list_images, open_images
from counterpoint.nn import extract_member
from counterpoint.report import load_runs
from counterpoint.runs.folder import load_run
from counterpoint.runs.imported import load_any_run
from counterpoint.seeding import Stream
from counterpoint.training.loop import Options, train

IMAGES = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
VIEWS, AMOUNT = torch.zeros(2, 4, 3, 8, 8), torch.ones(2, 4)
SETTINGS = Adversarial((0.1, 0.1))
NETWORK = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
STREAM = Stream(0, "test")
PLAIN = MemberPolicy()
EXPERIMENT = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
NUMBERS: Any = np.arange(4)


def views(images: Any = IMAGES, policy: Any = PLAIN, members: Any = 2, **options: Any) -> torch.Tensor:
    return make_views(images, policy, num_members=members, **options)


def moved(views_MBCHW: Any = VIEWS, amount_MB: Any = AMOUNT, loss: Callable[[Any], Any] = torch.sum) -> torch.Tensor:
    return perturb(loss, views_MBCHW, amount_MB, SETTINGS)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a number for severities": (lambda: AugMix(3.0), "severity=3.0: it must be numbers separated by commas"),  # type: ignore[arg-type]
    "a number for drop rates": (lambda: StochasticDepth(0.1), "drop_rate=0.1: it must be numbers separated"),  # type: ignore[arg-type]
    "a number for amounts": (lambda: Adversarial(0.1), "severity=0.1: it must be numbers separated"),  # type: ignore[arg-type]
    "severities for AugMix": (
        lambda: MemberPolicy(augmix=(1.0, 2.0)),  # type: ignore[arg-type]
        r"augmix=\(1.0, 2.0\): it must be .* in Python as AugMix\(",
    ),
    "AugMix switched on": (lambda: MemberPolicy(augmix=True), r"augmix=True: it must be .* in Python as AugMix\("),  # type: ignore[arg-type]
    "no padding at all": (lambda: MemberPolicy(crop_padding=None), "crop_padding=None: it must be a whole number"),  # type: ignore[arg-type]
    "NumPy images": (lambda: views(IMAGES.numpy()), r"images are a ndarray; they must be a tensor \(torch.from_numpy"),
    "images in [0, 1]": (lambda: views(IMAGES.float()), "they must be uint8"),
    "one image": (lambda: views(IMAGES[0]), r"they must be \(B, C, H, W\)"),
    "no policy": (lambda: views(policy={}), "policy is {}; it must be a MemberPolicy"),
    "no members": (lambda: views(members=0), "num_members is 0; it must be a whole number of 1 or more"),
    "half a member": (lambda: views(members=2.5), "num_members is 2.5; it must be a whole number"),
    "fewer indices": (lambda: views(indices_B=torch.arange(3)), r"indices_B are \(3,\); .* each of 4 images"),
    "more indices": (lambda: views(indices_B=torch.arange(5)), r"indices_B are \(5,\); .* each of 4 images"),
    "NumPy indices": (lambda: views(indices_B=np.arange(4)), r"indices_B are \[0 1 2 3\]; they must be a tensor"),
    "fractional indices": (lambda: views(indices_B=torch.rand(4)), "they must be a tensor of whole numbers"),
    "a mask for indices": (
        lambda: views(indices_B=torch.ones(4, dtype=torch.bool)),
        "must be a tensor of whole numbers",
    ),
    "images without pixels": (
        lambda: views(IMAGES[..., :0], MemberPolicy(crop_scale=(0.25, 1.0))),
        r"images have shape \(4, 3, 8, 0\)",
    ),
    "half an epoch": (lambda: views(epoch=0.5), "epoch is 0.5; it must be a whole number"),
    "an epoch in words": (lambda: views(epoch="1"), "epoch is '1'; it must be a whole number"),
    "half a seed": (lambda: views(seed=0.5), "seed is 0.5; it must be a whole number"),
    "half a step": (lambda: views(step=0.5), "step is 0.5; it must be a whole number"),
    "a pair for a normalisation": (
        lambda: views(normalisation=(0.5, 0.5)),
        r"normalisation is \(0.5, 0.5\); it must be",
    ),
    "NumPy images for AugMix": (
        lambda: counterpoint.apply_augmix(IMAGES.numpy(), counterpoint.sample_augmix(torch.arange(4), 1.0, STREAM)),  # type: ignore[arg-type]
        "images are a ndarray; they must be a tensor",
    ),
    "a list of numbers for AugMix": (
        lambda: counterpoint.sample_augmix([0, 1], 1.0, STREAM),  # type: ignore[arg-type]
        r"indices are \[0, 1\]; they must be a tensor",
    ),
    "an endless beta": (
        lambda: counterpoint.mixing_weights("beta", torch.arange(2), STREAM, beta=float("inf")),
        "beta is inf; it must be a finite number",
    ),
    "NumPy numbers for AugMix": (
        lambda: counterpoint.sample_augmix(NUMBERS, 1.0, STREAM),
        "they must be a tensor",
    ),
    "AugMix with channels last": (
        lambda: counterpoint.apply_augmix(
            torch.zeros(2, 8, 8, 3, dtype=torch.uint8), counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM)
        ),
        r"images have shape \(2, 8, 8, 3\), with the channels last; .* images.permute\(0, 3, 1, 2\)",
    ),
    "an operation with channels last": (
        lambda: ops.autocontrast(torch.zeros(2, 8, 8, 1, dtype=torch.uint8)),
        "with the channels last",
    ),
    "AugMix without a plan": (
        lambda: counterpoint.apply_augmix(IMAGES, 3.0),  # type: ignore[arg-type]
        "plan is a float; it must be a plan that sample_augmix has drawn",
    ),
    "a mask for bits": (
        lambda: ops.posterize(IMAGES, torch.ones(4, dtype=torch.bool)),
        "bits must be whole numbers from 1 to 8",
    ),
    "half a chain": (
        lambda: counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM, width=2.5),  # type: ignore[arg-type]
        "width is 2.5; it must be a whole number of 1 or more",
    ),
    "one operation without a list": (
        lambda: counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM, operations="rotate"),
        "operations is 'rotate'; it must name at least one, in a list",
    ),
    "a chance in words": (
        lambda: counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM, p="0.5"),  # type: ignore[arg-type]
        "p is '0.5'; the probability",
    ),
    "a beta that is none": (
        lambda: counterpoint.mixing_weights("beta", torch.arange(2), STREAM, beta=None),  # type: ignore[arg-type]
        "beta is None; it must be a finite number",
    ),
    "a seed for a stream of weights": (
        lambda: counterpoint.mixing_weights("beta", torch.arange(2), 0),  # type: ignore[arg-type]
        r"stream is 0; it must be a value such as Stream\(seed",
    ),
    "a purpose that is a number": (lambda: Stream(0, 5), "purpose is 5; it must be a text"),  # type: ignore[arg-type]
    "truth for a seed": (lambda: Stream(True, "test"), "seed is True; it must be a whole number"),
    "one image of a plan": (
        lambda: counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM)[0],  # type: ignore[index]
        r"a plan cannot be indexed with 0; .* such as plan\[2:3\]",
    ),
    "no plans": (lambda: concatenate([]), "there are no plans to join"),
    "plans of two widths": (
        lambda: concatenate([counterpoint.sample_augmix(torch.arange(2), 1.0, STREAM, width=w) for w in (2, 3)]),
        "the plans have 2 chains of 3 and 3 chains of 3 operations",
    ),
    "AugMix for a flip": (
        lambda: MemberPolicy(AugMix()),  # type: ignore[arg-type]
        r"flip=AugMix\(.*: it must be true or false",
    ),
    "a crop in words": (
        lambda: MemberPolicy(crop_per_view="no"),  # type: ignore[arg-type]
        "crop_per_view=no: it must be true or false",
    ),
    "a clip in words": (
        lambda: Adversarial(clip="no"),  # type: ignore[arg-type]
        "clip=no: it must be true or false",
    ),
    "a rescaling in numbers": (
        lambda: StochasticDepth(rescale=0.5),  # type: ignore[arg-type]
        "rescale=0.5: it must be true or false",
    ),
    "truth for a padding": (lambda: MemberPolicy(crop_padding=True), "crop_padding=True: it must be a whole number"),
    "AugMix severities in words": (
        lambda: counterpoint.sample_augmix(torch.arange(2), "3", STREAM),  # type: ignore[arg-type]
        "severity is '3'; it must be a number",
    ),
    "a seed for a stream": (
        lambda: counterpoint.sample_augmix(torch.arange(2), 3.0, 0),  # type: ignore[arg-type]
        r"stream is 0; it must be a value such as Stream\(seed",
    ),
    "no settings": (
        lambda: perturb(torch.sum, VIEWS, AMOUNT, None),  # type: ignore[arg-type]
        r"settings are None; they must be a value such as Adversarial\(\)",
    ),
    "truth for members": (lambda: views(members=True), "num_members is True; it must be a whole number"),
    "predictions without a name": (
        lambda: counterpoint.evaluate_logits(np.ones((2, 3)), "nowhere"),  # type: ignore[arg-type]
        r'predictions are a ndarray; they must be named arrays, such as {"probs": probs',
    ),
    "probabilities called logits": (
        lambda: counterpoint.evaluate_logits({"logits": np.full((4, 2), 0.5), "labels": [0, 1, 0, 1]}, "nowhere"),
        "'logits' holds probabilities: .*; call it probs, or softmax would be applied",
    ),
    "probabilities called logits of a shift": (
        lambda: counterpoint.evaluate_logits(
            {
                "logits": np.eye(2)[[0, 1]] * 4,
                "labels": [0, 1],
                "shift/fog/1/logits": np.full((2, 2), 0.5, dtype=np.float16),
            },
            "nowhere",
        ),
        "'shift/fog/1/logits' holds probabilities: .*; call it shift/fog/1/probs",
    ),
    "hidden predictions": (
        lambda: counterpoint.evaluate_logits(
            {"probs": np.ma.masked_less(np.full((4, 2), 0.5), 0.6), "labels": [0, 1, 0, 1]}, "nowhere"
        ),
        "'probs' is a masked array",
    ),
    "predictions with a number for a name": (
        lambda: counterpoint.evaluate_logits({1: np.ones((2, 3))}, "nowhere"),  # type: ignore[dict-item]
        "an array is named 1; names are texts",
    ),
    "nothing to compare with": (
        lambda: counterpoint.compare_run("one", []),
        r"others is \[\]; it must be a list, such as",
    ),
    "no experiments to compare with": (
        lambda: counterpoint.compare_experiments("one", []),
        r"others is \[\]; it must be a list, such as",
    ),
    "an error in words": (
        lambda: counterpoint.threshold_run("run", "20%"),  # type: ignore[arg-type]
        "the target is '20%'; an error must be above 0 and below 1",
    ),
    "a care of nobody": (
        lambda: counterpoint.recalibrate_run("run", care="all"),  # type: ignore[arg-type]
        "unknown care 'all'",
    ),
    "an unknown engine": (lambda: Options(engine="quick"), "unknown engine 'quick'"),  # type: ignore[arg-type]
    "minutes in words": (lambda: Options(max_minutes="5"), "max_minutes is 5; it must be a number"),  # type: ignore[arg-type]
    "options in a dict": (
        lambda: train(EXPERIMENT, "nowhere", load("digits"), options={"device": "cpu"}),  # type: ignore[arg-type]
        r"options are {'device': 'cpu'}; they must be a value such as Options\(",
    ),
    "the name of an experiment": (
        lambda: train("cifar10/single", "nowhere", load("digits")),  # type: ignore[arg-type]
        "the experiment is 'cifar10/single'; it must be one, such as find_experiment gives",
    ),
    "the name of a data set": (
        lambda: train(EXPERIMENT, "nowhere", "digits"),  # type: ignore[arg-type]
        "the data are 'digits'; they must be what data.load or load_images gives",
    ),
    "a part of a data set": (
        lambda: train(EXPERIMENT, "nowhere", load("digits").train),  # type: ignore[arg-type]
        "the data are <ImageSet: .*; they must be what data.load",
    ),
    "no folder": (
        lambda: train(EXPERIMENT, None, load("digits")),  # type: ignore[arg-type]
        "the run is None; it must be a run, .* or a folder's path",
    ),
    "NumPy views": (lambda: moved(VIEWS.numpy()), "views is .*; it must be a tensor"),
    "a number for an amount": (lambda: moved(amount_MB=1.0), "amount is 1.0; it must be a tensor"),
    "amounts of fewer images": (
        lambda: moved(amount_MB=AMOUNT[:, :3]),
        r"amount has the shape \(2, 3\), and the views",
    ),
    "views of rows": (lambda: moved(VIEWS[..., 0, 0]), r"views are torch.float32 of shape \(2, 4, 3\); they must be"),
    "views of grey images": (lambda: moved(VIEWS[:, :, 0]), r"of shape \(2, 4, 8, 8\); they must be normalised images"),
    "views of pixels": (lambda: moved(VIEWS.byte()), "views are torch.uint8 of shape"),
    "a loss for each view": (
        lambda: moved(loss=lambda v: v.sum((2, 3, 4))),
        r"the loss is \(2, 4\); it must be a tensor",
    ),
    "a loss without gradients": (lambda: moved(loss=lambda v: v.sum().item()), "the loss is 0.0; it must be a tensor"),
    "a loss of something else": (lambda: moved(loss=lambda _: torch.tensor(1.0)), "loss does not depend on the views"),
    "no network": (lambda: batch_ensemble(3), "the model is 3; it must be a torch.nn.Module"),  # type: ignore[arg-type]
    "an ensemble": (lambda: batch_ensemble(batch_ensemble(NETWORK)), "the model is an ensemble already"),
    "members in words": (lambda: batch_ensemble(NETWORK, "two"), "num_members is 'two'; it must be a whole number"),  # type: ignore[arg-type]
    "members in truth": (lambda: batch_ensemble(NETWORK, True), "num_members is True; it must be a whole number"),
    "an ensemble of none": (lambda: Ensemble(NETWORK, 0), "num_members is 0; it must be a whole number of 1 or more"),
    "a negative spread": (
        lambda: batch_ensemble(NETWORK, 2, -0.1),
        "init_std is -0.1; it must be a finite number of 0",
    ),
    "a spread of NaN": (
        lambda: batch_ensemble(NETWORK, 2, float("nan")),
        "init_std is nan; it must be a finite number",
    ),
    "a spread in words": (lambda: batch_ensemble(NETWORK, 2, "0.5"), "init_std is '0.5'; it must be a finite number"),  # type: ignore[arg-type]
    "the last axis for rows": (
        lambda: batch_ensemble(NETWORK, 2, batch_axis=-1),
        "batch_axis is -1; it must be a whole",
    ),
    "a seed for a generator": (
        lambda: batch_ensemble(NETWORK, 2, generator=0),  # type: ignore[arg-type]
        r"generator is 0; it must be a torch.Generator, such as torch.Generator\(\).manual_seed\(0\)",
    ),
    "an example without images": (
        lambda: batch_ensemble(NETWORK, 2, example_input=VIEWS[0, :0]),
        r"the example input has the shape \(0, 3, 8, 8\); it must have at least one row",
    ),
    "an example without a tensor": (
        lambda: batch_ensemble(NETWORK, 2, example_input=VIEWS[0].numpy()),
        "the example input is a ndarray; it must be a tensor, .*torch.from_numpy",
    ),
    "a model that gives probabilities": (
        lambda: batch_ensemble(nn.Sequential(*NETWORK, nn.Softmax(dim=1)), 2, example_input=VIEWS[0]),
        "Sequential gives probabilities: .* softmax a second time. .* or say logits=torch.log",
    ),
    "the name of the logits": (
        lambda: batch_ensemble(NETWORK, 2, logits="out"),  # type: ignore[arg-type]
        "logits is 'out'; it must be a function",
    ),
    "the name of a deep ensemble's logits": (
        lambda: deep_ensemble(lambda: nn.Linear(2, 3), 2, logits="out"),  # type: ignore[arg-type]
        "logits is 'out'; it must be a function",
    ),
    "the name of a factory": (
        lambda: deep_ensemble("resnet", 2),  # type: ignore[arg-type]
        "factory is a str; it must be a function that makes a new network",
    ),
    "a model with members": (
        lambda: batch_ensemble(nn.Sequential(BatchEnsembleLinear(2, 3, num_members=4)), 2),
        r"'0' \(BatchEnsembleLinear\) has members already",
    ),
    "layers of more members": (
        lambda: Ensemble(nn.Sequential(BatchEnsembleLinear(2, 3, num_members=4))),
        "the network is given 1 members, and its layer '0' has 4; say num_members=4",
    ),
    "a network that is not made": (lambda: Ensemble(nn.Flatten), "the network is .*; it must be a torch.nn.Module"),  # type: ignore[arg-type]
    "a truth for a member": (
        lambda: BatchEnsembleLinear(2, 3, num_members=2).member_weight(True),
        "member is True; it must be a whole number from 0 to 1",
    ),
    "half a member of an ensemble": (
        lambda: extract_member(batch_ensemble(NETWORK, 2), 0.5),  # type: ignore[arg-type]
        "member is 0.5; it must be a whole number from 0 to 1",
    ),
    "a member of a network": (
        lambda: extract_member(NETWORK, 0),  # type: ignore[arg-type]
        "the ensemble is Sequential.*; it must be an Ensemble",
    ),
    "no classes": (lambda: resnext29(0), "num_classes is 0; it must be a whole number of 1 or more"),
    "classes in words": (lambda: resnext29("10"), "num_classes is '10'; it must be a whole number"),  # type: ignore[arg-type]
    "no channels": (lambda: vit(10, in_channels=0), "in_channels is 0; it must be a whole number of 1 or more"),
    "half a width": (lambda: resnet(10, width=2.5), "width is 2.5; it must be a whole number"),  # type: ignore[arg-type]
    "weight decay in truth": (lambda: counterpoint.parameter_groups(NETWORK, True), "weight_decay is True; it must be"),
    "parameters of nothing": (
        lambda: counterpoint.parameter_groups(None, 5e-4),  # type: ignore[arg-type]
        "the model is None; it must be a torch.nn.Module",
    ),
    "a negative weight decay": (
        lambda: counterpoint.parameter_groups(NETWORK, -5e-4),
        "weight_decay is -0.0005; it must be a finite number of 0 or more",
    ),
    "an endless weight decay": (
        lambda: counterpoint.parameter_groups(NETWORK, float("inf")),
        "weight_decay is inf; it must be a finite number of 0 or more",
    ),
    "a layer to leave out": (lambda: batch_ensemble(NETWORK, 2, exclude=[NETWORK[1]]), "is not a layer's name or type"),  # type: ignore[list-item]
    "NumPy for the ensemble": (lambda: batch_ensemble(NETWORK)(VIEWS.numpy()), "needs a tensor"),
    "one probability": (lambda: counterpoint.nll(0.3, 0), r"shape \(\); it must have 2 axes"),
    "no probability": (lambda: counterpoint.nll(np.zeros((0, 3)), []), "at least one value"),
    "no confidence": (lambda: counterpoint.ece([], []), "at least one value"),
    "hidden confidences": (
        lambda: counterpoint.ece(np.ma.masked_greater([0.5, 0.9], 0.8), [True, True]),
        r"confidence is a masked array; .* give confidence.compressed\(\)",
    ),
    "a list of uneven batches for a metric": (
        lambda: counterpoint.ece([torch.ones(4), torch.ones(3)], [torch.ones(4), torch.ones(3)]),
        "confidence cannot be read as an array: .*; join batches with torch.cat or np.concatenate first",
    ),
    "a list of tensors with gradients": (
        lambda: counterpoint.ece([torch.tensor(0.5, requires_grad=True)], [True]),
        "confidence cannot be read as an array: Can't call numpy",
    ),
    "confidences without values": (
        lambda: counterpoint.ece(torch.ones(2, device="meta"), [True, True]),
        "confidence cannot be read as an array: Cannot copy out of meta tensor",
    ),
    "probabilities for a confidence": (
        lambda: counterpoint.ece(np.eye(3), [True] * 3),
        r"confidence has shape \(3, 3\); .* \(max\(axis=1\) gives it of probabilities\)",
    ),
    "members for one model": (
        lambda: counterpoint.nll(np.full((2, 3, 4), 0.25), [0, 1, 2]),
        r"shape \(2, 3, 4\); .* \(mean\(axis=0\) averages members\)",
    ),
    "pixels for images": (
        lambda: counterpoint.brier(np.full((2, 3, 3, 4), 0.25), np.zeros((2, 3, 3), int)),
        r"shape \(2, 3, 3, 4\); .* \(reshape\(-1, K\)",
    ),
    "one model for members": (
        lambda: counterpoint.disagreement(np.full((3, 4), 0.25)),
        r"\(the first axis is the members\)",
    ),
    "one-hot labels": (
        lambda: counterpoint.nll(np.full((2, 4), 0.25), np.eye(4)[:2]),
        r"must be \(2,\) \(argmax\(axis=1\) makes it of one-hot rows\)",
    ),
    "labels in a column": (
        lambda: counterpoint.nll(np.full((2, 4), 0.25), [[0], [1]]),
        r"must be \(2,\) \(ravel\(\) drops an axis of 1\)",
    ),
    "fractional labels": (
        lambda: counterpoint.nll(np.full((2, 4), 0.25), [0.0, 1.0]),
        r"class numbers must be integers \(astype\(int\) makes them\)",
    ),
    "the softmax of one logit": (
        lambda: counterpoint.nll(torch.randn(4, 1).softmax(dim=1), [0] * 4),
        r"shape \(4, 1\), which is one class; the softmax of one logit is always 1",
    ),
    "a picture to corrupt": (
        lambda: corrupt(Image.new("RGB", (8, 8)), "fog", 1),  # type: ignore[arg-type]
        r"images are Image; .*\(np.asarray\(picture.convert\('RGB'\)\)\[None\]",
    ),
    "a tensor to corrupt": (
        lambda: corrupt(IMAGES, "fog", 1),  # type: ignore[arg-type]
        r"images are Tensor; .*images.permute\(0, 2, 3, 1\).numpy\(\)",
    ),
    "numbers from 0 to 1 to corrupt": (
        lambda: corrupt(np.ones((2, 8, 8, 3)), "fog", 1),  # type: ignore[arg-type]
        r"images are float64; .*\(255 \* images\).round\(\).astype\(np.uint8\)",
    ),
    "one image to corrupt": (
        lambda: corrupt(np.zeros((8, 8, 3), np.uint8), "fog", 1),
        r"shape \(8, 8, 3\); .*images\[None\] makes a batch of one",
    ),
    "channels first to corrupt": (
        lambda: corrupt(IMAGES.numpy(), "fog", 1),
        r"shape \(4, 3, 8, 8\); .*images.transpose\(0, 2, 3, 1\) puts the channels last",
    ),
    "a target in words": (
        lambda: counterpoint.metrics.likely_start([0.5], [True], "1%", 100),  # type: ignore[arg-type]
        "the target is '1%'; an error must be above 0 and below 1, such as 0.01",
    ),
    "bins in truth": (lambda: counterpoint.ece([0.5], [True], bins=True), "bins is True; it must be a whole number"),
    "frost that is not there": (
        lambda: corrupt(IMAGES.permute(0, 2, 3, 1).numpy(), "frost", 1, frost_dir="nowhere"),  # type: ignore[arg-type]
        "nowhere does not hold the photographs",
    ),
    "endless bins": (lambda: counterpoint.ece([0.5], [True], bins=10**12), "bins is 1000000000000; it must be"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_told_what_is_wrong(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(InputError, match=message):
        call()


def test_numbers_of_any_width_and_kind_give_the_same_views() -> None:
    """Small integers hold few steps, and NumPy's numbers are no int."""
    policy = MemberPolicy(augmix=AugMix((1.0, 4.0), assignment="shuffled"))
    images = torch.randint(256, (4, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plain = views(images, policy, indices_B=torch.arange(4), seed=1, epoch=2, step=70_000)
    for kind in (torch.uint8, torch.int16, torch.int32):
        assert torch.equal(
            views(images, policy, indices_B=torch.arange(4).to(kind), seed=1, epoch=2, step=70_000), plain
        )
    numpy = {"seed": np.int64(1), "epoch": np.int32(2), "step": np.int64(70_000)}
    assert torch.equal(views(images, policy, indices_B=torch.arange(4), **numpy), plain)


def test_numpys_numbers_make_the_same_policy_as_pythons() -> None:
    of_numpy = MemberPolicy(
        crop_padding=np.int64(2),  # type: ignore[arg-type]
        augmix=AugMix(np.arange(1, 3), p=np.float32(0.5), jsd=np.int8(1)),  # type: ignore[arg-type]
        stochastic_depth=StochasticDepth(tuple(np.linspace(0, 0.5, 2, dtype=np.float32))),
    )
    of_python = MemberPolicy(
        crop_padding=2, augmix=AugMix((1, 2), p=0.5, jsd=1), stochastic_depth=StochasticDepth((0.0, 0.5))
    )
    assert of_numpy == of_python
    assert json.dumps(asdict(of_numpy)) == json.dumps(asdict(of_python))


def test_numpys_numbers_are_taken_elsewhere_too() -> None:
    half, two = np.float32(0.5), np.int64(2)
    for ensemble in (
        batch_ensemble(NETWORK, two, half, batch_axis=np.int64(0)),  # type: ignore[arg-type]
        deep_ensemble(lambda: nn.Linear(2, 3), two),  # type: ignore[arg-type]
        resnet(3, two, width=2),  # type: ignore[arg-type]
    ):
        assert isinstance(ensemble, Ensemble)
        assert type(ensemble.num_members) is int
        assert ensemble.num_members == 2
    assert views(members=two).shape == (2, *IMAGES.shape)
    generator = torch.Generator()
    std_of = [
        BatchEnsembleLinear(2, 3, num_members=two, init_std=std, generator=generator.manual_seed(0)).r  # type: ignore[arg-type]
        for std in (half, 0.5)
    ]
    assert torch.equal(*std_of)
    assert counterpoint.parameter_groups(NETWORK, half)[0]["weight_decay"] == half  # type: ignore[arg-type]
    assert counterpoint.metrics.likely_start([0.9] * 9, [True] * 9, half, 100) is not None  # type: ignore[arg-type]


def test_lists_make_the_same_policy_as_tuples() -> None:
    lists = MemberPolicy(
        augmix=AugMix([1.0, 2.0]),  # type: ignore[arg-type]
        adversarial=Adversarial([0.0, 0.1]),  # type: ignore[arg-type]
        stochastic_depth=StochasticDepth([0.0, 0.1]),  # type: ignore[arg-type]
        crop_scale=[0.25, 1.0],  # type: ignore[arg-type]
    )
    tuples = MemberPolicy(
        augmix=AugMix((1.0, 2.0)),
        adversarial=Adversarial((0.0, 0.1)),
        stochastic_depth=StochasticDepth((0.0, 0.1)),
        crop_scale=(0.25, 1.0),
    )
    assert lists == tuples
    assert hash(lists) == hash(tuples)


def test_an_empty_batch_has_no_views() -> None:
    for policy in (MemberPolicy(), MemberPolicy(augmix=AugMix((1.0, 2.0)))):
        assert views(IMAGES[:0], policy).shape == (2, 0, 3, 8, 8)
    assert moved(VIEWS[:, :0], AMOUNT[:, :0]).shape == (2, 0, 3, 8, 8)
    assert batch_ensemble(NETWORK, 2)(VIEWS[:, :0]).shape == (2, 0, 3)


def test_a_tensor_with_grad_is_read_as_it_is() -> None:
    """A training loop may ask for the figures of its own outputs."""
    probs = torch.full((4, 2), 0.5, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 1])
    assert counterpoint.nll(probs, labels) == pytest.approx(np.log(2))
    assert counterpoint.ece(probs.max(dim=1).values, labels == 0) == pytest.approx(0)
    views_MBCHW = VIEWS.clone().requires_grad_()
    assert moved(views_MBCHW).shape == VIEWS.shape


def test_a_text_is_a_path_wherever_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images_NHWC = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), np.uint8)
    labels_N = np.arange(20) % 2
    np.savez("mine.npz", images=images_NHWC, labels=labels_N)
    assert list_images("mine.npz").source == Path("mine.npz")
    assert open_images("mine.npz", Decoding(8), cache="cache", workers=1).pixels_RCHW.shape == (20, 3, 8, 8)
    assert load_images("mine.npz", 8, cache="cache", workers=1).source == tmp_path / "mine.npz"
    write_corrupted_set(images_NHWC, labels_N, "mine-C", dataset="mine", names=["contrast"])
    assert read_cell("mine-C", "contrast", 5, 20).shape == (20, 8, 8, 3)
    assert read_about("mine-C") is not None
    Path("data/frost").mkdir(parents=True)
    assert find_frost("data") == Path("data/frost")

    experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    assert train(experiment, "run", load("digits", "data"), root="data", options=Options(device="cpu"))
    run = load_run("run")
    assert load_any_run("run") == run
    assert evaluate_run(run, "data", suites=(), clean_images=50, device="cpu").clean.ensemble.error <= 1
    assert load_runs(["run"])[0].results.clean.ensemble.error <= 1
    assert export_run(run, "model.pt2", "data").card == Path("model.pt2.md")


def test_a_run_and_its_folder_are_taken_in_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reads a run gives the same for the run, for its path, and for the path as a text."""
    monkeypatch.chdir(tmp_path)
    on_cpu = Options(device="cpu")
    experiment = EXPERIMENT
    assert train(experiment, "run", load("digits"), options=on_cpu)
    run = load_run("run")
    ways: tuple[Any, ...] = (run, Path("run"), "run")
    labels = np.arange(400) % 2
    probs = np.eye(2)[labels] * 0.8 + 0.1
    for name in ("one", "other"):
        given = {"probs": probs, "labels": labels, "validation_probs": probs[::-1], "validation_labels": labels[::-1]}
        counterpoint.evaluate_logits(given, name)
    theirs = load_any_run("one")
    their_ways: tuple[Any, ...] = (theirs, Path("one"), "one")

    images = torch.zeros(2, 1, 32, 32, dtype=torch.uint8)
    results: dict[str, list[Any]] = {
        "load_run": [load_run(way) for way in ways],
        "load_any_run": [load_any_run(way) for way in ways],
        "evaluate_run": [
            evaluate_run(way, suites=(), clean_images=50, device="cpu").clean.ensemble.error for way in ways
        ],
        "load_ensemble": [
            counterpoint.load_ensemble(way, device="cpu").predict(images / 127.5 - 1).tolist() for way in ways
        ],
        "load_predictor": [
            counterpoint.load_predictor(way, device="cpu").probabilities(images)[0].tolist() for way in ways
        ],
        "export_run": [export_run(way, "model.pt2").size for way in ways],
        "load_runs": [load_runs([way])[0].results for way in ways],
        "write_report": [counterpoint.write_report([way], "figures.csv") for way in ways],
        "recompute_results": [recompute_results(way).clean for way in their_ways],
        "threshold_run": [counterpoint.threshold_run(way, 0.05).promise for way in their_ways],
        "compare_run": [counterpoint.compare_run(way, ["other"]).against[0].clean for way in their_ways],
        "compare_run with": [counterpoint.compare_run("other", [way]).against[0].clean for way in their_ways],
    }
    for name, found in results.items():
        assert all(one == found[0] for one in found), name
    for start in ways:
        assert train(experiment, f"after-{type(start).__name__}", load("digits"), start=start, options=on_cpu)
    started = {load_run(folder).experiment.starts_from for folder in Path().glob("after-*")}
    assert len(started) == 1
    assert None not in started


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"suites": "corrupted"}, "suites is 'corrupted'; it must be a list"),
        ({"suites": ["corupted"]}, "unknown set of images 'corupted'; did you mean 'corrupted'"),
        ({"shifts": ["night"]}, r"shifts is \['night'\]; it must name each path"),
        ({"outside": "night"}, "outside is 'night'; it must name each path"),
        ({"clean_images": -3}, "clean_images is -3; it must be a whole number of 1 or more"),
        ({"clean_images": 0}, "clean_images is 0; it must be a whole number of 1 or more"),
        ({"cell_images": 2.5}, "cell_images is 2.5; it must be a whole number"),
        ({"max_minutes": "5"}, "max_minutes is 5; it must be a number"),
    ],
    ids=str,
)
def test_what_evaluate_run_cannot_do_is_told_before_anything_is_made(
    tmp_path: Path, wrong: dict[str, Any], message: str
) -> None:
    assert train(EXPERIMENT, tmp_path / "run", load("digits"), options=Options(device="cpu"))
    with pytest.raises(InputError, match=message):
        evaluate_run(tmp_path / "run", device="cpu", **{"suites": (), **wrong})
    assert not (tmp_path / "run" / "logits").exists()


def test_a_suite_may_be_named_and_records_are_shown_in_a_line(tmp_path: Path) -> None:
    assert train(EXPERIMENT, tmp_path / "run", load("digits"), options=Options(device=torch.device("cpu")))  # type: ignore[arg-type]
    options: dict[str, Any] = {"device": torch.device("cpu"), "clean_images": 50, "cell_images": 2}
    results = evaluate_run(tmp_path / "run", tmp_path, suites=["validation-extra"], **options)
    assert set(results.shifts) == {"validation-extra"}
    error, ece = results.clean.ensemble.error, results.clean.ensemble.ece_width15
    assert repr(results) == f"<Results of mine: clean error {error:.2%}, ECE {ece:.2%}; validation-extra>"
    assert len(repr(load_run(tmp_path / "run"))) < 1200


@pytest.mark.parametrize("wrong", [None, 3, ["run"]], ids=str)
def test_what_is_neither_a_run_nor_a_path_is_refused(wrong: Any) -> None:
    readers: tuple[Callable[[Any], Any], ...] = (
        load_run,
        load_any_run,
        evaluate_run,
        recompute_results,
        counterpoint.recalibrate_run,
        lambda run: counterpoint.threshold_run(run, 0.1),
        lambda run: counterpoint.compare_run(run, ["other"]),
        lambda run: counterpoint.compare_run("one", [run]),
        lambda run: counterpoint.compare_experiments(run, ["other"]),
        lambda run: export_run(run, "model.pt2"),
        counterpoint.load_ensemble,
        counterpoint.load_predictor,
        lambda run: load_runs([run]),
    )
    for read in readers:
        with pytest.raises(InputError, match="it must be a run, such as load_run gives, or a folder's path"):
            read(wrong)


@pytest.mark.parametrize("wrong", ["run", Path("run"), None, 3], ids=str)
def test_a_single_run_is_no_list_of_runs(wrong: Any) -> None:
    for read in (load_runs, lambda runs: counterpoint.compare_run("one", runs)):
        with pytest.raises(InputError, match="it must be a list, such as"):
            read(wrong)


OF_COMMANDS = {"cli", "launching", "reproduction"}  # rooms that only commands use
ONLY_OF_COMMANDS = {"runs/transfer.py", "serving/web/address.py"}
PACKAGE = Path(counterpoint.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    "module", [one for one in MODULES if one.split("/")[0] not in OF_COMMANDS and one not in ONLY_OF_COMMANDS]
)
def test_a_message_names_options_of_the_command_line_only_beside_what_they_are_in_python(module: str) -> None:
    """An option stands in a whole command, in brackets, or beside what it is called in Python."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        message = ast.unparse(node.exc)
        bare = re.sub(r"`[^`]*`|\([^()]*\)", "", message.partition("(")[2].rpartition(")")[0])
        assert "--" not in bare or "in Python" in message, message
