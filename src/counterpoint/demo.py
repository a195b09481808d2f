"""The demo: an ensemble and a single network on handwritten digits, evaluated and reported."""

from pathlib import Path

from counterpoint.console import stop_on_signal, training_bar
from counterpoint.data import load
from counterpoint.errors import InputError
from counterpoint.evaluate import evaluate_run
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.report import write_report
from counterpoint.runs import load_run
from counterpoint.train import Options, train

_CELL_IMAGES = 150


def run_demo(out: Path, device: str = "auto") -> Path:
    """Train and evaluate both, going on with what an earlier demo left in `out`; the report's path."""
    data = load("digits")
    folders = []
    for experiment in QUICKSTART:
        folder = out / experiment.name.replace("/", "-")
        with stop_on_signal() as stop, training_bar(experiment.name, experiment.epochs) as watcher:
            options = Options(device=device)
            if not train(experiment, folder, data, options=options, watcher=watcher, should_stop=stop.is_set):
                raise InputError(f"the demo was stopped; `counterpoint demo --out {out}` goes on from there")
        evaluate_run(load_run(folder), device=device, cell_images=_CELL_IMAGES)
        folders.append(folder)
    report = out / "report.html"
    write_report(folders, report)
    return report
