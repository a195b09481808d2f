"""Train and evaluate some of the paper's rows on a GPU that is rented by the minute, where nothing may wait.

    COUNTERPOINT_DATA=DATA setsid python benchmarks/row_in_one_go.py cifar100/batch-ensemble --out OUT >log.txt 2>&1 &

It does what `counterpoint reproduce --run` does, but what can be done early is done early:

- Twelve processes compile the fast engine's kernels into Triton's cache, each of them every twelfth kernel.
- One process imports and compiles what the evaluation needs, and makes the corrupted images while the first network
  trains. It evaluates each network as soon as its last checkpoint is there, while the next one trains. With
  --recalibrate it then does what `evaluate --sets validation-extra` and `recalibrate --choose` do, but for a row that
  is trained on all images: it holds none out, and takes its recalibration from its twin.
- The data may come later: the training begins when the folder DATA is there. It must be whole then, with CIFAR, with
  frost/ if the photographs are to be used, and with the other CIFAR if its images are to be outside images. So unpack
  into another folder, and rename that.

OUT/runs has the runs, OUT/results the results of the rows with their condensed scores, and OUT/results/recalibration
what recalibrates them. If the time is over first, or SIGTERM comes, the training ends with a checkpoint, and the same
command goes on from it. `counterpoint reproduce TABLE --out OUT/runs --export-parts PARTS` packs the runs of rows at
any time.

With --set the rows are run with other settings. Such a run counts for no row, and has a name and a folder of its own.
This compares it with the row:

    python benchmarks/row_in_one_go.py cifar100/batch-ensemble --set decay_linear_rs=true --out OUT
    counterpoint compare OUT/results/cifar100-batch-ensemble__decay_linear_rs=true/paper-0.json \\
        results/cifar100/batch-ensemble/paper-0.json
"""

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from counterpoint.cli.terminal.signals import exit_when_terminated, stop_on_signal
from counterpoint.config import Experiment, override
from counterpoint.data import DataSet, ImageSet, data_root, load, parts_of
from counterpoint.devices import choose_device, moved
from counterpoint.errors import InputError
from counterpoint.evaluation.members import fold_members, member_logits
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA, Suite, corrupted_set
from counterpoint.experiments import config_hash, find_experiment
from counterpoint.experiments.schedules import find_schedule
from counterpoint.launching.plan import run_name
from counterpoint.records.files import write_record
from counterpoint.records.progress import is_trained
from counterpoint.records.results import Results
from counterpoint.reproduction.campaign import keep_row
from counterpoint.reproduction.rows import Folders, RowRun
from counterpoint.runs.folder import load_run
from counterpoint.storage.locks import is_locked
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


