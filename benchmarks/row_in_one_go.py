"""Train and evaluate one of the paper's rows on a GPU that is rented by the minute, where nothing may wait.

    COUNTERPOINT_DATA=DATA setsid python benchmarks/row_in_one_go.py cifar100/batch-ensemble --out OUT >log.txt 2>&1 &

It does what `counterpoint reproduce --run` does, but what can be done early is done early:

- Twelve processes compile the fast engine's kernels into Triton's cache, each of them every twelfth kernel.
- One process imports and compiles what the evaluation needs, and makes the corrupted images while the network trains.
  It evaluates the network as soon as the last checkpoint is there.
- The data may come later: the training begins when the folder DATA is there. It must be whole then, with CIFAR, with
  frost/ if the photographs are to be used, and with the other CIFAR if its images are to be outside images. So unpack
  into another folder, and rename that.

OUT/runs has the run, OUT/results the row's result. If the time is over first, or SIGTERM comes, the training ends with
a checkpoint, and the same command goes on from it. `counterpoint reproduce TABLE --out OUT/runs --export-parts PARTS`
packs the run at any time.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from counterpoint.cli.terminal.signals import exit_when_terminated, stop_on_signal
from counterpoint.config import Experiment
from counterpoint.data import DataSet, ImageSet, data_root, load, parts_of
from counterpoint.devices import choose_device, moved
from counterpoint.evaluation.members import fold_members, member_logits
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.suites import corrupted_set
from counterpoint.experiments.schedules import find_schedule
from counterpoint.records.progress import is_trained
from counterpoint.reproduction.campaign import keep_row
from counterpoint.reproduction.rows import Folders, RowRun
from counterpoint.runs.folder import load_run
from counterpoint.training.batches import epoch_batches
from counterpoint.training.engines import Engine, make_forward
from counterpoint.training.loop import Options, train
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState
from counterpoint.watching import TrainingProgress, Watcher

_STARTED = time.monotonic()
_SECONDS_BETWEEN_LINES = 30.0
_MOST_SECONDS_TO_COMPILE = 120.0
_TRAINING_IMAGES = {"split": 45_000, "all": 50_000}


def say(words: str) -> None:
    print(f"{time.monotonic() - _STARTED:7.1f} s  {words}", flush=True)


class Lines(Watcher):
    """A line from time to time."""

    def __init__(self) -> None:
        self._last = -_SECONDS_BETWEEN_LINES

    def trained(self, progress: TrainingProgress) -> None:
        if progress.images_per_second:  # after the first step
            self._say(f"epoch {progress.epoch} of {progress.epochs}, loss {progress.loss:.3f}")

    def counted(self, work: str, done: int, total: int) -> None:
        self._say(f"{work}: {done} of {total}")

    def warned(self, text: str) -> None:
        say(text)

    def _say(self, words: str) -> None:
        if time.monotonic() - self._last > _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            say(words)


def wait_for_data(name: str, root: Path, minutes: float = 10) -> DataSet:
    """The data set, as soon as its folder is there. What is missing in it is an error at once."""
    end = time.monotonic() + 60 * minutes
    while not root.exists() and time.monotonic() < end:
        time.sleep(0.5)
    return load(name, root)


def classes_of(experiment: Experiment) -> int:
    return int(experiment.dataset.removeprefix("cifar"))


def noise(images: int, classes: int) -> ImageSet:
    pixels = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8)
    return ImageSet(pixels, torch.arange(images) % classes, tuple(map(str, range(classes))))


def compile_share(experiment: Experiment, share: int, shares: int) -> None:
    """Take two steps on noise in which Triton compiles and launches only every `shares`-th kernel.

    The others are skipped, so what the steps compute means nothing. Triton keeps what it compiled in its cache.
    """
    from triton.runtime.jit import JITFunction

    launch = JITFunction.run
    seen: set[tuple[Any, ...]] = set()

    def launch_some(self: Any, *arguments: Any, **options: Any) -> Any:
        key = kernel_key(self, arguments, options)
        is_mine = key not in seen and len(seen) % shares == share
        seen.add(key)
        return launch(self, *arguments, **options) if is_mine else None

    JITFunction.run = launch_some
    device, classes, size = torch.device("cuda"), classes_of(experiment), experiment.batch_size
    model = moved(build_model(experiment, classes, 3, seed=0), device).train()
    state = TrainState.before_first_step(model, experiment)
    engine = Engine(state, experiment, make_forward(model, size, "fast", device))
    # The smaller last batch of an epoch has kernels of its own.
    images = noise(size + _TRAINING_IMAGES[experiment.train_on] % size, classes).to(device)
    for batch in epoch_batches(images, experiment, seed=0, epoch=0, at_once=2, num_blocks=model.num_blocks):
        engine.step(batch)
    torch.cuda.synchronize()
    say(f"{len(seen)} kernels, of which every {shares}th from number {share} on is compiled")


def kernel_key(kernel: Any, arguments: Sequence[Any], options: dict[str, Any]) -> tuple[Any, ...]:
    """What Triton compiles a kernel anew for: the types, which numbers are 1 or divisible by 16, and the constants."""

    def kind(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return str(value.dtype), value.data_ptr() % 16 == 0
        return str(value)

    parts: list[Any] = []
    for value, parameter in zip(arguments, kernel.params, strict=False):
        is_number = type(value) is int and not parameter.is_constexpr
        if is_number and getattr(parameter, "do_not_specialize", False):
            parts.append("any number")
        else:
            parts.append((value == 1, value % 16 == 0) if is_number else kind(value))
    constants = sorted((name, kind(value)) for name, value in options.items() if name != "grid")
    return kernel.fn.__name__, *parts, *constants


def evaluate_when_trained(row_run: RowRun, folders: Folders, root: Path, device: torch.device) -> None:
    """Prepare the evaluation, wait for the last checkpoint, evaluate, and keep the row's result."""
    os.nice(10)  # the training comes first
    began_by = os.getppid()
    experiment, folder = row_run.experiment, folders.runs / row_run.place
    model = build_model(experiment, classes_of(experiment), 3, seed=0).to(device).eval()
    member_logits(fold_members(model, device, most_images=5000), noise(2000, 1).images_NCHW)
    say("evaluation: compiled")
    parts, images = parts_of(wait_for_data(experiment.dataset, root), experiment), row_run.schedule.images
    corrupted = corrupted_set(parts, root, watcher=Lines(), count=images)
    say(f"evaluation: the corrupted images are there ({corrupted.source.kind}, frost: {corrupted.source.frost})")
    while not is_trained(folder):
        if os.getppid() != began_by:
            raise SystemExit("the training was ended")
        time.sleep(0.2)
    results = evaluate_run(
        load_run(folder), root, device=str(device), clean_images=images, cell_images=images, watcher=Lines()
    )
    say(f"evaluated; written: {keep_row(folders, row_run, results)}")


