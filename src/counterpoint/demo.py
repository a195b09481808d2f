"""The demo: an ensemble and a single network on handwritten digits, evaluated, compared and reported."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.config import Experiment
from counterpoint.console import console, count_bar, stop_on_signal, training_bar
from counterpoint.data import data_root, load
from counterpoint.errors import InputError
from counterpoint.evaluate import evaluate_run
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.report import write_report
from counterpoint.runs import Run, load_run
from counterpoint.shifted import shifted_set
from counterpoint.terminal import results_table
from counterpoint.train import Options, choose_device, train

_CELL_IMAGES = 150


def run_demo(out: Path, device: str = "auto") -> Path:
    """Train and evaluate both, going on with what an earlier demo left in `out`, and print their figures; the report's
    path."""
    choose_device(device)  # one that is not there is refused before anything is made
    with count_bar("making the corrupted test set") as count:  # first: a set that cannot be used is found out now
        shifted_set(load("digits"), data_root(), progress=lambda _, done, total: count(done, total))
    ensemble, single = (_train(experiment, out, device) for experiment in QUICKSTART)
    # Temperatures need held-out images. A second single network costs seconds, a second ensemble more than a minute.
    twin = _train(replace(single.experiment, name=f"{single.experiment.name}-split", train_on="split"), out, device)
    evaluate_run(twin, device=device, cell_images=_CELL_IMAGES)
    of_single = _evaluate_with_temperatures(single, twin, device)
    of_ensemble = evaluate_run(ensemble, device=device, cell_images=_CELL_IMAGES, against=[single.folder])
    for results in (of_ensemble, of_single):
        console.print(results_table(results), highlight=False)
    images = of_ensemble["corrupted"]["images"]
    console.print(f"-C: 15 corruptions at 5 severities, {images} images of each.", highlight=False)
    report = out / "report.html"
    write_report([ensemble.folder, single.folder], report)
    return report


def _evaluate_with_temperatures(run: Run, twin: Run, device: str) -> dict[str, Any]:
    """Its results; without temperatures where the twin's few validation images do not determine any."""
    try:
        return evaluate_run(run, device=device, cell_images=_CELL_IMAGES, twin=twin)
    except InputError as problem:
        console.print(f"not recalibrated: {problem}", soft_wrap=True, highlight=False)
        return evaluate_run(run, device=device, cell_images=_CELL_IMAGES)


def _train(experiment: Experiment, out: Path, device: str) -> Run:
    folder = out / experiment.name.replace("/", "-")
    with stop_on_signal() as stop, training_bar(experiment.name) as watcher:
        options = Options(device=device)
        if not train(experiment, folder, load("digits"), options=options, watcher=watcher, should_stop=stop.is_set):
            raise InputError(f"the demo was stopped; `counterpoint demo --out {out}` goes on from there")
    return load_run(folder)
