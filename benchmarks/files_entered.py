"""How many of counterpoint's files one piece of work uses. A newcomer has to open about as many to follow it.

    python benchmarks/files_entered.py

A file counts if one of its functions is called (`sys.setprofile`). Calls during an import do not count. The work is to
train, evaluate and report a small ensemble on the digits, on a CPU.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import counterpoint
from counterpoint.config import Experiment
from counterpoint.data import load, parts_of
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.report import write_report
from counterpoint.runs.folder import load_run
from counterpoint.training.batches import Batch, epoch_batches
from counterpoint.training.engines import make_engine
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState

PACKAGE = Path(counterpoint.__file__).parent
EXPERIMENT = Experiment(
    "digits/traced",
    "digits",
    train_on="all",
    model="resnet",
    width=2,
    num_members=2,
    policy=MemberPolicy(flip=False, augmix=AugMix((1.0, 3.0))),
    steps=2,
)


def files_entered(work: Callable[[], object]) -> set[str]:
    """The files, relative to the package, of which `work` calls a function."""
    found: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {Path(path).relative_to(PACKAGE).as_posix() for path in found if Path(path).is_relative_to(PACKAGE)}


def views_and_step() -> tuple[Callable[[], object], Callable[[], object]]:
    """What makes a step's views, and what takes the step."""
    data = load("digits")
    part = parts_of(data, EXPERIMENT).train
    model = build_model(EXPERIMENT, len(data.train.classes), 1, seed=0).train()
    engine = make_engine(TrainState.before_first_step(model, EXPERIMENT), EXPERIMENT, "eager")
    batches = epoch_batches(part, EXPERIMENT, seed=0, epoch=0, num_blocks=model.num_blocks)
    made: list[Batch] = []
    return lambda: made.append(next(batches)), lambda: update(engine, made[0], total=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="also print the files' names")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        views, step = views_and_step()
        work: dict[str, Callable[[], object]] = {
            "making the views of one step": views,
            "one eager step": step,
            "train()": lambda: train(EXPERIMENT, run, load("digits"), options=Options(device="cpu")),
            "evaluate_run()": lambda: evaluate_run(load_run(run), Path(folder), device="cpu", cell_images=20),
            "write_report()": lambda: write_report([run], Path(folder, "report.html")),
        }
        for name, piece in work.items():
            found = files_entered(piece)
            print(f"{name:36}{len(found):4} files", flush=True)
            if options.names:
                print("   ", *sorted(found))


if __name__ == "__main__":
    main()
