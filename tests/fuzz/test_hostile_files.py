"""Files from strangers, made up by Hypothesis: they are read, or refused with an InputError that names the file.

`make fuzz` tries many more, and others every time.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import config
from counterpoint.config import Experiment, override
from counterpoint.errors import InputError
from counterpoint.evaluation.condensed import CondensedCells, CondensedScores, read_condensed, write_condensed
from counterpoint.metrics import ImageScores
from counterpoint.metrics.paired_calibration import CalibrationPart
from counterpoint.records.figures import CalibrationError
from counterpoint.records.files import write_record
from counterpoint.records.images import Images, MadeFrom, Shift, Source
from counterpoint.records.progress import read_lines
from counterpoint.report.loading import load_runs
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.runs.transfer import export_run, import_run
from counterpoint.setting_types import all_keys
from counterpoint.storage.arrays import read_array, read_arrays, write_array, write_arrays
from tests.fuzz.mutations import FUZZED, JSON, changed, turned_over
from tests.made_results import make_results
from tests.runs.test_strange_files import DESCRIPTION, EPOCH, RECORD
from tests.small import TINY

RUN = {**RECORD, "description": DESCRIPTION}
KEYS = [key for key in all_keys(Experiment) if not key.endswith(".KEY")]
VALUES = st.one_of(
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(str),
    st.lists(st.floats(), max_size=5).map(lambda values: ",".join(map(str, values))),
    st.sampled_from(
        ["inf", "-inf", "nan", "1e400", "none", "true", "[", "9" * 5000, "resnet", "vit", "shuffled", "a:b"]
    ),
)


@contextlib.contextmanager
def refused_or_taken(*named: str) -> Iterator[None]:
    """Inside, nothing is raised but an InputError that has one of these words."""
    said = ""
    try:
        yield
    except InputError as error:
        said = str(error)
    assert not said or any(name in said for name in named), said


def saved_json(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))  # with NaN and Infinity, which are no JSON


@FUZZED
@given(value=st.one_of(JSON, changed(RUN)))
def test_run_json(tmp_path: Path, value: Any) -> None:
    saved_json(tmp_path / "run.json", value)
    with refused_or_taken("run.json", str(tmp_path)):
        run = load_run(tmp_path)
        assert run.seed >= 0
        assert run.description.total_steps > 0


@FUZZED
@given(lines=st.lists(st.one_of(JSON, changed(EPOCH)), max_size=3))
def test_the_log(tmp_path: Path, lines: list[Any]) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with refused_or_taken("log.jsonl"):
        assert all(isinstance(line["event"], str) for line in read_lines(tmp_path / "log.jsonl"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("results")
    write_record(folder / "results.json", make_results())
    return json.loads((folder / "results.json").read_text())


@FUZZED
@given(data=st.data())
def test_results_json(tmp_path: Path, results: Any, data: st.DataObject) -> None:
    saved_json(tmp_path / "results.json", data.draw(st.one_of(JSON, changed(results))))
    with refused_or_taken("results.json"):
        load_runs([tmp_path])


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    run, folder = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("parts")
    save_checkpoint(run, Checkpoint({"model.x": torch.ones(2)}, 1, seconds=0.0))
    saved_json(run / "run.json", RUN)
    saved_json(run / "log.jsonl", EPOCH)
    export_run(run, folder, 1)
    return folder, json.loads((folder / "manifest.json").read_text())


@FUZZED
@given(data=st.data())
def test_the_manifest(tmp_path: Path, parts: tuple[Path, Any], data: st.DataObject) -> None:
    folder, manifest = parts
    saved_json(folder / "manifest.json", data.draw(st.one_of(JSON, changed(manifest))))
    with refused_or_taken(str(folder), str(tmp_path)):
        import_run(folder, tmp_path / "inside" / "run")
    assert {path.name for path in tmp_path.iterdir()} <= {"inside"}, "nothing is written elsewhere"


ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)


@FUZZED
@given(data=st.data())
def test_arrays(tmp_path: Path, data: st.DataObject) -> None:
    write_array(tmp_path / "a.npy", ARRAY)
    write_arrays(tmp_path / "a.npz", {"x": ARRAY})
    for name, read in (("a.npy", read_array), ("a.npz", read_arrays)):
        (tmp_path / name).write_bytes(data.draw(turned_over((tmp_path / name).read_bytes())))
        with refused_or_taken(name):
            read(tmp_path / name, "make it again")


@FUZZED
@given(data=st.data())
def test_checkpoints(tmp_path: Path, data: st.DataObject) -> None:
    for step in (1, 2):
        save_checkpoint(tmp_path, Checkpoint({"model.x": torch.ones(2), "sums": torch.zeros(3)}, step, seconds=0.0))
    newest = tmp_path / "checkpoints" / "step-000000002.safetensors"
    whole = newest.read_bytes()
    damaged = data.draw(turned_over(whole))
    newest.write_bytes(damaged)
    heard: list[str] = []
    found = latest_checkpoint(tmp_path, heard.append)
    assert found is not None
    # Some bytes of the header mean nothing, such as the blanks at its end. What is taken is what was saved.
    assert torch.equal(found.tensors["model.x"], torch.ones(2)) or b"sha256" not in damaged
    assert (found.step == 2) == (not heard)
    if damaged != whole and found.step == 1:
        assert "step-000000002.safetensors is damaged" in heard[0]


@FUZZED
@given(assignments=st.lists(st.tuples(st.one_of(st.sampled_from(KEYS), st.text(max_size=10)), VALUES), max_size=3))
def test_settings(assignments: list[tuple[str, str]]) -> None:
    with contextlib.suppress(InputError):
        changed_experiment = override(TINY, [f"{key}={value}" for key, value in assignments])
        assert config.from_dict(json.loads(json.dumps(config.to_dict(changed_experiment)))) == changed_experiment


@pytest.fixture(scope="module")
def condensed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Condensed scores of four clean images, and of three images in two cells."""
    clean = ImageScores(np.full(4, 0.5), np.ones(4, dtype=bool), np.full(4, 0.7), np.full(4, 0.5))
    parts = {f"{name}_debiased": CalibrationPart(0.2, 0.1, 0.3, np.ones(3)) for name in get_args(CalibrationError)}
    cells = CondensedCells({name: np.full(3, 0.5) for name in ("error", "nll", "brier")}, parts)
    shift = Shift(Source("official"), 3, "test", ("fog",), (1, 2))
    made_from = MadeFrom("weights", "fp32", Images("digits", "test", 4), shift)
    path = tmp_path_factory.mktemp("condensed") / "row.npz"
    write_condensed(path, CondensedScores(made_from, clean, cells))
    return path


def check_condensed(path: Path) -> None:
    with refused_or_taken("row.npz"):
        found = read_condensed(path)
        assert len(found.clean) == found.made_from.clean.images
        assert (found.cells is None) == (found.made_from.corrupted is None)


@FUZZED
@given(data=st.data())
def test_condensed_scores(tmp_path: Path, condensed: Path, data: st.DataObject) -> None:
    (tmp_path / "row.npz").write_bytes(data.draw(turned_over(condensed.read_bytes())))
    check_condensed(tmp_path / "row.npz")


@FUZZED
@given(data=st.data())
def test_what_condensed_scores_say_of_themselves(tmp_path: Path, condensed: Path, data: st.DataObject) -> None:
    arrays = read_arrays(condensed, "")
    about = data.draw(st.one_of(JSON, changed(json.loads(str(arrays["about"])))))
    write_arrays(tmp_path / "row.npz", arrays | {"about": np.array(json.dumps(about))})
    check_condensed(tmp_path / "row.npz")
