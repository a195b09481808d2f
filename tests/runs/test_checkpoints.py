"""Checkpoints come back as they were saved; damage is named, and what a kill left is swept away."""

import hashlib
from pathlib import Path

import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.runs.checkpoints import (
    Checkpoint,
    fingerprint,
    latest_checkpoint,
    save_checkpoint,
    sweep_checkpoints,
)
from counterpoint.runs.folder import checkpoint_paths

TENSORS = {"model.weight": torch.arange(6.0).view(2, 3).T, "sums": torch.tensor([0.1, 2.0], dtype=torch.float64)}


def save(folder: Path, *steps: int) -> None:
    for step in steps:
        save_checkpoint(folder, Checkpoint(TENSORS, step, seconds=0.1 * step))


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    save(tmp_path, 3)
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, found.seconds) == (3, 0.1 * 3)
    assert found.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_a_weight_with_two_names_comes_back_under_both(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(3, 2)
    tied = {"model.first": whole, "model.second": whole, "model.part": whole[:1], "model.own": torch.ones(2)}
    save_checkpoint(tmp_path, Checkpoint(tied, 1, seconds=0.0))
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert found.tensors.keys() == tied.keys()
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tied.items())


def test_the_networks_tensors_are_told_from_the_others() -> None:
    found = Checkpoint(TENSORS, 1, seconds=0.0).model_tensors
    assert list(found) == ["weight"]
    assert found["weight"] is TENSORS["model.weight"]


def test_a_fingerprint_is_of_names_and_values_alone() -> None:
    first, second = torch.arange(6.0).view(2, 3).T, torch.ones(2)
    written_out = hashlib.sha256(b"a" + first.contiguous().numpy().tobytes() + b"b" + second.numpy().tobytes())
    assert fingerprint({"b": second, "a": first}) == written_out.hexdigest()[:16]
    assert fingerprint({"a": first.contiguous(), "b": second}) == fingerprint({"b": second, "a": first})
    others = [{"a": first, "c": second}, {"a": first, "b": second + 1e-6}, {"a": first}]
    assert len({fingerprint(tensors) for tensors in others} | {fingerprint({"a": first, "b": second})}) == 4


def test_the_last_two_are_kept_in_the_order_of_their_steps(tmp_path: Path) -> None:
    save(tmp_path, 9, 10, 1_000)
    names = ["step-000000010.safetensors", "step-000001000.safetensors"]
    assert [path.name for path in checkpoint_paths(tmp_path)] == names
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == names


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_still_there(tmp_path: Path) -> None:
    save(tmp_path, 5, 10)
    newest = checkpoint_paths(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"step-000000010.safetensors is damaged .* remove it to go on"):
        latest_checkpoint(tmp_path)
    newest.unlink()
    before = latest_checkpoint(tmp_path)
    assert before is not None
    assert before.step == 5


def test_what_a_kill_left_is_swept_away_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, 5)
    leftover = tmp_path / "checkpoints" / ".step-000000010.safetensors.123.tmp"
    leftover.write_bytes(b"half")
    (tmp_path / "checkpoints" / ".notes.tmp").write_text("not ours")
    sweep_checkpoints(tmp_path)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == [".notes.tmp", "step-000000005.safetensors"]


def test_a_folder_without_checkpoints_has_nothing_to_sweep(tmp_path: Path) -> None:
    sweep_checkpoints(tmp_path)
    assert not list(tmp_path.iterdir())
