"""What several processes do in the tests, and the same for one process to be compared with.

    python -m tests.parallel.several FOLDER PORT PORT

It imports everything and forks three processes. First the processes 0 and 1 work as a world of two, then all three as a
world of three. The first process writes.
"""

import math
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from counterpoint.config import Experiment
from counterpoint.data import DataSet, parts_of
from counterpoint.errors import InputError, StoppedError
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.nn.norm import give_each_member_a_norm
from counterpoint.nn.norm_over_processes import normalise_over_processes
from counterpoint.parallel.group import add_up, agreed, any_of, first_then_others, joined
from counterpoint.parallel.world import ALONE, World
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.runs.folder import load_run
from counterpoint.training.batches import Batch, epoch_batches, steps_per_epoch, total_steps
from counterpoint.training.engines import make_engine
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from counterpoint.training.preparing import Prepared, prepare
from counterpoint.training.step import TrainState
from tests.small import QUICK, TINY, few_digits, noise_data

IMAGES = noise_data(38, 3)
"""Batches of 7 and a last one of 3: neither two nor three processes divide them evenly, and two not even the last."""
_SMALL = replace(TINY, width=2, batch_size=7, steps=20)
CASES: dict[str, tuple[Experiment, torch.dtype]] = {
    "shared": (_SMALL, torch.float64),
    "per-member": (replace(_SMALL, batchnorm="per-member"), torch.float64),
    "consistency": (
        replace(_SMALL, steps=8, policy=MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))),
        torch.float64,
    ),
    "deep": (replace(_SMALL, steps=8, ensemble="deep", policy=MemberPolicy()), torch.float64),
    "float32": (replace(_SMALL, policy=MemberPolicy()), torch.float32),
}
"""All augmentations, where no other policy is named."""
_ONLY_WITH_THREE = ("consistency", "deep")  # each process takes seconds for a case


def cases_of(size: int) -> list[str]:
    return [case for case in CASES if size == 3 or case not in _ONLY_WITH_THREE]


RUN = replace(QUICK, train_on="split", batch_size=7, width=2, epochs=2, warmup_steps=0)


def digits() -> DataSet:
    """60 digits to train on, 30 held out and 10 test images."""
    data = few_digits(10)
    return replace(data, train=data.train.first(90), reported="validation")


def train_steps(case: str, world: World = ALONE) -> dict[str, Tensor]:
    """Steps over several epochs: each step's sums (loss, wrong, views), and the state in the end."""
    experiment, dtype = CASES[case]
    images = parts_of(IMAGES, experiment).train
    model = build_model(experiment, 3, 3, seed=0).to(dtype).train()
    state, sums = TrainState.before_first_step(model, experiment), []
    # Also with blocks that are computed again in the backward pass, where the processes need each other a third time.
    less_memory = case == "consistency" and not world.is_alone
    engine = make_engine(state, experiment, "eager", world, less_memory=less_memory)
    total = total_steps(experiment, len(images))
    for epoch in range(math.ceil(total / steps_per_epoch(experiment, len(images)))):
        options: Any = {"epoch": epoch, "at_once": 4, "num_blocks": model.num_blocks, "dtype": dtype, "world": world}
        for batch in epoch_batches(images, experiment, seed=0, **options):
            state.sums.zero_()
            if state.step < total:
                update(engine, batch, total)
                sums.append(state.sums.clone())
    return {f"state.{name}": tensor.detach() for name, tensor in state.tensors().items()} | {"steps": torch.stack(sums)}


