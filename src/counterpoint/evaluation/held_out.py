"""The validation images that a recalibration is fitted on: the run's own, or those of its twin on the split."""

import numpy as np

from counterpoint import config
from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.image_groups import order_to_corrupt
from counterpoint.evaluation.logits import (
    VALIDATION,
    VALIDATION_LABELS,
    map_cells,
    read_about,
    read_clean,
    read_labelled,
    read_logits,
)
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.recalibration.apply import Labelled
from counterpoint.recalibration.choose import HeldOut
from counterpoint.records.images import Shift
from counterpoint.runs.folder import Run
from counterpoint.runs.imported import AnyRun, ImportedRun
from counterpoint.storage.folders import quoted

FITTED_IMAGES = 1000
"""How many images of each corrupted set are fitted on. A handful of parameters needs no more."""


def validation_run(run: AnyRun, twin: Run | None) -> AnyRun:
    """The run whose validation images the temperatures are fitted on: this one or its twin, which is checked."""
    if read_about(run).held_out is not None:
        if twin is not None:
            raise InputError(f"{run.folder} has validation images of its own; leave the twin (--twin) out")
        return run
    if isinstance(run, ImportedRun):
        raise no_validation_part(run, "fit a temperature")
    if run.experiment.images is not None:
        raise InputError(
            f"{run.folder} was trained on all images but the test images, so none are left to fit a temperature on; "
            "train a run with train_on=split, or put validation images into a folder val"
        )
    if twin is None:
        raise InputError(
            f"{run.folder} was trained on all images, so none are left to fit a temperature on; train its twin with "
            f"`counterpoint train {quoted(run.experiment.name)} --set train_on=split --out TWIN` and the same other "
            "settings, evaluate it, and name it as the twin (--twin TWIN)"
        )
    _check_twin(run, twin)
    return twin


def no_validation_part(run: ImportedRun, to_do: str) -> InputError:
    return InputError(
        f"{run.folder} has no predictions for validation images to {to_do} on; add the arrays validation_logits (or "
        f"validation_probs) and validation_labels to the file, and run `{run.evaluate_command}`"
    )


def _check_twin(run: Run, twin: Run) -> None:
    """Raise unless `twin` is the same experiment, trained on the split, with its validation logits saved."""
    if twin.experiment.train_on != "split":
        raise InputError(f"{twin.folder} was trained on all images too; the twin must have train_on=split")
    # A warm-up of one epoch has more steps on all images than on the split.
    may_differ = ("name", "train_on", "warmup_steps")
    same = {key: getattr(run.experiment, key) for key in may_differ}
    differing = config.differences(config.to_dict(run.experiment), config.to_dict(twin.experiment) | same)
    if differing:
        raise InputError(
            f"{twin.folder} is not the twin of {run.folder} ({'; '.join(differing)}); "
            f"they may differ in {', '.join(may_differ)} only"
        )
    read_logits(twin, "clean")


def read_held_out(run: AnyRun, shift: Shift | None) -> HeldOut:
    """The validation logits that may be fitted on. Test images, and corruptions of a test set, are refused.

    With a `shift`, row i of every set is the same image: a user's own images are then in the order of the shift.
    """
    about = read_about(run)
    if about.held_out is None:
        raise InputError(
            f"{run.folder} has logits of {about.clean.part} images, but a recalibration is fitted on validation images "
            "only"
        )
    own = about.held_out is about.clean
    clean = read_clean(run) if own else read_labelled(run, VALIDATION, VALIDATION_LABELS)
    if shift is None:
        return HeldOut(clean, {})
    if shift.part != "validation" or set(shift.corruptions) & set(CORRUPTIONS):
        raise InputError(
            f"{VALIDATION_EXTRA.name} in {run.folder} has {shift.part} images under {', '.join(shift.corruptions)}; "
            "a recalibration is fitted only on validation images under corruptions that are in no test set"
        )
    if isinstance(run, Run) and run.experiment.images is not None:
        clean = clean.select(order_to_corrupt(len(clean)).numpy())
    shifted: dict[str, list[Labelled]] = {}
    for name, _, images in map_cells(lambda cell: cell, run, VALIDATION_EXTRA.name, shift, FITTED_IMAGES):
        shifted.setdefault(name, []).append(images)
        _check_same_images(run, clean, images)
    return HeldOut(clean, shifted)


def _check_same_images(run: AnyRun, clean: Labelled, corrupted: Labelled) -> None:
    """Raise where the labels show that the corrupted images are others, or in another order."""
    both = min(len(clean), len(corrupted))
    if not np.array_equal(clean.labels_N[:both], corrupted.labels_N[:both]):
        raise InputError(
            f"the clean validation images of {run.folder} and those of {VALIDATION_EXTRA.name} are not the same; "
            f"`{run.evaluate_command} --sets {VALIDATION_EXTRA.name}` evaluates both again"
        )
