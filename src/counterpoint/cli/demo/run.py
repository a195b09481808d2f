"""The demo: an ensemble and a single network on handwritten digits, evaluated, compared and reported."""

from pathlib import Path

import typer

from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.cli.terminal.signals import stop_on_signal
from counterpoint.cli.terminal.tables import results_parts
from counterpoint.config import Experiment
from counterpoint.data import data_root, load
from counterpoint.devices import choose_device
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA, corrupted_set
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.records.results import Results
from counterpoint.report import load_runs, verdict, write_report
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from counterpoint.watching import Watcher

_CELL_IMAGES = 150


def run_demo(out: Path, device: str = "auto") -> Path:
    """Train and evaluate both networks, print their figures and the verdict, and return the report's path.

    If `out` holds an unfinished demo, it is continued.
    """
    choose_device(device)  # raises before anything is made if the device is not there
    with TerminalWatcher() as watcher:
        # Raises before training if it cannot be used.
        corrupted_set(load("digits"), data_root(), watcher=watcher, count=_CELL_IMAGES)
        ensemble, single = (_train(experiment, out, device, watcher) for experiment in QUICKSTART)
        of_ensemble, of_single = (_evaluate(run, device, watcher) for run in (ensemble, single))
        compare_run(ensemble.folder, [single.folder])
    for results in (of_ensemble, of_single):
        print_parts(results_parts(results))
    report, folders = out / "report.html", [ensemble.folder, single.folder]
    write_report(folders, report)
    for sentence in verdict(load_runs(folders)):
        console.print(sentence, highlight=False)
    return report


def _evaluate(run: Run, device: str, watcher: Watcher) -> Results:
    """Evaluate the run on test digits, and recalibrate it on its held-out digits."""
    suites = [CORRUPTED, VALIDATION_EXTRA]
    results = evaluate_run(run, suites=suites, device=device, cell_images=_CELL_IMAGES, watcher=watcher)
    try:
        recalibrate_run(run, choosing=True, watcher=watcher)
    except InputError as problem:  # the few held-out images do not determine a temperature
        watcher.noted(f"{run.experiment.name} is not recalibrated: {problem}")
    return results


def _train(experiment: Experiment, out: Path, device: str, watcher: Watcher) -> Run:
    folder = out / experiment.name.replace("/", "-")
    with stop_on_signal() as stop:
        options = Options(device=device)
        train(experiment, folder, load("digits"), options=options, watcher=watcher, should_stop=stop.is_set)
        if stop.is_set():  # also in the last step
            console.print(
                f"stopped with a checkpoint in {folder}; the same command continues from there", soft_wrap=True
            )
            raise typer.Exit(stop.status)
    return load_run(folder)
