"""The folder of predictions that were made elsewhere."""

from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.records.results import Imported
from counterpoint.runs.folder import Run, find_run, load_run
from counterpoint.runs.imported import ImportedRun, check_import_folder, load_any_run, write_import
from counterpoint.storage.files import read_json, write_json
from tests.made_runs import MakeRun

IMPORTED = Imported(file="p.npz", sha256="abc", classes=("cat", "dog"), command="counterpoint evaluate", finished="now")


@pytest.fixture
def run(tmp_path: Path) -> ImportedRun:
    run = ImportedRun(tmp_path / "run", "a forest", IMPORTED)
    write_import(run)
    return run


def test_what_was_written_is_read(run: ImportedRun) -> None:
    assert load_any_run(run.folder) == run
    assert run.evaluate_command == f"counterpoint evaluate --logits FILE --out {run.folder}"
    bare = ImportedRun(run.folder, "x", Imported(sha256="abc", command="c", finished="now"))
    write_import(bare)
    assert load_any_run(run.folder) == bare


def test_a_run_that_was_trained_here_is_loaded_as_such(make_run: MakeRun) -> None:
    run = make_run()
    assert isinstance(load_any_run(run.folder), Run)
    assert load_any_run(run.folder) == run
    assert run.evaluate_command == f"counterpoint evaluate {run.folder}"


def test_there_is_no_network_in_it(run: ImportedRun, make_run: MakeRun) -> None:
    refusal = "holds predictions of a model that was trained elsewhere, and no network"
    with pytest.raises(InputError, match=refusal):
        load_run(run.folder)
    with pytest.raises(InputError, match=refusal):
        find_run(run.folder, make_run().experiment, seed=0)  # as `train --out` does


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema or name is not as it must be"),
        ({"name": None}, "schema or name is not as it must be"),
        ({"imported": {}}, "sha256 is missing"),
        ({"imported": 3}, "the whole is 3, and must be an object"),
    ],
)
def test_a_damaged_record_says_what_to_do(run: ImportedRun, change: dict[str, object], message: str) -> None:
    write_json(run.folder / "run.json", read_json(run.folder / "run.json") | change)
    with pytest.raises(
        InputError, match=f"run.json is damaged or incomplete: {message}; `counterpoint evaluate --logits FILE"
    ):
        load_any_run(run.folder)


def test_which_folder_predictions_may_go_into(run: ImportedRun, make_run: MakeRun, tmp_path: Path) -> None:
    check_import_folder(run.folder)
    check_import_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".lock").touch()
    check_import_folder(tmp_path / "empty")
    with pytest.raises(InputError, match="holds a run that counterpoint trained"):
        check_import_folder(make_run().folder)
    with pytest.raises(InputError, match="is not empty and holds no run"):
        check_import_folder(tmp_path)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    with pytest.raises(InputError, match="is damaged or is not a JSON file"):
        check_import_folder(tmp_path / "damaged")


def test_nothing_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run folder \(there is no run.json\)"):
        load_any_run(tmp_path)
