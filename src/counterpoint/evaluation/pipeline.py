"""Evaluate a finished run from start to end: corrupted images, logits, figures."""

import time
from collections.abc import Sequence
from pathlib import Path

from counterpoint.data import data_root
from counterpoint.devices import Precision, choose_device
from counterpoint.evaluation.corrupted_set import corrupted_set
from counterpoint.evaluation.image_groups import (
    ImageGroup,
    clean_group,
    images_to_corrupt,
    outside_group,
    suite_group,
    validation_group,
)
from counterpoint.evaluation.logits import collect_logits, read_about
from counterpoint.evaluation.members import check_said
from counterpoint.evaluation.ood import load_outside
from counterpoint.evaluation.results import write_results
from counterpoint.evaluation.suites import CORRUPTED, Suite
from counterpoint.records.files import stale_notes
from counterpoint.records.results import Results
from counterpoint.runs.checkpoints import finished_checkpoint
from counterpoint.runs.folder import Run
from counterpoint.runs.imported import AnyRun
from counterpoint.storage.provenance import describe_environment
from counterpoint.training.description import describe_run
from counterpoint.training.run_images import parts_of_run
from counterpoint.watching import SILENT, Watcher


def evaluate_run(
    run: Run,
    root: Path | None = None,
    *,
    source: Path | None = None,
    suites: Sequence[Suite] = (CORRUPTED,),
    device: str = "auto",
    clean_images: int | None = None,
    cell_images: int | None = None,
    precision: Precision = "headline",
    said: str | None = None,
    watcher: Watcher = SILENT,
) -> Results:
    """Evaluate `run` on the clean images and on each of the suites, and write results.json and scores.npz.

    Suites of earlier evaluations stay in the results, as long as the network and its precision are the same. `source`
    is where a user's own images are, if no longer where they were. `said` is the user's word for the model: a function
    of his own is not imported without it.
    """
    started = time.monotonic()
    check_said(run, said)
    root, where = root or data_root(), choose_device(device)
    run, groups = _image_groups(run, root, source, suites, clean_images, cell_images, watcher)
    collect_logits(run, groups, device=where, precision=precision, said=said, watcher=watcher)
    results = write_results(run, environment=describe_environment(where), started=started)
    _note_what_does_not_count(run, results, watcher)
    return results


def recompute_results(run: AnyRun, watcher: Watcher = SILENT) -> Results:
    """Compute the figures again from the saved logits. It needs neither the network nor the images."""
    started = time.monotonic()
    results = write_results(run, environment=describe_environment(choose_device("cpu")), started=started)
    _note_what_does_not_count(run, results, watcher)
    return results


def _image_groups(
    run: Run,
    root: Path,
    source: Path | None,
    suites: Sequence[Suite],
    clean_images: int | None,
    cell_images: int | None,
    watcher: Watcher,
) -> tuple[Run, list[ImageGroup]]:
    """The run with its description, and the images to evaluate it on. Whatever can be refused is refused here."""
    parts = parts_of_run(run, root, source, watcher)
    run = describe_run(run, parts)
    finished_checkpoint(run)
    groups = [clean_group(run, parts, clean_images)]
    sources = [(suite, images_to_corrupt(run, parts, suite)) for suite in suites]
    if (validation := validation_group(parts, clean_images)) is not None:
        groups.append(validation)
    outside = load_outside(run.experiment.dataset, root)
    if outside is not None:
        groups.append(outside_group(outside, clean_images))
    for suite, images in sources:
        groups.append(suite_group(corrupted_set(parts, root, suite, images, watcher), cell_images))
    return run, groups


def _note_what_does_not_count(run: AnyRun, results: Results, watcher: Watcher) -> None:
    for name, missing in read_about(run).missing_files.items():
        sets = f" --sets {name}" if isinstance(run, Run) else ""
        go_on = f"`{run.evaluate_command}{sets}` goes on"
        watcher.noted(f"{name} is left out: {missing} of its files are missing; {go_on}")
    for note in stale_notes(run.folder, results):
        watcher.noted(note)
