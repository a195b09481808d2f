"""A run's folder: what it records, what it is refused for, and a log that survives a crash."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.normalisation import Normalisation
from counterpoint.runs.description import Description, description_as_json
from counterpoint.runs.folder import SCHEMA, Run, check_content, check_folder, keep_description, load_run, open_run
from counterpoint.storage.locks import LOCK_FILE
from tests.small import TINY


def test_folders_without_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run folder \(there is no run.json\)"):
        load_run(tmp_path)
    for foreign in ('{"schema": 99}', f'{{"schema": {SCHEMA}}}'):
        (tmp_path / "run.json").write_text(foreign)
        with pytest.raises(InputError, match="another version of counterpoint wrote it"):
            load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"sch')
    with pytest.raises(InputError, match="is damaged or is not a JSON file"):
        load_run(tmp_path)


def opened(folder: Path, experiment: Experiment = TINY, seed: int = 4) -> Run:
    return open_run(folder, experiment, seed=seed, options={"device": "cpu"}, environment={"device": "a machine"})


def test_a_new_run_says_what_was_asked_and_is_found_again(tmp_path: Path) -> None:
    run = opened(tmp_path)
    assert (run.experiment, run.seed) == (TINY, 4)
    assert run.record["options"] == {"device": "cpu"}
    assert run.record["environment"] == {"device": "a machine"}
    assert load_run(tmp_path) == run
    assert opened(tmp_path) == run


DESCRIPTION = Description(
    ("a", "b"), 3, 8, 8, training_images=36, total_steps=15, normalisation=Normalisation(0.5, 0.5)
)


WHOLE = description_as_json(DESCRIPTION)


def test_a_run_describes_itself(tmp_path: Path) -> None:
    run = opened(tmp_path)
    with pytest.raises(InputError, match=r"run.json does not say yet what .*`counterpoint evaluate .*` adds it"):
        _ = run.description
    described = keep_description(run, DESCRIPTION)
    assert described.description == load_run(tmp_path).description == DESCRIPTION
    assert described.record.items() >= run.record.items(), "the rest of run.json stays"
    assert keep_description(load_run(tmp_path), DESCRIPTION) == load_run(tmp_path)


def test_other_images_than_the_runs_are_refused(tmp_path: Path) -> None:
    run = keep_description(opened(tmp_path), DESCRIPTION)
    with pytest.raises(InputError, match=r"not the one that .* was begun with \(training_images: 36 → 40\); name its"):
        keep_description(run, replace(DESCRIPTION, training_images=40))


def test_a_normalisation_by_channel_comes_back(tmp_path: Path) -> None:
    by_channel = replace(DESCRIPTION, normalisation=Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    described = keep_description(opened(tmp_path), by_channel)
    assert described.description == load_run(tmp_path).description == by_channel
    assert keep_description(load_run(tmp_path), by_channel) == described


def test_a_models_configuration_comes_back(tmp_path: Path) -> None:
    configured = replace(DESCRIPTION, model_config={"model_type": "vit", "id2label": {"0": "a"}, "depths": [1, 2]})
    described = keep_description(opened(tmp_path), configured)
    assert described.description == load_run(tmp_path).description == configured
    assert "model_config" not in keep_description(opened(tmp_path / "other"), DESCRIPTION).record["description"]


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"classes": ["a"]},
        {"normalisation": {"mean": 1}},
        {"normalisation": {"mean": 1, "std": "big"}},
        WHOLE | {"model_config": "vit"},
        WHOLE | {"normalisation": {"mean": [0.5, 0.5], "std": [0.5, 0.5]}},
    ],
)
def test_a_description_that_is_none_is_named(tmp_path: Path, damaged: dict[str, object]) -> None:
    run = opened(tmp_path)
    with pytest.raises(InputError, match=r"description in .*run\.json is not one of this version"):
        _ = Run(run.folder, run.experiment, {**run.record, "description": damaged}).description


def test_another_run_in_its_folder_is_refused(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(
        InputError, match=r"holds another run \(epochs: 3 → 4; seed: 4 → 7\); choose another folder \(--out\)"
    ):
        opened(tmp_path, replace(TINY, epochs=4), seed=7)
    many = replace(TINY, epochs=4, batch_size=5, learning_rate=0.3, momentum=0.5, width=3, depth=14)
    with pytest.raises(InputError, match=r"; and 2 more\); choose .*, or the settings that it was begun with: `.+`$"):
        opened(tmp_path, many, seed=7)


def test_a_folder_may_be_new_or_empty_or_hold_a_run(tmp_path: Path) -> None:
    check_folder(tmp_path / "new")
    check_folder(tmp_path)
    (tmp_path / LOCK_FILE).touch()
    check_folder(tmp_path)
    (tmp_path / ".run.json.123.tmp").write_text('{"sch')  # a kill while the run was begun
    check_folder(tmp_path)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"is not empty and holds no run; choose another folder \(--out\)"):
        check_folder(tmp_path)
    (tmp_path / "run.json").touch()
    check_folder(tmp_path)


def test_a_folder_whose_checkpoints_could_not_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"bad-\\udcff/run' is not valid UTF-8, and safetensors reads no .* another folder"
    ):
        check_folder(tmp_path / os.fsdecode(b"bad-\xff") / "run")
    check_folder(tmp_path / "good-ÿ" / "run")


def test_what_is_in_a_folder_can_be_checked_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").touch()
    monkeypatch.setattr(os, "access", lambda _, mode, **__: not mode & os.W_OK)
    check_content(tmp_path)
    check_content(tmp_path / "new")
    with pytest.raises(InputError, match="cannot be written"):
        check_folder(tmp_path)
    for path in (tmp_path / "run.json", tmp_path / "run.json" / "new"):
        with pytest.raises(InputError, match=r"run\.json is a file, but a folder is needed there"):
            check_content(path)


def test_the_log_ends_where_a_crash_cut_it_short(tmp_path: Path) -> None:
    run = opened(tmp_path)
    records = [{"event": "started", "step": 0}, {"event": "epoch", "step": 5}]
    for record in records:
        run.append_log(**record)
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"event": "epo')
    assert run.read_log() == records
    run.trim_log(5)
    run.append_log(event="epoch", step=10)
    assert run.read_log() == [*records, {"event": "epoch", "step": 10}]


def test_what_was_logged_after_the_last_checkpoint_is_dropped(tmp_path: Path) -> None:
    run = opened(tmp_path)
    run.trim_log(0)
    assert not (tmp_path / "log.jsonl").exists(), "there is nothing to trim"
    for step in (0, 5, 10):
        run.append_log(event="epoch", step=step)
    run.trim_log(5)
    assert [record["step"] for record in run.read_log()] == [0, 5]


def test_a_log_has_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    run = opened(tmp_path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.append_log(event="epoch", loss=float("nan"))
