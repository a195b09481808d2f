"""What cannot fit into memory is refused before it starts, and what runs out of it is told what to change."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import counterpoint.training.loop
from counterpoint.config import Experiment
from counterpoint.devices import free_memory, total_memory
from counterpoint.errors import InputError
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.training.loop import Options, train
from counterpoint.training.memory import check_memory
from counterpoint.training.network import build_model
from tests.small import TINY, noise_data

CPU = torch.device("cpu")
SINGLE = Experiment("small", "digits", model="resnet", width=2, num_members=None, batch_size=4)


def test_the_memory_of_this_machine_is_found() -> None:
    kib = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert 2**20 < total_memory(CPU) <= 1024 * int(kib.split()[1])


def test_a_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it uses is not free, except for files that can be dropped."""
    (tmp_path / "limit").write_text("1048576\n")
    (tmp_path / "used").write_text("1000000\n")
    (tmp_path / "none").write_text("max\n")
    (tmp_path / "memory.stat").write_text("total_inactive_file 7\ninactive_file 5\n")
    containers = [(tmp_path / limit, tmp_path / "used", "inactive_file") for limit in ("missing", "none", "limit")]
    monkeypatch.setattr("counterpoint.devices._CONTAINERS", containers)
    assert total_memory(CPU) == 2**20
    assert free_memory() == 2**20 - 1_000_000 + 5
    (tmp_path / "used").write_text("2000000\n")
    assert free_memory() == 0


def test_what_other_programs_use_is_not_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**20 < free_memory() < total_memory(CPU)
    monkeypatch.setattr("counterpoint.devices._PROC", tmp_path)
    monkeypatch.setattr("counterpoint.devices._CONTAINERS", ())
    assert free_memory() == total_memory(CPU)  # a system that does not say
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:       3 kB\nSwapFree: 5 kB\n")
    assert free_memory() == 3 * 1024


def test_a_limit_of_this_process_counts() -> None:
    code = (
        "import resource; from counterpoint.devices import free_memory; limit = 8 << 30\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); assert 0 < free_memory() < limit - (50 << 20)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("experiment", "copies", "views"),
    [
        (SINGLE, 3, 4),
        (replace(SINGLE, momentum=0.0), 2, 4),
        (replace(SINGLE, momentum=0.0, optimiser="adamw"), 4, 4),
        (replace(SINGLE, batch_size=1_000), 3, 7),
        (replace(SINGLE, num_members=3), 3, 12),
        (replace(SINGLE, policy=MemberPolicy(augmix=AugMix((1.0,), jsd=1.0))), 3, 12),
    ],
    ids=["with momentum", "without", "AdamW", "a batch of all images", "members", "three views"],
)
def test_the_least_that_a_step_needs(
    monkeypatch: pytest.MonkeyPatch, experiment: Experiment, copies: int, views: int
) -> None:
    """Seven images of 1×8×8. The bytes are counted one by one, in weights that are trained and statistics."""
    network = build_model(experiment, 3, 1, seed=0)
    parameters = sum(4 for parameter in network.parameters() for _ in parameter.flatten())
    statistics = sum(buffer.nbytes for buffer in network.buffers())
    needed = copies * parameters + statistics + views * 64 * 4
    monkeypatch.setattr("counterpoint.training.memory.total_memory", lambda _: needed)
    check_memory(network, experiment, (1, 8, 8), 7, device=CPU, engine="compiled")
    monkeypatch.setattr("counterpoint.training.memory.total_memory", lambda _: needed - 1)
    with pytest.raises(
        InputError, match=r"a step needs more memory than the 0.0 GiB of cpu: .* lower batch_size \(now"
    ):
        check_memory(network, experiment, (1, 8, 8), 7, device=CPU, engine="compiled")


def test_training_is_refused_before_a_run_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.training.memory.total_memory", lambda _: 1000)
    with pytest.raises(InputError, match="a step needs more memory"):
        train(TINY, tmp_path / "run", noise_data(36, 4), options=Options(device="cpu"))
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_network_that_cannot_fit_is_not_made() -> None:
    with pytest.raises(
        InputError, match=r"weights take [\d,.]+ GiB, but this machine has .* GiB of memory; make the network"
    ):
        build_model(replace(SINGLE, width=10_000), 3, 1, seed=0)
    with pytest.raises(InputError, match=r"weights take [\d,.]+ GiB"):
        build_model(replace(SINGLE, width=300, num_members=1_000, ensemble="deep"), 3, 1, seed=0)


def take_too_much(*_: object) -> None:
    torch.empty(2**50)


def say_as_cuda_does(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


@pytest.mark.parametrize("step", [take_too_much, say_as_cuda_does])
def test_training_that_runs_out_of_memory_says_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Callable[..., None]
) -> None:
    data, on_cpu = noise_data(36, 4), Options(device="cpu")
    assert not train(TINY, tmp_path / "run", data, options=on_cpu, should_stop=lambda: True)
    with monkeypatch.context() as patched:
        patched.setattr(counterpoint.training.loop, "update", step)
        with pytest.raises(
            InputError, match=r"than cpu has left; .* continues .* lower batch_size \(now 8\), num_members"
        ):
            train(TINY, tmp_path / "run", data, options=on_cpu)
    kept = latest_checkpoint(tmp_path / "run")
    assert kept is not None
    assert kept.step == 1


def test_other_errors_stay_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("something else")

    monkeypatch.setattr(counterpoint.training.loop, "update", fail)
    with pytest.raises(RuntimeError, match="something else"):
        train(TINY, tmp_path / "run", noise_data(36, 4), options=Options(device="cpu"))
