"""--model as a user meets it: a network of their own from training to results, and never without their word.

The training has a process of its own. The other commands run in this one, which forgets the module before each.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Call
from tests.small import few_digits

SOURCE = """
from pathlib import Path
from torch import nn

Path("imported").touch()

def make_model(num_classes, in_channels, width=4):
    return nn.Sequential(nn.Conv2d(in_channels, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(16 * width, num_classes))
"""
TRAIN = ("train", "digits/quickstart", "--model", "mymodule:make_model", "--out", "run", "--device", "cpu")
SETTINGS = ("--set", "steps=3", "--set", "model_options.width=6", "--set", "policy.augmix=none")
EVALUATE = ("evaluate", "run", "--cell-images", "5", "--device", "cpu")


class Ended(NamedTuple):
    status: int
    out: str
    err: str
    imported: bool
    """Whether the module was imported on the way."""


Give = Callable[..., Ended]


class Terminal:
    """A user's folder with a module in it. The program is not told where that is, and finds it all the same."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        (folder / "mymodule.py").write_text(SOURCE)

    def ended(self, status: int, out: str, err: str) -> Ended:
        """How a command ended, and whether it imported the module; the next one starts without the sign of that."""
        sign = self.folder / "imported"
        imported = sign.exists()
        sign.unlink(missing_ok=True)
        return Ended(status, out, err, imported)

    def start(self, *arguments: str) -> Ended:
        """In a process of its own."""
        environment = os.environ | {"COLUMNS": "300", "NO_COLOR": "1", "COUNTERPOINT_DATA": str(self.root)}
        # Not -m, which would put the current folder on the path: an installed `counterpoint` does not.
        code = (
            "import sys; sys.path.remove(''); sys.argv[0] = 'counterpoint'; from counterpoint.cli import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        return self.ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    terminal = Terminal(tmp_path_factory.mktemp("user"), tmp_path_factory.mktemp("data"))
    done = terminal.start(*TRAIN, *SETTINGS)
    assert done.status == 0, done.err
    assert done.imported
    assert "next: `counterpoint evaluate run --model mymodule:make_model`" in done.out
    return terminal


@pytest.fixture
def give(trained: Terminal, call: Call, monkeypatch: pytest.MonkeyPatch) -> Give:
    """Gives a command in the user's folder, as in a new process: the module is not imported and not on the path."""
    monkeypatch.chdir(trained.folder)
    monkeypatch.setenv("COUNTERPOINT_DATA", str(trained.root))
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: few_digits(20))  # to corrupt fewer images

    def give(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(trained.folder))])
        ended = trained.ended(*call(*arguments))
        sys.modules.pop("mymodule", None)
        return ended

    return give


def test_a_run_keeps_the_name_and_its_options(trained: Terminal) -> None:
    record = json.loads((trained.folder / "run" / "run.json").read_text())
    experiment = record["experiment"]
    assert (experiment["model"], experiment["model_options"]) == ("mymodule:make_model", {"width": 6})
    assert "--model mymodule:make_model" in record["command"]


def test_a_run_is_evaluated_with_the_users_word(give: Give) -> None:
    done = give(*EVALUATE, "--model", "mymodule:make_model")
    assert done.status == 0, done.err
    assert done.imported
    assert "member 4" in done.out
    for reading in (("evaluate", "run", "--recompute"), ("report", "run", "--out", "report.md")):
        again = give(*reading)
        assert (again.status, again.imported) == (0, False), "what is read from files needs no network"


def test_without_the_word_the_run_is_refused_by_name_with_the_command(give: Give) -> None:
    done = give(*EVALUATE)
    assert (done.status, done.imported) == (2, False)
    assert "run says that its network is made by mymodule:make_model" in done.err
    assert "`counterpoint evaluate run … --model mymodule:make_model`" in done.err
    predicted = give("predict", "run", "picture.png")
    assert (predicted.status, predicted.imported) == (2, False)
    assert "`counterpoint predict run … --model mymodule:make_model`" in predicted.err


@pytest.mark.parametrize("said", ["mymodule:other", "other:make_model", "resnet"])
def test_another_name_than_the_runs_is_refused(give: Give, said: str) -> None:
    done = give(*EVALUATE, "--model", said)
    assert (done.status, done.imported) == (2, False)
    assert (
        f"the model of run is mymodule:make_model, not {said}; give mymodule:make_model as trusted_model (--model)"
        in done.err
    )


def test_a_run_is_exported_with_the_users_word_alone(trained: Terminal, give: Give) -> None:
    export = ("export", "run", "--out", "model.pt2")
    refused = give(*export)
    assert (refused.status, refused.imported) == (2, False)
    assert "run says that its network is made by mymodule:make_model" in refused.err
    assert not (trained.folder / "model.pt2").exists()
    done = give(*export, "--model", "mymodule:make_model")
    assert (done.status, done.imported) == (0, True)
    assert "mymodule:make\\_model, an ensemble of 4 members" in (trained.folder / "model.pt2.md").read_text(
        encoding="utf-8"
    )
    assert str(trained.folder).encode() not in (trained.folder / "model.pt2").read_bytes()


def test_training_goes_on_only_with_the_word_too(give: Give) -> None:
    done = give("train", "digits/quickstart", "--out", "run", "--device", "cpu", *SETTINGS[:2])
    assert (done.status, done.imported) == (2, False)
    assert "run holds another run (model: mymodule:make_model → resnet" in done.err
    finished = give(*TRAIN, *SETTINGS)
    assert (finished.status, finished.imported) == (0, True)


def test_views_are_drawn_of_any_model(trained: Terminal, give: Give) -> None:
    adversarial = ("--set", "policy.adversarial.severity=0,0.1,0.2,0.3", "--count", "2")
    done = give("views", "digits/quickstart", "--model", "mymodule:make_model", *adversarial)
    assert done.status == 0, done.err
    assert (trained.folder / "views.png").exists()
