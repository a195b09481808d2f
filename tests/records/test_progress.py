"""How far a run is, from its files alone."""

import json
import shutil
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.records.progress import epochs_done, is_trained, why_no_results, why_not_trained

COMMAND = "counterpoint train digits/single --out 'my run'"


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
    (tmp_path / "checkpoints" / "step-000000033.safetensors").touch()
    (tmp_path / "run.json").write_text(text)
    assert not is_trained(tmp_path)


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"event": "epoch", "epoch": "4"}\n{"event": "epoch", "epoch": 2}\n')
    with pytest.raises(InputError, match=r"log\.jsonl is damaged: line 1"):
        epochs_done(tmp_path)


def begun(folder: Path, **changes: object) -> Path:
    """A run of 33 steps, of which 22 are done."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "step-000000022.safetensors").touch()
    record = {"command": COMMAND, "description": {"total_steps": 33}, "experiment": {"learning_rate": 0.1}}
    (folder / "run.json").write_text(json.dumps(record | changes))
    return folder


def test_an_unfinished_run_is_sent_to_the_command_that_began_it(tmp_path: Path) -> None:
    run = begun(tmp_path / "my run")
    said = f"{run} is not finished: 22 of 33 steps are done; continue it with `{COMMAND}`"
    assert (why_not_trained(run), why_no_results(run)) == (said, said)
    shutil.rmtree(run / "checkpoints")
    assert "is not finished: 0 of 33 steps are done; continue it with" in why_no_results(run)


def test_nobody_is_sent_back_to_a_training_that_diverged(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    (run / "log.jsonl").write_text('{"event": "diverged", "step": 30}\n')
    assert why_no_results(run) == (
        f"{run} is not finished: training diverged after step 30 of 33, and would again; train a new run with a lower "
        "learning_rate than 0.1, in another folder (--out)"
    )


def test_a_trained_run_is_sent_to_evaluate(tmp_path: Path) -> None:
    run = begun(tmp_path / "my run")
    (run / "checkpoints" / "step-000000033.safetensors").touch()
    assert why_not_trained(run) == ""
    assert why_no_results(run) == f"{run} has no results.json; `counterpoint evaluate '{run}'` makes it"


def test_predictions_from_elsewhere_are_sent_to_their_file(tmp_path: Path) -> None:
    run = begun(tmp_path / "theirs", imported={}, description=None)
    assert f"`counterpoint evaluate --logits FILE --out {run}` makes it" in why_no_results(run)
