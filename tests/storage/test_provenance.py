import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import counterpoint
from counterpoint.storage import provenance
from counterpoint.storage.provenance import command_line, command_name, describe_environment, now

CPU = torch.device("cpu")


def commit_of_a_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """What the module says of its commit when its source lies in `folder`."""
    source = folder / "storage" / "provenance.py"
    if not source.exists():
        source.parent.mkdir()
        shutil.copy(provenance.__file__, source)
    monkeypatch.setattr(provenance, "__file__", str(source))
    commit: str | None = describe_environment(CPU)["commit"]
    return commit


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_commit_of_the_source_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNTERPOINT_COMMIT", raising=False)
    assert commit_of_a_copy(tmp_path, monkeypatch) is None, "no repository"
    git(tmp_path, "init", "--quiet")
    assert commit_of_a_copy(tmp_path, monkeypatch) is None, "a repository that is not ours"
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "x")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit_of_a_copy(tmp_path, monkeypatch) == head
    (tmp_path / "storage" / "provenance.py").write_text("changed")
    assert commit_of_a_copy(tmp_path, monkeypatch) == head + "+"
    monkeypatch.setenv("COUNTERPOINT_COMMIT", "abc")
    assert commit_of_a_copy(tmp_path, monkeypatch) == "abc"


def test_a_git_that_does_not_answer_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", 10)

    monkeypatch.delenv("COUNTERPOINT_COMMIT", raising=False)
    monkeypatch.setattr(subprocess, "run", too_slow)
    assert describe_environment(CPU)["commit"] is None


def test_versions_and_device() -> None:
    described = describe_environment(CPU)
    assert described["counterpoint"] == counterpoint.__version__
    assert described["versions"]["torch"] == torch.__version__
    assert described["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "cores" in described["device"]


@pytest.mark.parametrize("program", ["/usr/bin/counterpoint", "/x/counterpoint/__main__.py"])
def test_the_command_can_be_typed_again(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(sys, "argv", [program, "train", "digits/single", "--out", "my run"])
    assert command_line() == "counterpoint train digits/single --out 'my run'"
    assert command_name() == "counterpoint train"


def test_times_are_utc_to_the_second() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", now())