def compile_share(experiments: Sequence[Experiment], share: int, shares: int) -> None:
    """Take two steps of each on noise, in which Triton compiles and launches only every `shares`-th kernel.

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
    for experiment in experiments:
        _take_two_steps(experiment, torch.device("cuda"))
    torch.cuda.synchronize()
    say(f"{len(seen)} kernels, of which every {shares}th from number {share} on is compiled")


def _take_two_steps(experiment: Experiment, device: torch.device) -> None:
    classes, size = classes_of(experiment), experiment.batch_size
    model = moved(build_model(experiment, classes, 3, seed=0), device).train()
    state = TrainState.before_first_step(model, experiment)
    engine = Engine(state, experiment, make_forward(model, size, "fast", device))
    # The smaller last batch of an epoch has kernels of its own.
    images = noise(size + _TRAINING_IMAGES[experiment.train_on] % size, classes).to(device)
    for batch in epoch_batches(images, experiment, seed=0, epoch=0, at_once=2, num_blocks=model.num_blocks):
        engine.step(batch)


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


@dataclass(frozen=True)
class ChangedRow(RowRun):
    """A row with other settings. It does not count for the row, so it has a name and a place of its own."""

    settings: tuple[str, ...]

    @property
    def name(self) -> str:
        return run_name(self.row, self.settings)

    @property
    def experiment(self) -> Experiment:
        return override(super().experiment, (f"name={self.name}", *self.settings))

    @property
    def place(self) -> Path:
        return Path(self.name, super().place.name)


def wanted_runs(arguments: argparse.Namespace) -> list[RowRun]:
    """What the command names. Raises if a row is unknown, or if the settings are wrong or change nothing."""
    schedule, settings = find_schedule(arguments.schedule), tuple(arguments.set)
    rows = [RowRun(find_experiment(row).name, schedule, arguments.seed) for row in dict.fromkeys(arguments.rows)]
    if not settings:
        return rows
    changed = [ChangedRow(run.row, run.schedule, run.seed, settings) for run in rows]
    for row, run in zip(rows, changed, strict=True):
        if config_hash(run.experiment) == config_hash(row.experiment):
            raise InputError(f"{' '.join(settings)} changes nothing in {row.row}; leave --set out, and it is the row")
    return [*changed]


@dataclass(frozen=True)
class Place:
    """Where the rows' runs and results go, where the data come from, the device, and whether rows are recalibrated."""

    folders: Folders
    root: Path
    device: torch.device
    recalibrate: bool

    def run(self, row_run: RowRun) -> Path:
        return self.folders.runs / row_run.place

    def result(self, row_run: RowRun) -> Path:
        return self.folders.results / f"{row_run.place}.json"

    def recalibration(self, row_run: RowRun) -> Path:
        return self.folders.results / "recalibration" / f"{'-'.join(row_run.place.parts)}.json"

    def lacks_recalibration(self, row_run: RowRun) -> bool:
        wanted = self.recalibrate and row_run.experiment.train_on == "split"
        return wanted and not self.recalibration(row_run).exists()

    def is_missing(self, row_run: RowRun) -> bool:
        """A row that has its result is not trained again for a recalibration, if its run is elsewhere."""
        if not self.result(row_run).exists():
            return True
        return self.lacks_recalibration(row_run) and is_trained(self.run(row_run))


def evaluate_when_trained(row_runs: Sequence[RowRun], place: Place) -> int:
    """Prepare the evaluations. After the last checkpoint of a row evaluate it, keep its result, and recalibrate it.

    A row that cannot be, or is not trained, does not stop the others. The status is then 1.
    """
    os.nice(10)  # the training comes first
    status = 0
    for row_run in row_runs:
        suites = (CORRUPTED, VALIDATION_EXTRA) if place.lacks_recalibration(row_run) else (CORRUPTED,)
        _prepare_evaluation(row_run, place, suites)
    for row_run in row_runs:
        if not _wait_for_training(place.run(row_run)):
            status = 1
            continue
        try:
            _keep(row_run, place)
        except InputError as error:
            status = 1
            say(f"{row_run.place} failed: {error}")
    return status


def _wait_for_training(folder: Path) -> bool:
    """Whether the run in the folder is trained in the end.

    The process that trains closes the other end of standard input when all trainings have ended. So does a kill.
    """
    have_ended = False
    while not is_trained(folder) or is_locked(folder):  # the training holds the folder for a moment longer
        if have_ended:
            return False
        have_ended = bool(select.select([sys.stdin], [], [], 0.2)[0])
    return True


def _keep(row_run: RowRun, place: Place) -> None:
    if not place.result(row_run).exists():
        results = _evaluated(row_run, place, CORRUPTED)
        say(f"evaluated; written: {keep_row(place.folders, row_run, results)}")
    if place.lacks_recalibration(row_run):
        _evaluated(row_run, place, VALIDATION_EXTRA)
        write_record(place.recalibration(row_run), recalibrate_run(load_run(place.run(row_run)), choosing=True))
        say(f"recalibrated; written: {place.recalibration(row_run)}")


def _prepare_evaluation(row_run: RowRun, place: Place, suites: Sequence[Suite]) -> None:
    experiment, images = row_run.experiment, row_run.schedule.images
    model = build_model(experiment, classes_of(experiment), 3, seed=0).to(place.device).eval()
    member_logits(fold_members(model, place.device, most_images=5000), noise(2000, 1).images_NCHW)
    say("evaluation: compiled")
    parts = parts_of(wait_for_data(experiment.dataset, place.root), experiment)
    for suite in suites:
        of_part = parts.test if suite.part == "test" else parts.validation
        corrupted = corrupted_set(parts, place.root, suite, of_part, watcher=Lines(), count=images)
        say(f"evaluation: {suite.name} is there ({corrupted.source.kind}, frost: {corrupted.source.frost})")


