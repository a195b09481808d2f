"""A run carried to another machine in parts: whole and verified, or not at all."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from counterpoint.config import Experiment, to_dict
from counterpoint.errors import InputError
from counterpoint.reproduction.rows import is_place
from counterpoint.runs.transfer import export_run, export_runs, import_run, import_runs
from counterpoint.storage.files import write_atomically, write_json
from counterpoint.storage.locks import LOCK_FILE, locked

MIB = 1 << 20
CONTENT = bytes(range(256)) * (5 * MIB // 512)  # two and a half MiB


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs" / "cifar10" / "single" / "paper-0", step=20)


def make_run(folder: Path, step: int) -> Path:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / f"step-{step - 10:09d}.safetensors").write_bytes(b"older")
    (folder / "checkpoints" / f"step-{step:09d}.safetensors").write_bytes(CONTENT)
    (folder / "log.jsonl").write_text("")
    write_run_json(folder)
    return folder


def write_run_json(folder: Path, seed: int = 0, classes: str | None = None, **settings: Any) -> None:
    described = {"description": {"classes": classes}} if classes else {}
    experiment = to_dict(Experiment("mine", "cifar10", **settings))
    write_json(folder / "run.json", {"schema": 1, "experiment": experiment, "seed": seed, **described})


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK_FILE)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_a_run_comes_back_with_its_newest_checkpoint(run: Path, tmp_path: Path) -> None:
    parts, there = tmp_path / "parts", tmp_path / "there"
    export_runs(tmp_path / "runs", [Path("cifar10/single/paper-0"), Path("cifar10/single/paper-1")], parts, 1)
    sizes = {name: len(content) for name, content in files(parts).items() if name.endswith(".part")}
    checkpoint = "cifar10/single/paper-0/step-000000020.safetensors"
    assert [sizes[f"{checkpoint}.{i:03d}.part"] for i in range(3)] == [MIB, MIB, MIB // 2]
    assert max(sizes.values()) <= MIB
    import_runs(parts, there)
    expected = {name: content for name, content in files(run).items() if "step-000000010" not in name}
    assert files(there / "cifar10" / "single" / "paper-0") == expected
    assert list(there.rglob("run.json")) == [there / "cifar10" / "single" / "paper-0" / "run.json"]


def add_logits(run: Path, *cells: str, about: str = "{}") -> None:
    (run / "logits").mkdir()
    (run / "logits" / "about.json").write_text(about)
    for name in (*cells, ".fog-3.npy.7.tmp"):
        (run / "logits" / name).write_bytes(name.encode())


def test_the_cells_of_an_unfinished_evaluation_are_carried(run: Path, tmp_path: Path) -> None:
    add_logits(run, "clean.npy", "fog-1.npy", "cell-labels.npy", "factors.npz")
    export_run(run, tmp_path / "parts", 1)
    there = tmp_path / "there"
    import_run(tmp_path / "parts", there)
    expected = {name: content for name, content in files(run).items() if not re.search(r"0010|\.tmp", name)}
    assert files(there) == expected
    (there / "logits" / "fog-2.npy").write_bytes(b"evaluated there")
    (there / "logits" / "about.json").write_text('{"seconds_spent": 7.5}')
    import_run(tmp_path / "parts", there)
    assert (there / "logits" / "fog-2.npy").exists(), "the same evaluation, further"


@pytest.mark.parametrize(
    ("left_behind", "carried"),
    [
        ("fog-1.npy", {"about.json", "clean.npy", "snow-1.npy"}),
        ("*.npy", {"about.json"}),
        ("about.json", set()),
    ],
)
def test_cells_may_be_left_behind(run: Path, tmp_path: Path, left_behind: str, carried: set[str]) -> None:
    """They can be too large to carry. Those that are missing are evaluated again, and without about.json all are."""
    add_logits(run, "clean.npy", "fog-1.npy", "snow-1.npy")
    export_run(run, tmp_path / "parts", 1)
    for part in (tmp_path / "parts").glob(f"{left_behind}.*.part"):
        part.unlink()
    import_run(tmp_path / "parts", tmp_path / "there")
    assert {path.name for path in (tmp_path / "there").glob("logits/*")} == carried
    assert (tmp_path / "there" / "checkpoints" / "step-000000020.safetensors").exists()


def test_a_cell_of_which_a_part_is_lost_is_refused(run: Path, tmp_path: Path) -> None:
    add_logits(run, "clean.npy")
    (run / "logits" / "clean.npy").write_bytes(bytes(3 << 20))
    export_run(run, tmp_path / "parts", 1)
    (tmp_path / "parts" / "clean.npy.001.part").unlink()
    with pytest.raises(InputError, match=r"lacks clean\.npy\.001\.part of logits/clean\.npy; copy every part"):
        import_run(tmp_path / "parts", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_cells_of_two_evaluations_are_not_mixed(run: Path, tmp_path: Path) -> None:
    add_logits(run, "clean.npy")
    export_run(run, tmp_path / "parts", 1)
    there = make_run(tmp_path / "there", step=20)
    add_logits(there, "fog-1.npy", about='{"precision": "another"}')
    before = files(there)
    with pytest.raises(InputError, match=r"there was evaluated differently from .*; remove .*there/logits, or leave"):
        import_run(tmp_path / "parts", there)
    assert files(there) == before


def test_a_finished_evaluation_leaves_its_logits_behind(run: Path, tmp_path: Path) -> None:
    add_logits(run, "clean.npy")
    (run / "results.json").touch()
    export_run(run, tmp_path / "parts", 1)
    assert not list((tmp_path / "parts").glob("*.npy*"))


def test_the_result_of_a_finished_row_is_carried(run: Path, tmp_path: Path) -> None:
    place, here, there = Path("cifar10/single/paper-0"), tmp_path / "results", tmp_path / "results there"
    (here / place.parent).mkdir(parents=True)
    (here / f"{place}.json").write_bytes(b"figures")
    (here / f"{place}.npz").write_bytes(b"condensed scores")
    (here / place.parent / "paper-1.json").write_bytes(b"another seed")
    export_runs(tmp_path / "runs", [place], tmp_path / "parts", 1, here)
    import_runs(tmp_path / "parts", tmp_path / "there", is_place, there)
    assert files(there) == {f"{place}.json": b"figures", f"{place}.npz": b"condensed scores"}
    assert files(tmp_path / "there" / place).keys() == files(run).keys() - {"checkpoints/step-000000010.safetensors"}
    for file in there.rglob("paper-0.*"):
        file.write_bytes(b"made there")
    import_runs(tmp_path / "parts", tmp_path / "there", is_place, there)
    assert set(files(there).values()) == {b"made there"}, "never replaced"


def test_a_damaged_result_is_not_imported(run: Path, tmp_path: Path) -> None:
    result = tmp_path / "paper-0"
    result.with_suffix(".json").write_bytes(b"figures")
    export_run(run, tmp_path / "parts", 1, result)
    (tmp_path / "parts" / "paper-0.json.000.part").write_bytes(b"Figures")
    with pytest.raises(InputError, match=r"the parts of result\.json in .* are damaged"):
        import_run(tmp_path / "parts", tmp_path / "there", tmp_path / "results" / "paper-0")
    assert not (tmp_path / "there").exists()
    assert not (tmp_path / "results").exists()


def test_a_run_where_nobody_would_look_for_it_is_not_imported(run: Path, tmp_path: Path) -> None:
    assert run.exists()
    parts, there = tmp_path / "parts", tmp_path / "there"
    place = Path("cifar10/single/paper-0")
    assert export_runs(tmp_path / "runs", [place], parts, 1) == [place]
    with pytest.raises(InputError, match=r"cifar10 holds a run in single/paper-0, where no row .* not a folder in it"):
        import_runs(parts / "cifar10", there, is_place)
    assert not there.exists()
    assert import_runs(parts, there, is_place) == [place]


def test_a_second_export_replaces_the_first(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "parts", 1)
    (run / "checkpoints" / "step-000000030.safetensors").write_bytes(b"small")
    export_run(run, tmp_path / "parts", 1)
    assert not list((tmp_path / "parts").glob("step-000000020*"))
    import_run(tmp_path / "parts", tmp_path / "there")
    assert (tmp_path / "there" / "checkpoints" / "step-000000030.safetensors").read_bytes() == b"small"


def test_an_older_run_is_taken_over_and_a_further_one_kept(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "parts", 14)
    older, further = make_run(tmp_path / "older", step=15), make_run(tmp_path / "further", step=40)
    import_run(tmp_path / "parts", older)
    assert (older / "checkpoints" / "step-000000020.safetensors").read_bytes() == CONTENT
    before = files(further)
    with pytest.raises(InputError, match=r"is already at step-000000040.safetensors, which is further than the parts"):
        import_run(tmp_path / "parts", further)
    assert files(further) == before


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ({"seed": 1}, "seed: 1 → 0"),
        ({"learning_rate": 0.3}, "learning_rate: 0.3 → 0.1"),
        ({"epochs": 3, "width": 2, "model": "resnet", "batch_size": 8, "momentum": 0.5, "seed": 4}, "; and 1 more"),
        ({"classes": "cats"}, "they were trained on other images"),
    ],
)
def test_a_run_of_other_settings_is_not_mixed_with_the_carried_one(
    run: Path, tmp_path: Path, there: dict[str, Any], message: str
) -> None:
    write_run_json(run, classes="dogs")
    export_run(run, tmp_path / "parts", 14)
    other = make_run(tmp_path / "other", step=15)
    write_run_json(other, **there)
    before = files(other)
    with pytest.raises(
        InputError,
        match=rf"other holds another run than the parts in .*parts \(.*{message}\); move .*other away, choose another",
    ):
        import_run(tmp_path / "parts", other)
    assert files(other) == before


def test_a_run_that_an_earlier_version_began_is_the_same_run(run: Path, tmp_path: Path) -> None:
    """Settings that it did not know have their defaults, and it did not describe the images."""
    write_run_json(run, classes="dogs")
    export_run(run, tmp_path / "parts", 14)
    older = make_run(tmp_path / "older", step=15)
    write_json(older / "run.json", {"schema": 1, "experiment": {"name": "mine", "dataset": "cifar10"}, "seed": 0})
    import_run(tmp_path / "parts", older)
    assert files(older)["run.json"] == files(run)["run.json"]


@pytest.mark.parametrize("damaged", ["parts", "there"])
def test_a_run_that_cannot_be_read_is_not_compared(run: Path, tmp_path: Path, damaged: str) -> None:
    there = make_run(tmp_path / "there", step=15)
    ((run if damaged == "parts" else there) / "run.json").write_text('{"schema": 1, "exper')
    export_run(run, tmp_path / "parts", 14)
    before = files(there)
    with pytest.raises(InputError, match=rf"{damaged}/run.json is damaged or is not a JSON file"):
        import_run(tmp_path / "parts", there)
    assert files(there) == before


def test_a_run_carried_by_half_is_no_run_and_is_carried_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_run(run, tmp_path / "parts", 1)
    there = tmp_path / "there"

    def crash_at_the_checkpoint(path: Path, content: bytes) -> None:
        if path.parent.name == "checkpoints":
            raise KeyboardInterrupt
        write_atomically(path, content)

    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.runs.transfer.write_atomically", crash_at_the_checkpoint)
        with pytest.raises(KeyboardInterrupt):
            import_run(tmp_path / "parts", there)
    assert list(files(there)) == ["log.jsonl"], "a checkpoint never has a log that is behind it; run.json comes last"
    import_run(tmp_path / "parts", there)
    assert (there / "run.json").exists()


@pytest.mark.parametrize(("damage", "message"), [("missing", "lacks .*001.part"), ("altered", "are damaged")])
def test_parts_that_are_not_whole_leave_nothing(run: Path, tmp_path: Path, damage: str, message: str) -> None:
    export_run(run, tmp_path / "parts", 1)
    part = tmp_path / "parts" / "step-000000020.safetensors.001.part"
    part.unlink() if damage == "missing" else part.write_bytes(b"x" + part.read_bytes()[1:])
    with pytest.raises(InputError, match=message):
        import_run(tmp_path / "parts", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def change_manifest(folder: Path, changes: dict[str, Any]) -> None:
    """Of the last file, which is run.json."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][-1] |= changes
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("path", "../run.json", "path is '../run.json', which is no file of a run"),
        ("path", "/tmp/run.json", "which is no file of a run"),
        ("path", "checkpoints/../../x", "which is no file of a run"),
        ("path", ".lock", "which is no file of a run"),
        ("path", "logits/../x.npy", "which is no file of a run"),
        ("path", "logits/.x.npy", "which is no file of a run"),
        ("path", 3, "path is 3, and must be a text"),
        ("parts", ["../run.json.000.part"], "which is no part beside the manifest"),
        ("parts", ["/tmp/run.json.000.part"], "which is no part beside the manifest"),
        ("parts", ["run.json"], "which is no part beside the manifest"),
        ("parts", "run.json.000.part", "parts is .*, and must be a list"),
        ("parts", [None], r"parts\[0\] is None, and must be a text"),
        ("sha256", None, "sha256 is None, and must be a text"),
    ],
)
def test_a_manifest_from_a_stranger_cannot_name_files_elsewhere(
    run: Path, tmp_path: Path, key: str, value: object, message: str
) -> None:
    export_run(run, tmp_path / "parts", 1)
    change_manifest(tmp_path / "parts", {key: value})
    with pytest.raises(
        InputError, match=rf"manifest.json is not the manifest of an exported run: files\[2\].*{message}"
    ):
        import_run(tmp_path / "parts", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_part_that_is_a_link_is_not_followed(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "parts", 1)
    secret, part = tmp_path / "secret", tmp_path / "parts" / "run.json.000.part"
    secret.write_bytes(part.read_bytes())
    part.unlink()
    part.symlink_to(secret)
    with pytest.raises(InputError, match=r"lacks run.json.000.part of run.json; copy every part, and no links"):
        import_run(tmp_path / "parts", tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_folder_with_a_link_out_of_it_gets_nothing(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "parts", 1)
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    elsewhere.mkdir()
    there.mkdir()
    (there / "checkpoints").symlink_to(elsewhere)
    with pytest.raises(InputError, match=r"there/checkpoints is a link out of its folder, to .*elsewhere"):
        import_run(tmp_path / "parts", there)
    assert not list(elsewhere.iterdir())


def test_a_run_in_training_is_not_replaced(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "parts", 1)
    with (
        locked(tmp_path / "there", "not said: it is the first"),
        pytest.raises(InputError, match=r"another process is training or evaluating in .*there; wait for it"),
    ):
        import_run(tmp_path / "parts", tmp_path / "there")


def test_nothing_to_carry(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no checkpoint yet"):
        export_run(tmp_path, tmp_path / "parts", 1)
    with pytest.raises(InputError, match=r"holds no exported run \(no manifest.json\)"):
        import_runs(tmp_path, tmp_path / "runs")


def test_runs_without_a_checkpoint_are_left_out_and_none_at_all_is_an_error(tmp_path: Path) -> None:
    begun = tmp_path / "runs" / "begun"
    begun.mkdir(parents=True)
    (begun / "run.json").write_text("{}")
    with pytest.raises(InputError, match=r"none of these rows has a checkpoint in .*runs yet"):
        export_runs(tmp_path / "runs", [Path("begun")], tmp_path / "parts", 1)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[]", r"is not the manifest of an exported run: the whole is \[\], and must be an object"),
        ('{"files": {}}', "files is {}, and must be a list"),
        ('{"files": [3]}', r"files\[0\] is 3, and must be an object"),
        ('{"files": [{"path": "run.json"}]}', r"files\[0\].sha256 is missing"),
        ("[" * 200_000, "is damaged or is not a JSON file"),
        ('{"files": []}', "names no checkpoint"),
    ],
    ids=["a list", "no list", "a number", "no hash", "deep", "empty"],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, manifest: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=message):
        import_run(tmp_path, tmp_path / "run")