class NormAndReLU(nn.BatchNorm2d):
    """A layer of somebody's that calls torch's and does more."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


class NormByItself(nn.BatchNorm2d):
    """One that never asks torch, so that nothing can be put in its place."""

    def forward(self, input: Tensor) -> Tensor:
        return input - input.mean((0, 2, 3), keepdim=True)


NORMS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], torch.dtype]] = {
    "vectors": (lambda: nn.BatchNorm1d(4), (), torch.float64),
    "signals": (lambda: nn.BatchNorm1d(4, affine=False), (5,), torch.float64),
    "images": (lambda: nn.BatchNorm2d(4, eps=0.1, momentum=0.3), (3, 5), torch.float64),
    "volumes": (lambda: nn.BatchNorm3d(4, momentum=None), (2, 3, 2), torch.float64),
    "without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), (3, 3), torch.float64),
    "subclass": (lambda: NormAndReLU(4), (3, 3), torch.float64),
    "per member": (lambda: _per_member(), (3, 3), torch.float64),
    "far from 0": (lambda: nn.BatchNorm2d(4), (6, 6), torch.float32),
}
ROWS, MEMBERS = 7, 2


def _per_member() -> nn.Module:
    norm = nn.BatchNorm2d(4)
    give_each_member_a_norm(norm, MEMBERS)
    return norm


def normalise(case: str, world: World = ALONE) -> dict[str, Tensor]:
    """Two training passes of a BatchNorm and one in evaluation: outputs, gradients and running statistics.

    Members have the same rows. Of several processes each gives what belongs to its own, and parameters' gradients are
    added up.
    """
    make, shape, dtype = NORMS[case]
    norm = make().to(dtype)
    generator = torch.Generator().manual_seed(0)
    for parameter in norm.parameters():
        nn.init.normal_(parameter, generator=generator)
    if not world.is_alone:
        normalise_over_processes(norm, world)
    members = MEMBERS if case == "per member" else 1
    found: dict[str, Tensor] = {}
    for turn in ("first", "second", "evaluation"):
        drawn_2MB = torch.randn(2, members, ROWS, 4, *shape, generator=generator, dtype=torch.float64).to(dtype)
        x_MB, wanted_MB = drawn_2MB[:, :, world.share(ROWS)]
        x = (x_MB + (1000 if case == "far from 0" else 0)).flatten(0, 1).requires_grad_()
        y = norm.train(turn != "evaluation")(x)
        y.backward(wanted_MB.flatten(0, 1))
        assert x.grad is not None
        found |= {
            f"{turn}.rows.{name}": t.detach().unflatten(0, (members, -1)) for name, t in {"y": y, "x": x.grad}.items()
        }
    gradients = {name: p.grad for name, p in norm.named_parameters() if p.grad is not None}
    add_up(world, list(gradients.values()))
    return (
        found | {f"gradient.{n}": t for n, t in gradients.items()} | {f"buffer.{n}": t for n, t in norm.named_buffers()}
    )


def refusals(world: World) -> dict[str, str]:
    """Where one process or a layer is wrong, what every process says."""
    said = {}

    def hear(name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except InputError as error:
            said[name] = str(error)
        except StoppedError:
            said[name] = "stopped"

    def only_the_last_is_wrong() -> None:
        with agreed(world):
            if world.rank == world.size - 1:
                raise FileNotFoundError(2, "No such file or directory", "there.npy")

    def only_the_last_is_stopped() -> None:
        with agreed(world):
            if world.rank == world.size - 1:
                raise StoppedError

    def a_norm_by_itself() -> None:
        norm = NormByItself(2)
        normalise_over_processes(norm, world)
        norm(torch.zeros(2, 2, 1, 1))

    hear("agreed", only_the_last_is_wrong)
    hear("stopped", only_the_last_is_stopped)
    hear("by itself", a_norm_by_itself)
    hear("instance", lambda: normalise_over_processes(nn.InstanceNorm2d(2, track_running_stats=True), world))
    return said


def agree(world: World, folder: Path) -> dict[str, Any]:
    """Flags of one process are heard by all, and the first makes what the others find."""

    def make() -> str:
        path = folder / f"made-by-the-first-{world.size}"
        with suppress(FileExistsError):
            path.touch(exist_ok=False)
        return path.name if world.is_first else f"found {path.exists()}"

    return {
        "flags": [any_of(world, world.rank == 1), any_of(world, False)],
        "in turn": first_then_others(world, make),
    }


def run_training(folder: Path, world: World = ALONE, *, stop_after: int | None = None) -> bool:
    """Train, or go on; the last process asks for a stop after some steps."""
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return world.rank == world.size - 1 and asked == stop_after

    with in_float64():
        return train(RUN, folder, digits(), options=Options(device="cpu"), should_stop=should_stop, world=world)


@contextmanager
def in_float64() -> Iterator[None]:
    """Inside, `train` computes in float64, where the order of a sum hardly matters."""

    def prepare_double(*arguments: Any) -> Prepared:
        prepared = prepare(*arguments)
        return replace(prepared, model=prepared.model.double())

    loop = "counterpoint.training.loop"
    with patch(f"{loop}.prepare", prepare_double), patch(f"{loop}.epoch_batches", _batches_in_float64):
        yield


def _batches_in_float64(*arguments: Any, **options: Any) -> Iterator[Batch]:
    return epoch_batches(*arguments, dtype=torch.float64, **options)


def evaluate(folder: Path, root: Path, world: World = ALONE) -> None:
    """On clean images and on held-out images under four corruptions, which are made first, without more processes."""
    images, workers = "counterpoint.training.run_images.load", "counterpoint.corrupt.writer.count_workers"
    with patch(images, lambda *_: digits()), patch(workers, lambda _: 1):
        evaluate_run(load_run(folder), root, suites=[VALIDATION_EXTRA], device="cpu", world=world)


def work_together(folder: Path, world: World) -> None:
    """Everything above in a world, with what this process found in a file."""
    found: dict[str, Any] = {f"steps.{case}": train_steps(case, world) for case in cases_of(world.size)}
    found |= {f"norm.{case}": normalise(case, world) for case in NORMS}
    found |= {"refusals": refusals(world), "agreed": agree(world, folder)}
    torch.save(found, folder / f"found-{world.size}-{world.rank}.pt")
    if world.size == 2:
        assert not run_training(folder / "begun", world, stop_after=3)
        with agreed(world):
            if world.is_first:
                shutil.copytree(folder / "begun", folder / "with-1")
                shutil.copytree(folder / "begun", folder / "with-3")
    else:
        assert run_training(folder / "with-3", world)
        with agreed(world):
            if world.is_first:
                shutil.copytree(folder / "with-3", folder / "evaluated-by-1")
        evaluate(folder / "with-3", folder / "data", world)


def work_as(rank: int, folder: Path, ports: list[str]) -> None:
    """What the process of this rank does: its part in each world."""
    os.environ |= {"RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
    for size, port in zip((2, 3), ports, strict=True):
        if rank < size:
            os.environ |= {"WORLD_SIZE": str(size), "MASTER_PORT": port}
            world = World(rank, size, rank)
            with joined(world):
                work_together(folder, world)


def forked(work: Callable[[], None]) -> int:
    """The number of a process that does the work, and ends with status 0 if it comes to its end."""
    if child := os.fork():
        return child
    status = 1
    try:
        work()
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_steps("float32")  # torch imports much of itself in the first step
    digits()
    processes = [forked(partial(work_as, rank, Path(sys.argv[1]), sys.argv[2:])) for rank in range(3)]
    ended = [os.waitpid(process, 0)[1] for process in processes]
    sys.exit(any(ended))
