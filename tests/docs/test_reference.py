"""The reference has every public name, and each function and class in it has an example that runs."""

import doctest
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import counterpoint

ROOT = Path(__file__).parents[2]
PAGES = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "reference").glob("*.md")))
SHOWN = re.findall(r"^\.\. auto(?:function|class):: counterpoint\.(\S+)$", PAGES, re.MULTILINE)
CONSTANTS = re.findall(r"^\.\. py:data:: counterpoint\.(\S+)$", PAGES, re.MULTILINE)
ROOMS = [path.parent.name for path in sorted((ROOT / "src" / "counterpoint").glob("*/__init__.py"))]
WITHOUT_A_PAGE = {"cli"}
"""The command line is explained by its own help."""


def named(name: str) -> Any:
    """What a dotted name below counterpoint leads to."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(f"counterpoint.{module}"), last)


def public_names() -> list[str]:
    """The names that are public in a room, each with its room."""
    of_rooms = [
        f"{room}.{name}"
        for room in ROOMS
        if room not in WITHOUT_A_PAGE
        for name in getattr(import_module(f"counterpoint.{room}"), "__all__", ())
    ]
    return of_rooms + [f"{counterpoint._ROOM_OF[name]}.{name}" for name in counterpoint.__all__]


def test_the_reference_has_every_public_name() -> None:
    shown = [id(named(name)) for name in SHOWN]
    missing = [name for name in public_names() if id(named(name)) not in shown and name not in CONSTANTS]
    assert not missing, f"add these to a page in docs/reference, as the others are: {sorted(set(missing))}"


def test_the_reference_names_nothing_twice() -> None:
    names = SHOWN + CONSTANTS
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_there(name: str) -> None:
    assert named(name) is not None


@pytest.mark.filterwarnings("ignore:.*non-writable")
@pytest.mark.parametrize("name", SHOWN)
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    example = doctest.DocTestParser().get_doctest(named(name).__doc__ or "", {}, name, None, None)
    assert example.examples, f"the docstring of counterpoint.{name} needs an example: lines that begin with >>>"
    said: list[str] = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert not said, "".join(said)
