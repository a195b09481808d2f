"""How far a run is, from its files alone."""

from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.runs.progress import epochs_done, is_trained


def test_epochs_are_those_of_the_log(tmp_path: Path) -> None:
    assert epochs_done(tmp_path) == 0
    (tmp_path / "log.jsonl").write_text('{"event": "started"}\n{"event": "epoch", "epoch": 4}\n{"event": "ep')
    assert epochs_done(tmp_path) == 4


def test_a_run_is_trained_when_its_last_step_has_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000022.safetensors").touch()
    assert not is_trained(tmp_path)
    (tmp_path / "run.json").write_text('{"description": {"total_steps": 33}}')
    assert not is_trained(tmp_path)
    (tmp_path / "checkpoints" / "step-000000033.safetensors").touch()
    assert is_trained(tmp_path)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"description": 3}', '{"description": {"total_steps": "33"}}'])
def test_files_of_another_shape_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-odd.safetensors").touch()
    (tmp_path / "run.json").write_text(text)
    assert not is_trained(tmp_path)


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"event": "epoch", "epoch": "4"}\n{"event": "epoch", "epoch": 2}\n')
    with pytest.raises(InputError, match=r"log\.jsonl is damaged: line 1"):
        epochs_done(tmp_path)
