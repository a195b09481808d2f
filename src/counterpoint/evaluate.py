"""Evaluate a finished run from start to end, with progress: corrupted set, logits, figures."""

import time
from pathlib import Path
from typing import Any

from counterpoint.console import count_bar
from counterpoint.data import data_root, load
from counterpoint.environment import describe_environment
from counterpoint.logits import collect_logits
from counterpoint.results import write_results
from counterpoint.runs import Run
from counterpoint.shifted import shifted_set
from counterpoint.train import choose_device


def evaluate_run(
    run: Run,
    root: Path | None = None,
    *,
    device: str = "auto",
    cell_images: int | None = None,
    recompute: bool = False,
) -> dict[str, Any]:
    """What results.json then holds. With `recompute` neither the network nor the images are needed."""
    started = time.monotonic()
    where = choose_device(device)
    if not recompute:
        root = root or data_root()
        data = load(run.experiment.dataset, root)
        with count_bar("making the corrupted test set") as count:
            shifted = shifted_set(data, root, progress=lambda _, done, total: count(done, total))
        with count_bar(f"evaluating {run.experiment.name}") as count:
            collect_logits(run, data, shifted, device=where, cell_images=cell_images, watcher=count)
    return write_results(run, environment=describe_environment(where), seconds=time.monotonic() - started)
