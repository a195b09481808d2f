"""Checkpoints come back as they were saved; damage is named and passed over, and what a kill left is swept away."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from counterpoint.errors import InputError
from counterpoint.records.progress import checkpoint_paths
from counterpoint.runs.checkpoints import (
    Checkpoint,
    fingerprint,
    latest_checkpoint,
    save_checkpoint,
    sweep_checkpoints,
)

TENSORS = {"model.weight": torch.arange(6.0).view(2, 3).T, "sums": torch.tensor([0.1, 2.0], dtype=torch.float64)}
TENSORS_APART = {name: tensor.contiguous() for name, tensor in TENSORS.items()}


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


def test_a_fingerprint_is_of_every_type() -> None:
    """A network of a user's own may have weights that NumPy has no type for."""
    halves = fingerprint({"a": torch.tensor([0.5, 2.0], dtype=torch.bfloat16)})
    assert halves == hashlib.sha256(b"a" + bytes([0x00, 0x3F, 0x00, 0x40])).hexdigest()[:16]


def test_the_last_two_are_kept_in_the_order_of_their_steps(tmp_path: Path) -> None:
    save(tmp_path, 9, 10, 1_000)
    names = ["step-000000010.safetensors", "step-000001000.safetensors"]
    assert [path.name for path in checkpoint_paths(tmp_path)] == names
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == names


def test_a_copy_that_somebody_keeps_takes_no_checkpoints_place(tmp_path: Path) -> None:
    """Its name sorts after every step. Two such copies would have every new checkpoint removed."""
    save(tmp_path, 1)
    copies = ["step-000000001 (copy).safetensors", "step-best.safetensors", "step-9999999999.safetensors"]
    for name in copies:
        (tmp_path / "checkpoints" / name).write_bytes(b"mine")
    save(tmp_path, 2, 3)
    newest = latest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 3
    sweep_checkpoints(tmp_path, 3)
    names = ["step-000000002.safetensors", "step-000000003.safetensors"]
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == sorted([*names, *copies])


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def flip_a_bit(path: Path) -> None:
    """In the last value, of whose change safetensors knows nothing."""
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def flip_a_bit_of_the_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[9] ^= 1
    path.write_bytes(content)


def make_unreadable(path: Path) -> None:
    path.unlink()
    path.mkdir()


def drop_metadata(path: Path) -> None:
    safetensors.torch.save_file(TENSORS_APART, path)


def give_another_step(path: Path) -> None:
    safetensors.torch.save_file(TENSORS_APART, path, {"step": "11", "seconds": "1.0"})


def claim_endless_seconds(path: Path) -> None:
    safetensors.torch.save_file(TENSORS_APART, path, {"step": path.stem[-9:], "seconds": "inf"})


def claim_no_number(path: Path) -> None:
    safetensors.torch.save_file(TENSORS_APART, path, {"step": "9" * 5000, "seconds": "1.0"})


DAMAGES = [
    cut_short,
    flip_a_bit,
    flip_a_bit_of_the_header,
    make_unreadable,
    drop_metadata,
    give_another_step,
    claim_endless_seconds,
    claim_no_number,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    save(tmp_path, 5, 10)
    damage(checkpoint_paths(tmp_path)[-1])
    heard: list[str] = []
    before = latest_checkpoint(tmp_path, heard.append)
    assert before is not None
    assert before.step == 5
    (warning,) = heard
    assert "step-000000010.safetensors is damaged (" in warning
    assert warning.endswith("; the checkpoint before it, of step 5, is intact and is used")


@pytest.mark.parametrize("damage", DAMAGES)
def test_if_the_only_checkpoint_is_damaged_nothing_begins_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    save(tmp_path, 5)
    damage(checkpoint_paths(tmp_path)[-1])
    with pytest.raises(
        InputError, match=r"step-000000005.safetensors is damaged \(.*\), and there is no other"
    ) as said:
        latest_checkpoint(tmp_path)
    assert f"put a copy of it there, or remove {tmp_path / 'checkpoints'} to train from the start" in str(said.value)


def test_checkpoints_of_earlier_versions_have_no_digest_and_are_read(tmp_path: Path) -> None:
    save(tmp_path, 5)
    safetensors.torch.save_file(TENSORS_APART, checkpoint_paths(tmp_path)[0], {"step": "5", "seconds": "0.5"})
    found = latest_checkpoint(tmp_path)
    assert found is not None
    assert (found.step, found.seconds) == (5, 0.5)


def test_the_digest_is_of_every_type_and_of_step_and_time(tmp_path: Path) -> None:
    kinds = [torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.uint8]
    tensors = {str(kind): torch.tensor([[0, 1]], dtype=kind) for kind in kinds} | {"none": torch.empty(0, 3)}
    save_checkpoint(tmp_path, Checkpoint(tensors | {"number": torch.tensor(3)}, 1, seconds=1.0))
    found = latest_checkpoint(tmp_path)
    assert found is not None
    path = checkpoint_paths(tmp_path)[0]
    path.write_bytes(path.read_bytes().replace(b'"seconds":"1.0"', b'"seconds":"2.0"'))
    with pytest.raises(InputError, match="its SHA-256 is not the one that it was written with"):
        latest_checkpoint(tmp_path)


def test_a_damaged_checkpoint_is_put_aside_before_training_goes_on(tmp_path: Path) -> None:
    save(tmp_path, 5, 10)
    flip_a_bit(checkpoint_paths(tmp_path)[-1])
    sweep_checkpoints(tmp_path, 5)
    save(tmp_path, 7)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    whole = ["step-000000005.safetensors", "step-000000007.safetensors"]
    assert names == [*whole, "step-000000010.safetensors.damaged"]


def test_what_a_kill_left_is_swept_away_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, 5)
    leftover = tmp_path / "checkpoints" / ".step-000000010.safetensors.123.tmp"
    leftover.write_bytes(b"half")
    (tmp_path / "checkpoints" / ".notes.tmp").write_text("not ours")
    sweep_checkpoints(tmp_path, 5)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == [".notes.tmp", "step-000000005.safetensors"]


def test_a_folder_without_checkpoints_has_nothing_to_sweep(tmp_path: Path) -> None:
    sweep_checkpoints(tmp_path, 5)
    assert not list(tmp_path.iterdir())
