"""`counterpoint serve` as a user meets it when something is wrong; tests/serving/web has it at work."""

import importlib.util
import socket
from pathlib import Path

import pytest
import uvicorn

from counterpoint.runs.folder import Run
from tests.cli.conftest import Call


def test_wrong_arguments_are_named(short_run: Run, tmp_path: Path, call: Call) -> None:
    assert "is not a run folder (there is no run.json)" in call("serve", tmp_path).err
    assert (
        "--host 'nowhere.invalid' is not an address of this machine"
        in call("serve", short_run.folder, "--host", "nowhere.invalid").err
    )
    assert ", not timm/x" in call("serve", short_run.folder, "--port", "0", "--model", "timm/x").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = call("serve", short_run.folder, "--port", port)
        assert ended.status == 2
        assert f"port {port} of 127.0.0.1 is in use; give another port, or --port 0 for a free one" in ended.err


def test_missing_packages_are_named_with_the_extra(short_run: Run, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.cli.serve.find_spec", lambda name: None if name == "uvicorn" else name)
    ended = call("serve", short_run.folder)
    assert ended.status == 2
    assert "needs uvicorn, which is not installed; pip install 'counterpoint[serve]'" in ended.err
    assert importlib.util.find_spec("uvicorn") is not None


def test_it_says_what_it_serves_and_warns_where_others_can_reach_it(
    short_run: Run, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    here = call("serve", short_run.folder, "--port", "0", "--device", "cpu")
    assert here.status == 0
    assert here.out.startswith("digits/quickstart: 4 members of resnet, 10 classes, images of 32 × 32 pixels in grey")
    assert "recalibration: none" in here.out
    assert "serving at http://127.0.0.1:" in here.out
    assert "warning" not in here.out
    everywhere = call("serve", short_run.folder, "--port", "0", "--host", "0.0.0.0", "--device", "cpu")
    assert "warning: other machines can reach this server, and it has no password" in everywhere.out


def test_a_frost_folder_that_is_not_whole_is_named_before_anybody_asks(
    short_run: Run, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "frost").mkdir()
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path))
    assert "does not hold the photographs" in call("serve", short_run.folder, "--port", "0", "--device", "cpu").err