def wait_for_compilers(compilers: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Until all have ended, but not for long: what they have not compiled, the training compiles."""
    end = time.monotonic() + _MOST_SECONDS_TO_COMPILE
    for process in compilers:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))
        process.kill()


def run(arguments: argparse.Namespace, row_run: RowRun, folders: Folders, root: Path, device: torch.device) -> int:
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], *options]))
        return started[-1]

    try:
        shares = arguments.compilers if device.type == "cuda" else 0
        compilers = [start("--part", "compile", "--share", str(share)) for share in range(shares)]
        evaluator = start("--part", "evaluate")
        data = wait_for_data(row_run.experiment.dataset, root)
        wait_for_compilers(compilers)
        say("the training begins")
        left = arguments.max_minutes - (time.monotonic() - _STARTED) / 60
        with stop_on_signal() as stop:
            is_finished = train(
                row_run.experiment,
                folders.runs / row_run.place,
                data,
                seed=row_run.seed,
                options=Options(str(device), max_minutes=left),
                watcher=Lines(),
                should_stop=stop.is_set,
            )
        if not is_finished:
            say("the training is not finished; the same command goes on from its checkpoint")
            return 1
        say("trained")
        return evaluator.wait() and start("--part", "evaluate").wait()  # one that failed is tried once more
    finally:
        for process in started:
            process.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description="Train and evaluate one of the paper's rows without waiting.")
    parser.add_argument("row", help="such as cifar100/batch-ensemble (`counterpoint experiments` lists them)")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the run and the result")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedule", default="paper", help="paper, short or smoke")
    parser.add_argument("--max-minutes", type=float, default=28.0, help="the training stops before so many minutes")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compilers", type=int, default=12, help="how many processes compile kernels")
    parser.add_argument("--part", choices=["all", "compile", "evaluate"], default="all", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    row_run = RowRun(arguments.row, find_schedule(arguments.schedule), arguments.seed)
    folders, root = Folders(arguments.out / "runs", arguments.out / "results"), data_root()
    if arguments.part == "compile":
        compile_share(row_run.experiment, arguments.share, arguments.compilers)
    elif arguments.part == "evaluate":
        evaluate_when_trained(row_run, folders, root, choose_device(arguments.device))
    elif (file := folders.results / f"{row_run.place}.json").exists():
        sys.exit(f"{file} is there already; move it away to run the row")
    else:
        with exit_when_terminated():
            return run(arguments, row_run, folders, root, choose_device(arguments.device))
    return 0


if __name__ == "__main__":
    sys.exit(main())
