"""Evaluate a finished run from start to end: corrupted set, logits, figures, comparisons."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from counterpoint.data import data_root, load
from counterpoint.devices import Precision, choose_device
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import add_comparisons, read_evaluated
from counterpoint.evaluation.corrupted_set import corrupted_set
from counterpoint.evaluation.earlier import dropped_additions, read_earlier
from counterpoint.evaluation.logits import collect_logits
from counterpoint.evaluation.members import finished_checkpoint
from counterpoint.evaluation.ood import load_outside
from counterpoint.evaluation.results import write_results
from counterpoint.evaluation.temperatures import forget_temperatures, keep_temperatures, validation_run
from counterpoint.runs.folder import Run
from counterpoint.storage.provenance import describe_environment
from counterpoint.training.description import describe_run
from counterpoint.watching import SILENT, Watcher


def evaluate_run(
    run: Run,
    root: Path | None = None,
    *,
    device: str = "auto",
    clean_images: int | None = None,
    cell_images: int | None = None,
    recompute: bool = False,
    recalibrate: bool = False,
    twin: Run | None = None,
    against: Sequence[Path] = (),
    precision: Precision = "headline",
    watcher: Watcher = SILENT,
) -> dict[str, Any]:
    """Evaluate `run` and return what its results.json then holds.

    `recompute` takes the saved logits and needs neither the network nor the images. `recalibrate` adds figures with
    temperatures. A run trained on all images takes its temperatures from its `twin`. `against` are folders of runs that
    were evaluated on the same images. A run that is evaluated already, and of which nothing else is asked, is only
    compared with them. Temperatures and comparisons of earlier commands are kept if the logits are still the same.
    """
    started = time.monotonic()
    # Whatever can be refused is refused before the long work.
    if recompute and (clean_images or cell_images or precision != "headline"):
        raise InputError("--recompute takes the saved logits as they are; leave --cell-images and --precision out")
    if any(folder.resolve() == run.folder.resolve() for folder in against):
        raise InputError(f"{run.folder} cannot be compared with itself; give --against another run")
    others = [read_evaluated(folder) for folder in against]
    temperatures_from = validation_run(run, twin) if recalibrate or twin is not None else None
    asked = recompute or temperatures_from or clean_images or cell_images or precision != "headline"
    only_compare = others and not asked
    if only_compare and (run.folder / "results.json").exists():
        return add_comparisons(run.folder, others)
    where = choose_device(device)
    if not recompute:
        _collect(run, root or data_root(), where, clean_images, cell_images, precision, watcher)
    earlier = read_earlier(run.folder)
    if others:  # new comparisons take the place of earlier ones
        earlier.pop("against", None)
    forget_temperatures(run)
    results = write_results(
        run,
        environment=describe_environment(where),
        seconds=time.monotonic() - started,
        temperatures_from=temperatures_from,
        earlier=earlier,
    )
    if dropped := dropped_additions(run.folder, earlier, results):
        watcher.noted(dropped)
    if "recalibrated" in results:
        keep_temperatures(run, results["recalibrated"])
    return add_comparisons(run.folder, others) if others else results


def _collect(
    run: Run,
    root: Path,
    device: torch.device,
    clean_images: int | None,
    cell_images: int | None,
    precision: Precision,
    watcher: Watcher,
) -> None:
    data = load(run.experiment.dataset, root)
    run = describe_run(run, data)
    finished_checkpoint(run)
    outside = load_outside(run.experiment.dataset, root)
    collect_logits(
        run,
        data,
        corrupted_set(data, root, watcher),
        device=device,
        clean_images=clean_images,
        cell_images=cell_images,
        outside=outside,
        precision=precision,
        watcher=watcher,
    )
