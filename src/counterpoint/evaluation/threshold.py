"""The confidence from which on a run's predictions can be kept, chosen on its validation images and checked on all
others.

A quarter of the validation images is for everything that is fitted or guessed: the recalibration, its kind, and where
the search for a threshold starts. The other images are used only for the threshold; no temperature was fitted on them.
So the promise is for confidences with the recalibration of the first part, which the record keeps. Images that belong
together are in one part.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.evaluation.held_out import no_validation_part, read_held_out
from counterpoint.evaluation.logits import LogitsAbout, map_cells, read_outside_logits, read_test
from counterpoint.evaluation.results import read_current_results
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.metrics import likely_start, lowest_threshold
from counterpoint.metrics.threshold import Counted, check_target, refuse_too_few, verdict, verdict_over
from counterpoint.recalibration.apply import Labelled, apply, recalibrated_scores
from counterpoint.recalibration.choose import NONE, HeldOut, choose, families_of, fit_held_out
from counterpoint.recalibration.families import Family
from counterpoint.records.files import RECALIBRATED, THRESHOLD, read_current, write_record
from counterpoint.records.images import Shift
from counterpoint.records.recalibrated import Care, Recalibrated, Recalibration
from counterpoint.records.threshold import Checked, CheckedShift, KeptOutside, Promise, Thresholded
from counterpoint.runs.folder import Run
from counterpoint.runs.imported import AnyRun, ImportedRun, load_any_run
from counterpoint.storage.provenance import command_line, now
from counterpoint.watching import SILENT, Watcher, counting

FITTED_SHARE = 4
"""One of so many validation images is for the recalibration and the start. Fewer would miss good starts, and more would
leave too few to prove a small error: results/simulations/threshold.txt has the figures."""

_SIMPLEST = "before"


def threshold_run(run: AnyRun | Path | str, target: float, *, watcher: Watcher = SILENT) -> Thresholded:
    """Find the lowest threshold with an error below `target`, check its promise, and write threshold.json.

    `run` is a run, or its folder. The search begins where one part of the validation images suggests, and is proved on
    the other part. If the run was recalibrated, a recalibration is chosen and fitted here too, on the first part alone.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.evaluation.threshold import threshold_run
    >>> labels = np.arange(400) % 2
    >>> logits = 4 * np.eye(2)[labels]  # always right
    >>> validation = {"validation_logits": logits[::-1], "validation_labels": labels[::-1]}
    >>> _ = evaluate_logits({"logits": logits, "labels": labels, **validation}, "runs/theirs")
    >>> threshold_run("runs/theirs", target=0.05).promise.coverage
    1.0
    """
    check_target(target)
    run = load_any_run(run)
    if isinstance(run, Run) and run.experiment.train_on == "all" and run.experiment.images is None:
        raise _without_validation_images(run)
    about, results = read_current_results(run)
    if about.held_out is None:
        raise _without_validation_images(run)
    recalibrated, stale = read_current(run.folder / RECALIBRATED, Recalibrated, results)
    if stale:
        raise InputError(stale)
    shift = about.suites.get(VALIDATION_EXTRA.name) if recalibrated else None
    first, second = _two_parts(read_held_out(run, shift))
    counted: Counted = "images" if second.groups_N is None else "groups"
    refuse_too_few(second.draws, target, first.clean.draws, counted)
    name, recalibration = _recalibration(first, recalibrated, watcher)
    suggesting, deciding = (recalibrated_scores(recalibration, part) for part in (first.clean, second))
    start = likely_start(suggesting.confidence, suggesting.correct, target, second.draws)
    promise = lowest_threshold(deciding.confidence, deciding.correct, target, start, second.groups_N)
    test, corrupted = read_test(run, about), about.suites.get(CORRUPTED.name)
    checked = partial(_checked_suite, run, recalibration, promise, watcher)
    thresholded = Thresholded(
        made_from=about.made_from,
        command=command_line(),
        finished=now(),
        promise=promise,
        recalibration=recalibration,
        recalibration_name=name,
        fitted_images=len(first.clean),
        test=_checked(test, recalibration, promise) if test is not None else None,
        cells=checked(CORRUPTED.name, corrupted) if corrupted else {},
        shifts={
            suite: CheckedShift(shift, checked(suite, shift)[shift.corruptions[0]])
            for suite, shift in results.checked_shifts.items()
        },
        outside={
            name: _kept_outside(run, about, name, recalibration, promise)
            for name, outside in results.outside.items()
            if about.outside.get(name) == outside.identity
        },
    )
    write_record(run.folder / THRESHOLD, thresholded)
    return thresholded


def _without_validation_images(run: AnyRun) -> InputError:
    if isinstance(run, ImportedRun):
        return no_validation_part(run, "choose a threshold")
    return InputError(
        f"{run.folder} was trained on all images, so none are left to choose a threshold on, and a threshold of "
        "another run does not hold for this one; train with train_on=split, evaluate that run, and use it"
    )


def _two_parts(held_out: HeldOut) -> tuple[HeldOut, Labelled]:
    """What is fitted on, with an image's corrupted versions, and what the threshold is chosen on."""
    clean = held_out.clean
    if clean.draws < FITTED_SHARE:
        of = "images" if clean.groups_N is None else "groups"
        raise InputError(f"there are {clean.draws} validation {of}, and a threshold needs at least {FITTED_SHARE}")
    fitted, others = clean.in_two_parts(clean.draws // FITTED_SHARE)
    return held_out.select(fitted), clean.select(others)


def _recalibration(first: HeldOut, recalibrated: Recalibrated | None, watcher: Watcher) -> tuple[str, Recalibration]:
    """The kind that the first part judges best, and its parameters. None for a run that was not recalibrated."""
    if recalibrated is None:
        return "none", NONE
    care: Care = recalibrated.care if first.shifted else "clean"
    known = {family.name: family for family in families_of(first, care)}
    name = _best(list(known.values()), first, care)
    try:
        return name, fit_held_out(known[name], first, care)
    except InputError as reason:
        watcher.noted(f"the threshold is for confidences without a recalibration: {reason}")
        return "none", NONE


def _best(known: Sequence[Family], first: HeldOut, care: Care) -> str:
    """One temperature for all images where the first part is too small to judge, or to tell a temperature from none."""
    try:
        chosen = choose(known, first, care).chosen
    except InputError:
        return _SIMPLEST
    return _SIMPLEST if chosen == "none" else chosen


def _checked(images: Labelled, recalibration: Recalibration, promise: Promise) -> Checked:
    scores = recalibrated_scores(recalibration, images)
    is_kept = scores.confidence >= promise.chosen.threshold
    is_wrong = is_kept & ~scores.correct
    kept, wrong = int(is_kept.sum()), int(is_wrong.sum())
    if scores.groups is None:
        found = verdict(kept, wrong, promise.target)
    else:
        found = verdict_over(scores.groups, is_kept, is_wrong, promise.target)
    return Checked(len(images), kept, wrong, found)


def _kept_outside(
    run: AnyRun, about: LogitsAbout, name: str, recalibration: Recalibration, promise: Promise
) -> KeptOutside:
    """How many of a set of outside images the threshold keeps."""
    probs_NK = apply(recalibration, read_outside_logits(run, about, name)).ensemble_NK
    kept = int((probs_NK.max(axis=1) >= promise.chosen.threshold).sum())
    return KeptOutside(images=len(probs_NK), key=about.outside[name].key, kept=kept)


def _checked_suite(
    run: AnyRun, recalibration: Recalibration, promise: Promise, watcher: Watcher, suite: str, shift: Shift
) -> dict[str, tuple[Checked, ...]]:
    """Each corruption at each severity."""
    cells = dict[str, tuple[Checked, ...]]()
    checked = map_cells(lambda images: _checked(images, recalibration, promise), run, suite, shift)
    for name, _, one in counting(checked, watcher, "checking the promise under shift", len(shift.named_cells)):
        cells[name] = (*cells.get(name, ()), one)
    return cells
