"""A run's files from a stranger: whatever is in them, the file is named, and nothing ends in a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest

from counterpoint import config
from counterpoint.errors import InputError
from counterpoint.records.progress import read_lines
from counterpoint.runs.folder import check_folder, load_run
from counterpoint.storage.files import read_json
from tests.small import TINY

EPOCH = {"event": "epoch", "epoch": 1, "step": 5, "seconds": 1.0, "time": "2026-01-01T00:00:00Z"}
RECORD = {"schema": 1, "experiment": config.to_dict(TINY), "seed": 0, "command": "counterpoint train"}
DESCRIPTION = {
    "classes": ["a", "b"],
    "channels": 1,
    "height": 8,
    "width": 8,
    "training_images": 36,
    "total_steps": 15,
    "normalisation": {"mean": 0.5, "std": 0.5},
}


def written(folder: Path, record: Any) -> Path:
    (folder / "run.json").write_text(record if isinstance(record, str) else json.dumps(record))
    return folder


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 200_000, '{"a": ' + "9" * 5_000 + "}", '{"a": 1e400}', '{"a": NaN}', '{"a": Infinity}', "\udcff"],
    ids=["nothing", "cut", "200,000 brackets", "5,000 digits", "1e400", "NaN", "Infinity", "no UTF-8"],
)
def test_what_is_no_json_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(
        InputError,
        match=r"run.json is damaged or is not a JSON file \(.{1,200}\); restore it from a copy, or make it again",
    ):
        read_json(file)
    with pytest.raises(InputError, match=r"run\.json"):
        load_run(tmp_path)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(InputError, match=r"run.json cannot be read: Is a directory"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"experiment": 3}, "experiment is 3, and must be an object"),
        ({"experiment": {}}, "name is missing from the experiment"),
        ({"experiment": {**RECORD["experiment"], "epochs": 10**30}}, "epochs is 10*; it must be from 1"),  # type: ignore[dict-item]
        ({"experiment": {**RECORD["experiment"], "policy": []}}, r"policy=\[\]: it must be set by its parts"),  # type: ignore[dict-item]
        ({"seed": None}, "seed is None, and must be a whole number"),
        ({"seed": -1}, "seed is -1, and must be between"),
        ({"command": ["rm"]}, "command is .*, and must be a text"),
        ({"images": "x"}, "images is 'x', and must be an object"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_run_that_is_not_whole_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    written(tmp_path, {**RECORD, **change})
    with pytest.raises(InputError, match=rf"run.json is damaged or incomplete: {words}.*; restore it from a copy"):
        load_run(tmp_path)


@pytest.mark.parametrize("key", ["experiment", "seed"])
def test_a_run_without_a_key_is_named(tmp_path: Path, key: str) -> None:
    written(tmp_path, {name: value for name, value in RECORD.items() if name != key})
    with pytest.raises(InputError, match=r"run.json is damaged"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": []},
        {"classes": "ab"},
        {"classes": [1]},
        {"channels": 0},
        {"height": 10**9},
        {"width": "8"},
        {"training_images": 0},
        {"total_steps": None},
        {"total_steps": 10**12},
        {"normalisation": {}},
        {"normalisation": {"mean": 0.5, "std": 0}},
        {"normalisation": {"mean": 0.5, "std": "x"}},
        {"normalisation": 3},
        {"something": 3},
        {"model_config": 3},
    ],
    ids=str,
)
def test_a_description_that_cannot_be_meant_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    run = load_run(written(tmp_path, {**RECORD, "description": {**DESCRIPTION, **change}}))
    with pytest.raises(InputError, match=r"the description in .*run.json is not one of this version \("):
        _ = run.description
    for key in DESCRIPTION:
        less = {name: value for name, value in DESCRIPTION.items() if name != key}
        with pytest.raises(InputError, match=f"{key} is missing"):
            _ = load_run(written(tmp_path, {**RECORD, "description": less})).description


@pytest.mark.parametrize(
    "line",
    [
        "3",
        "[]",
        '{"step": 3}',
        '{"event": 3}',
        '{"event": "epoch", "step": "x"}',
        '{"event": "epoch", "step": -1}',
        '{"event": "epoch", "health": {}}',
        '{"event": "started", "step": 0, "environment": 3}',
        '{"event": "epoch", "seconds": 1e400}',
    ],
)
def test_a_line_of_the_log_that_is_not_whole_is_named(tmp_path: Path, line: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(f"{json.dumps(EPOCH)}\n{line}\n")
    with pytest.raises(InputError, match=r"log.jsonl is damaged: line 2 cannot be read \(.*\); restore the file"):
        read_lines(log)


@pytest.mark.parametrize("line", ["{", "[" * 200_000, "9" * 5_000, "\udcff"], ids=["cut", "deep", "long", "no UTF-8"])
def test_only_the_last_line_may_be_cut_short(tmp_path: Path, line: str) -> None:
    log, whole = tmp_path / "log.jsonl", json.dumps(EPOCH)
    log.write_bytes(f"{whole}\n{line}".encode(errors="surrogateescape"))
    assert read_lines(log) == [EPOCH]
    log.write_bytes(f"{whole}\n{line}\n{whole}\n".encode(errors="surrogateescape"))
    with pytest.raises(InputError, match="line 2 cannot be read"):
        read_lines(log)


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert read_lines(tmp_path / "log.jsonl") == []


@pytest.mark.parametrize("name", [".lock", "log.jsonl", "checkpoints", "run.json", "logits/clean.npy"])
def test_a_link_out_of_a_strangers_run_is_not_followed(tmp_path: Path, name: str) -> None:
    """A training would append to the user's own file, or empty it."""
    target, run = tmp_path / "diary", tmp_path / "run"
    target.mkdir() if name == "checkpoints" else target.write_text(json.dumps(RECORD))
    (run / "logits").mkdir(parents=True)
    written(run, RECORD)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(target)
    words = rf"{name} is a link out of its folder, to .*diary; put the file or folder itself there"
    for refused in (load_run, check_folder):
        with pytest.raises(InputError, match=words):
            refused(run)
    assert target.is_dir() or target.read_text() == json.dumps(RECORD)


def test_links_within_a_run_and_to_a_run_are_fine(tmp_path: Path) -> None:
    run = tmp_path / "real"
    run.mkdir()
    written(run, RECORD)
    (run / "newest.json").symlink_to("run.json")
    (run / "nothing").symlink_to("nothing")
    (tmp_path / "link").symlink_to(run)
    assert load_run(tmp_path / "link").seed == 0
