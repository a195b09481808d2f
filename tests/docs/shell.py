"""The lines of a shell block, checked without running them: by the real command line, the Makefile and the scripts."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from counterpoint.cli.app import app
from counterpoint.config import override
from counterpoint.evaluation.suites import SUITES
from counterpoint.experiments import find_experiment, select_experiments
from counterpoint.experiments.own import own_experiment
from tests.docs.pages import ROOT

COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
SCRIPTS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "benchmarks").rglob("*.py")))
OF_THE_SYSTEM = {"cd", "curl", "git", "export", "ls", "mkdir", "open", "source"}
"""Programs of other people, whose options are theirs."""


def commands_in(code: str) -> Iterator[list[str]]:
    """Each command of a shell block as words, without comments; a backslash at a line's end joins it to the next."""
    for line in code.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def check(words: list[str]) -> None:
    """Raise where a command could not run as it stands, with the reason."""
    program, *rest = words
    if program == "counterpoint":
        check_counterpoint(rest)
    elif program in ("torchrun", "python") and "-m" in rest:
        module, *arguments = rest[rest.index("-m") + 1 :]
        assert module == "counterpoint", f"-m {module}: only -m counterpoint is known here"
        check_counterpoint(arguments)
    elif program == "python":
        _check_script(rest)
    elif program == "make":
        assert set(rest) <= set(TARGETS), f"the Makefile has no target {rest}"
    elif program == "pip":
        _check_install(rest)
    else:
        assert program in OF_THE_SYSTEM, f"{program} is not known here; add it to tests/docs/shell.py"


def check_counterpoint(arguments: list[str]) -> dict[str, Any]:
    """Parse a command as the program does, check the names in it, and return its parameters."""
    assert "…" not in "".join(arguments), "write the whole command: a reader copies it"
    command, rest = find_command(arguments)
    parameters: dict[str, Any] = command.make_context(command.name, rest).params
    _check_names(parameters)
    return parameters


def find_command(arguments: list[str]) -> tuple[Any, list[str]]:
    """The command that is named, also inside a group, and what follows it."""
    commands, rest = COMMANDS, list(arguments)
    while rest and rest[0] in commands:
        command = commands[rest.pop(0)]
        if not hasattr(command, "commands"):
            return command, rest
        commands = command.commands
    raise AssertionError(f"there is no command {' '.join(rest[:1]) or 'without a name'!r}; there are {list(commands)}")


def _check_names(parameters: dict[str, Any]) -> None:
    """Experiments, settings and sets of images must be there."""
    model = parameters.get("model")
    settings = [
        *(parameters.get("set_") or ()),
        *(parameters.get("vary") or ()),
        *([f"model={model}"] if model else ()),
    ]
    one = parameters.get("experiment")
    names = [*(parameters.get("experiments") or ()), *([one] if one else ())]
    experiments = [find_experiment(name) for name in names]
    for words in parameters.get("rows") or ():
        select_experiments(words.split())
    if parameters.get("images") and "set_" in parameters:
        own_experiment("mine", experiments[0] if experiments else None, settings)
    else:
        for experiment in experiments:
            override(experiment, settings)
    for name in (parameters.get("sets") or "").split(","):
        assert name in ("", *SUITES), f"--sets {name}: there are {list(SUITES)}"


def _check_script(rest: list[str]) -> None:
    script, *options = rest
    assert (ROOT / script).is_file(), f"there is no {script}"
    text = SCRIPTS + (ROOT / script).read_text(encoding="utf-8")
    missing = [option for option in options if option.startswith("--") and f'"{option}"' not in text]
    assert not missing, f"{script} takes no {missing}"


def _check_install(rest: list[str]) -> None:
    wanted = {
        extra for extras in re.findall(r"counterpoint\[([\w,]+)\]", " ".join(rest)) for extra in extras.split(",")
    }
    assert wanted <= set(EXTRAS), f"pyproject.toml has no extra {wanted - set(EXTRAS)}"
