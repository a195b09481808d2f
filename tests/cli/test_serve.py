"""`counterpoint serve` as a user meets it when something is wrong; tests/serving/web has it at work."""

import importlib.util
import socket
from pathlib import Path

import pytest
import uvicorn

from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.cli.conftest import Call
from tests.small import QUICK, few_digits


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(QUICK, folder, few_digits(40), seed=3, options=Options(device="cpu"))
    return load_run(folder)


def test_wrong_arguments_are_named(run: Run, tmp_path: Path, call: Call) -> None:
    assert "holds no run" in call("serve", tmp_path).err
    assert (
        "--host 'nowhere.invalid' is not an address of this machine"
        in call("serve", run.folder, "--host", "nowhere.invalid").err
    )
    assert ", not timm/x" in call("serve", run.folder, "--port", "0", "--model", "timm/x").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = call("serve", run.folder, "--port", port)
        assert ended.status == 2
        assert f"port {port} of 127.0.0.1 is in use; give another port, or --port 0 for a free one" in ended.err


def test_missing_packages_are_named_with_the_extra(run: Run, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.cli.serve.find_spec", lambda name: None if name == "uvicorn" else name)
    ended = call("serve", run.folder)
    assert ended.status == 2
    assert "needs uvicorn, which is not installed; pip install 'counterpoint[serve]'" in ended.err
    assert importlib.util.find_spec("uvicorn") is not None


def test_it_says_what_it_serves_and_warns_where_others_can_reach_it(
    run: Run, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    here = call("serve", run.folder, "--port", "0", "--device", "cpu")
    assert here.status == 0
    assert here.out.startswith("digits/quickstart: 4 members of resnet, 10 classes, images of 32 × 32 pixels in grey")
    assert "recalibration: none" in here.out
    assert "serving at http://127.0.0.1:" in here.out
    assert "warning" not in here.out
    everywhere = call("serve", run.folder, "--port", "0", "--host", "0.0.0.0", "--device", "cpu")
    assert "warning: other machines can reach this server, and it has no password" in everywhere.out


def test_a_frost_folder_that_is_not_whole_is_named_before_anybody_asks(
    run: Run, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "frost").mkdir()
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path))
    assert "does not hold the photographs" in call("serve", run.folder, "--port", "0", "--device", "cpu").err
