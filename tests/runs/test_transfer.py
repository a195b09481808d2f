"""A run carried to another machine in parts: whole and verified, or not at all."""

import json
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.runs.transfer import export_run, export_runs, import_run, import_runs
from counterpoint.storage.files import write_atomically

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
    (folder / "run.json").write_text("{}\n")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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
    with pytest.raises(InputError, match=r"is already at step-000000040.safetensors, further than the parts"):
        import_run(tmp_path / "parts", further)
    assert files(further) == before


def test_a_run_carried_by_half_is_no_run_and_is_carried_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_run(run, tmp_path / "parts", 1)
    there = tmp_path / "there"

    def crash_at_the_log(path: Path, content: bytes) -> None:
        if path.name == "log.jsonl":
            raise KeyboardInterrupt
        write_atomically(path, content)

    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.runs.transfer.write_atomically", crash_at_the_log)
        with pytest.raises(KeyboardInterrupt):
            import_run(tmp_path / "parts", there)
    assert list(files(there)) == ["checkpoints/step-000000020.safetensors"], "run.json comes last"
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


@pytest.mark.parametrize("name", ["../run.json", "/tmp/run.json"])
@pytest.mark.parametrize("key", ["path", "parts"])
def test_a_manifest_cannot_name_files_elsewhere(run: Path, tmp_path: Path, key: str, name: str) -> None:
    export_run(run, tmp_path / "parts", 1)
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_text())
    manifest["files"][-1][key] = name if key == "path" else [name]
    (tmp_path / "parts" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="outside the run's folder"):
        import_run(tmp_path / "parts", tmp_path / "there")
    assert not (tmp_path / "there").exists()


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
    [("[]", "is not the manifest of an exported run"), ('{"files": []}', "names no checkpoint")],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, manifest: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=message):
        import_run(tmp_path, tmp_path / "run")
