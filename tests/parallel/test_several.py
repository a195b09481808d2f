"""One, two and three processes are the same training, and the same evaluation.

Three processes are started once and do everything (`several.py`); each test looks at a part of it.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.parallel.several import CASES, NORMS, cases_of, evaluate, normalise, run_training, train_steps

ROOT = Path(__file__).parents[2]
SIZES = (2, 3)


def free_ports(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What three processes leave behind."""
    made = tmp_path_factory.mktemp("several")
    command = [sys.executable, "-m", "tests.parallel.several", str(made), *free_ports(2)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr[-6000:]
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """What each process of each world found."""
    return {
        size: [torch.load(folder / f"found-{size}-{rank}.pt", weights_only=True) for rank in range(size)]
        for size in SIZES
    }


def assert_same(name: str, ours: Tensor, theirs: Tensor, *, rtol: float, atol: float) -> None:
    torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, msg=lambda difference: f"{name}: {difference}")


@pytest.mark.parametrize("case", CASES)
def test_steps_do_not_depend_on_the_number_of_processes(found: dict[int, list[dict[str, Any]]], case: str) -> None:
    alone = train_steps(case)
    exact = case != "float32"
    rows = [2.0 * size for size in (7, 7, 7, 7, 7, 3)] * 3 + [14.0, 14.0]
    assert alone["steps"][:, 2].tolist() == rows[: CASES[case][0].steps]
    for size in (size for size in SIZES if case in cases_of(size)):
        for rank, mine in enumerate(found[size]):
            ours = mine[f"steps.{case}"]
            assert ours.keys() == alone.keys()
            loss = (ours["steps"][:, 0] / alone["steps"][:, 0] - 1).abs().max()
            assert loss < (1e-10 if exact else 1e-3), (size, loss)
            for name in alone if exact else ():
                assert_same(name, ours[name], alone[name], rtol=1e-9, atol=1e-10)
            for name, tensor in found[size][0][f"steps.{case}"].items():
                assert torch.equal(tensor, ours[name]), f"processes 0 and {rank} differ in {name}"


@pytest.mark.parametrize("case", NORMS)
def test_batchnorm_is_that_of_the_whole_batch(found: dict[int, list[dict[str, Any]]], case: str) -> None:
    """Torch's own BatchNorm on all rows is what it is compared with: outputs, gradients, running statistics."""
    alone = normalise(case)
    # float32 around 1000 has steps of 6e-5, so that a mean of such values is no better.
    tolerance = {"rtol": 1e-6, "atol": 1e-3} if case == "far from 0" else {"rtol": 1e-10, "atol": 1e-12}
    for size in SIZES:
        together = [each[f"norm.{case}"] for each in found[size]]
        assert {tuple(each) for each in together} == {tuple(alone)}
        for name, tensor in alone.items():
            # Rows are one process's after another's, for each member.
            ours = torch.cat([each[name] for each in together], dim=1) if ".rows." in name else together[0][name]
            assert_same(name, ours, tensor, **tolerance)


def test_what_cannot_be_right_is_refused_by_all(found: dict[int, list[dict[str, Any]]]) -> None:
    for size in SIZES:
        for mine in found[size]:
            said = mine["refusals"]
            assert said["agreed"] == "there.npy: No such file or directory"
            assert said["stopped"] == "stopped"
            assert "NormByItself does not use torch.nn.functional.batch_norm" in said["by itself"]
            assert "InstanceNorm2d with track_running_stats" in said["instance"]


def test_processes_agree(found: dict[int, list[dict[str, Any]]]) -> None:
    for size in SIZES:
        for rank, mine in enumerate(found[size]):
            assert mine["agreed"]["flags"] == [True, False]
            assert mine["agreed"]["in turn"] == ("found True" if rank else f"made-by-the-first-{size}")


def final_tensors(folder: Path) -> dict[str, Tensor]:
    return load_file(sorted((folder / "checkpoints").glob("step-*"))[-1])


def epochs(folder: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [record for record in records if record["event"] == "epoch"]


def test_a_run_begun_with_two_goes_on_with_one_and_with_three(folder: Path, tmp_path: Path) -> None:
    assert len(epochs(folder / "begun")) == 0, "it was stopped in its first epoch"
    assert run_training(folder / "with-1")
    assert run_training(tmp_path / "alone")
    alone = final_tensors(tmp_path / "alone")
    for name in ("with-1", "with-3"):
        ours = final_tensors(folder / name)
        assert ours.keys() == alone.keys()
        for key in alone:
            assert_same(key, ours[key], alone[key], rtol=1e-9, atol=1e-10)
        losses = [[record["loss"] for record in epochs(run)] for run in (folder / name, tmp_path / "alone")]
        assert losses[0] == pytest.approx(losses[1], rel=1e-10)


def test_three_processes_evaluate_as_one(folder: Path) -> None:
    evaluate(folder / "evaluated-by-1", folder / "data")
    files = sorted(path.relative_to(folder / "with-3") for path in (folder / "with-3" / "logits").rglob("*.npy"))
    assert len(files) > 20
    for file in files:
        assert np.array_equal(np.load(folder / "with-3" / file), np.load(folder / "evaluated-by-1" / file)), file
    ours, theirs = (json.loads((folder / run / "results.json").read_text()) for run in ("with-3", "evaluated-by-1"))
    for results in (ours, theirs):
        del results["evaluation"]
    assert ours == theirs
