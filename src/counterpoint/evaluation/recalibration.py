"""Recalibrate an evaluated run from its saved logits, and compute what that does to the run's figures.

Only validation images are fitted on: the clean ones, and those under corruptions that are in no test set. A run on the
split has its own, which may also be the images that its figures are of. A run on all images takes what was fitted for
its twin, which is the same experiment on the split.
"""

from dataclasses import replace
from pathlib import Path
from typing import get_args

from counterpoint.errors import InputError, one_of
from counterpoint.evaluation.held_out import FITTED_IMAGES, read_held_out, validation_run
from counterpoint.evaluation.logits import read_about, read_clean
from counterpoint.evaluation.results import read_current_results
from counterpoint.evaluation.scaled_figures import Fitted, fit_family, scaled_figures, unscaled_nll
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.recalibration.apply import Labelled
from counterpoint.recalibration.choose import HeldOut, choose, families_of
from counterpoint.records.files import RECALIBRATED, write_record
from counterpoint.records.recalibrated import Care, FittedOn, Recalibrated
from counterpoint.runs.folder import Run, load_run
from counterpoint.runs.imported import AnyRun, ImportedRun, load_any_run
from counterpoint.storage.folders import quoted
from counterpoint.storage.provenance import command_line, now
from counterpoint.watching import SILENT, Watcher


def recalibrate_run(
    run: AnyRun | Path | str,
    twin: Run | Path | str | None = None,
    *,
    care: Care = "both",
    choosing: bool = False,
    watcher: Watcher = SILENT,
) -> Recalibrated:
    """Fit every recalibration on validation images, compute the run's figures with each, and write recalibrated.json.

    `run` is a run, or its folder. `twin` is the same experiment trained on the split, for a run that has no validation
    images. With `choosing`, one of the recalibrations is chosen on held-out images. `care` says how much clean and
    shifted images count in that.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.evaluation.recalibration import recalibrate_run
    >>> labels = np.arange(200) % 2
    >>> logits = 4 * np.eye(2)[np.where(np.arange(200) % 5, labels, 1 - labels)]  # 98 % sure, 80 % right
    >>> validation = {"validation_logits": logits[::-1], "validation_labels": labels[::-1]}
    >>> _ = evaluate_logits({"logits": logits, "labels": labels, **validation}, "runs/theirs")
    >>> found = recalibrate_run("runs/theirs")
    >>> {name: round(way.clean.ensemble.ece_width15, 3) for name, way in found.ways.items()}
    {'before': 0.0}
    """
    one_of("care", care, get_args(Care))
    run = load_any_run(run)
    source = validation_run(run, None if twin is None else load_run(twin))
    about, plain = read_current_results(run)
    source_about = read_about(source)
    shift = source_about.suites.get(VALIDATION_EXTRA.name)
    if choosing and shift is None:
        raise InputError(
            f"{source.folder} has no logits of validation images under shift to choose on; {_then(source)}"
        )
    held_out = read_held_out(source, shift)
    own = source is run and about.held_out is about.clean
    clean = held_out.clean if own else read_clean(run)
    ways, refused = _fit_all(held_out, care, clean, own=own)
    for name, reason in refused.items():
        watcher.noted(f"{name} is left out: {reason}")
    choice = choose([way.family for way in ways.values()], held_out, care) if choosing else None
    if choice:
        choice = replace(choice, refused=refused | dict(choice.refused))
    applied = "parameters of all validation images" if source is run else f"parameters of the twin run {_name(source)}"
    fitted_images = source_about.held_out
    assert fitted_images is not None  # read_held_out has refused the run otherwise
    fitted_shift = shift and replace(shift, images=min(shift.images, FITTED_IMAGES))
    recalibrated = Recalibrated(
        made_from=about.made_from,
        command=command_line(),
        finished=now(),
        fitted_on=FittedOn(
            fitted_images, fitted_shift, "this run" if source is run else _name(source), source_about.weights
        ),
        care=care,
        clean_how="cross-fitted on two seeded halves of the validation images" if own else applied,
        corrupted_how=applied,
        ways=scaled_figures(run, plain, ways, clean, choice),
        choice=choice,
        shifts=plain.checked_shifts,
        unscaled_validation_nll=unscaled_nll(held_out.clean),
    )
    write_record(run.folder / RECALIBRATED, recalibrated)
    return recalibrated


def _fit_all(held_out: HeldOut, care: Care, clean: Labelled, *, own: bool) -> tuple[dict[str, Fitted], dict[str, str]]:
    """What was fitted, and why the other families were not: these images do not determine them."""
    fitted, refused = {}, {}
    for family in families_of(held_out, care):
        try:
            fitted[family.name] = fit_family(family, held_out, care, clean, own=own)
        except InputError as error:
            refused[family.name] = str(error)
    if not fitted:
        raise InputError(next(iter(refused.values())))
    return fitted, refused


def _then(source: AnyRun) -> str:
    if isinstance(source, ImportedRun):
        return "leave choosing (--choose) out, since such predictions are not read from a file"
    return f"`counterpoint evaluate {quoted(source.folder)} --sets {VALIDATION_EXTRA.name}` makes them"


def _name(run: AnyRun) -> str:
    return run.name if isinstance(run, ImportedRun) else f"{run.experiment.name}, seed {run.seed}"