def _evaluated(row_run: RowRun, place: Place, suite: Suite) -> Results:
    images = row_run.schedule.images
    return evaluate_run(
        load_run(place.run(row_run)),
        place.root,
        suites=(suite,),
        device=str(place.device),
        clean_images=images,
        cell_images=images,
        watcher=Lines(),
    )


def wait_for_compilers(compilers: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Until all have ended, but not for long: what they have not compiled, the training compiles."""
    end = time.monotonic() + _MOST_SECONDS_TO_COMPILE
    for process in compilers:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end - time.monotonic()))
        process.kill()


def train_all(row_runs: Sequence[RowRun], place: Place, max_minutes: float) -> bool:
    """Train one row after the other. The result is whether all are finished."""
    data = {name: wait_for_data(name, place.root) for name in {row_run.experiment.dataset for row_run in row_runs}}
    with stop_on_signal() as stop:
        for row_run in row_runs:
            say(f"the training of {row_run.place} begins")
            left = max_minutes - (time.monotonic() - _STARTED) / 60
            is_finished = left > 0 and train(
                row_run.experiment,
                place.run(row_run),
                data[row_run.experiment.dataset],
                seed=row_run.seed,
                options=Options(str(place.device), max_minutes=left),
                watcher=Lines(),
                should_stop=stop.is_set,
            )
            if not is_finished:
                say("the training is not finished; the same command goes on from its checkpoint")
                return False
            say("trained")
    return True


def run(arguments: argparse.Namespace, row_runs: Sequence[RowRun], place: Place) -> int:
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, __file__, *sys.argv[1:], *options]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return started[-1]

    try:
        untrained = [row_run for row_run in row_runs if not is_trained(place.run(row_run))]
        shares = arguments.compilers if untrained and place.device.type == "cuda" else 0
        compilers = [start("--part", "compile", "--share", str(share)) for share in range(shares)]
        evaluator = start("--part", "evaluate")
        wait_for_compilers(compilers)
        is_finished = train_all(untrained, place, arguments.max_minutes)
        evaluator.communicate()  # the rows that are trained
        if not is_finished:
            return 1
        return evaluator.returncode and start("--part", "evaluate").wait()  # one that failed is tried once more
    finally:
        for process in started:
            process.terminate()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train and evaluate some of the paper's rows without waiting.")
    parser.add_argument(
        "rows", nargs="+", help="such as cifar100/batch-ensemble (`counterpoint experiments` lists them)"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for the runs and the results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--schedule", default="paper", help="paper, short or smoke")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of each row to change, as in `counterpoint train --set` (`counterpoint settings` lists them)",
    )
    parser.add_argument("--recalibrate", action="store_true", help="recalibrate each row after its evaluation")
    parser.add_argument("--max-minutes", type=float, default=28.0, help="the trainings stop before so many minutes")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compilers", type=int, default=12, help="how many processes compile kernels")
    parser.add_argument("--part", choices=["all", "compile", "evaluate"], default="all", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    try:
        return run_part(read_arguments())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def run_part(arguments: argparse.Namespace) -> int:
    wanted = wanted_runs(arguments)
    folders = Folders(arguments.out / "runs", arguments.out / "results")
    place = Place(folders, data_root(), choose_device(arguments.device), arguments.recalibrate)
    missing = [row_run for row_run in wanted if place.is_missing(row_run)]
    if arguments.part == "compile":
        compile_share([row_run.experiment for row_run in missing], arguments.share, arguments.compilers)
    elif arguments.part == "evaluate":
        return evaluate_when_trained(missing, place)
    elif missing:
        with exit_when_terminated():
            return run(arguments, missing, place)
    else:
        say(f"nothing is missing in {folders.results}; move a result away to run it again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
