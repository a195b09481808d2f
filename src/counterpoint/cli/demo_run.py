"""The demo: an ensemble and a single network on handwritten digits, evaluated, compared and reported."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.cli.progress import TerminalWatcher, console, stop_on_signal
from counterpoint.cli.tables import results_table
from counterpoint.config import Experiment
from counterpoint.data import data_root, load
from counterpoint.devices import choose_device
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import corrupted_set
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.report import write_report
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from counterpoint.watching import Watcher

_CELL_IMAGES = 150


def run_demo(out: Path, device: str = "auto") -> Path:
    """Train and evaluate both networks, print their figures, and return the report's path.

    It goes on with what an earlier demo left in `out`.
    """
    choose_device(device)  # raises before anything is made if the device is not there
    with TerminalWatcher() as watcher:
        corrupted_set(load("digits"), data_root(), watcher)  # raises before training if the set cannot be used
        ensemble, single = (_train(experiment, out, device, watcher) for experiment in QUICKSTART)
        # Temperatures need held-out images. Another single network takes seconds, another ensemble over a minute.
        held_out = replace(single.experiment, name=f"{single.experiment.name}-split", train_on="split")
        twin = _train(held_out, out, device, watcher)
        evaluate_run(twin, device=device, cell_images=_CELL_IMAGES, watcher=watcher)
        of_single = _evaluate_with_temperatures(single, twin, device, watcher)
        of_ensemble = evaluate_run(
            ensemble, device=device, cell_images=_CELL_IMAGES, against=[single.folder], watcher=watcher
        )
    for results in (of_ensemble, of_single):
        console.print(results_table(results), highlight=False)
    images = of_ensemble["corrupted"]["images"]
    console.print(f"-C: 15 corruptions at 5 severities, {images} images of each.", highlight=False)
    report = out / "report.html"
    write_report([ensemble.folder, single.folder], report)
    return report


def _evaluate_with_temperatures(run: Run, twin: Run, device: str, watcher: Watcher) -> dict[str, Any]:
    """The run's results, without temperatures if the twin's few validation images do not determine any."""
    try:
        return evaluate_run(run, device=device, cell_images=_CELL_IMAGES, twin=twin, watcher=watcher)
    except InputError as problem:
        watcher.noted(f"not recalibrated: {problem}")
        return evaluate_run(run, device=device, cell_images=_CELL_IMAGES, watcher=watcher)


def _train(experiment: Experiment, out: Path, device: str, watcher: Watcher) -> Run:
    folder = out / experiment.name.replace("/", "-")
    with stop_on_signal() as stop:
        options = Options(device=device)
        if not train(experiment, folder, load("digits"), options=options, watcher=watcher, should_stop=stop.is_set):
            raise InputError(f"the demo was stopped; `counterpoint demo --out {out}` goes on from there")
    return load_run(folder)
