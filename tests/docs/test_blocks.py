"""Every code block is of a kind that is tested, and every command in one is right.

Commands are read by the real command line here. `test_running.py` runs blocks.
"""

import re
from pathlib import Path

import pytest

from counterpoint.cli.app import app
from tests.docs.pages import BLOCKS, PAGES, Block, name_of
from tests.docs.shell import check, commands_in, find_command
from tests.docs.test_running import RUN_ELSEWHERE

ADVICE = "mend it, or write the line `<!-- not run: REASON -->` directly above the block"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_is_of_a_kind_that_is_tested(block: Block) -> None:
    tested = block.is_shell or block.language in ("python", "text") or block.page in RUN_ELSEWHERE
    assert tested or block.not_run, (
        f"{block.place}: no test runs a block of {block.language}. Use python, sh (or no language) for commands, or "
        f"text for output; {ADVICE}"
    )


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.is_shell], ids=lambda block: block.place)
def test_the_commands_are_right(block: Block) -> None:
    wrong = {}
    for words in commands_in(block.code):
        try:
            check(words)
        except Exception as error:
            wrong[" ".join(words)] = f"{type(error).__name__}: {error}"
    assert not wrong, f"{block.place}: {wrong}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_in_sentences_have_such_options(page: Path) -> None:
    """Sentences shorten commands, so that only their names and options can be checked."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for command in re.findall(r"`counterpoint ([a-z][^`]*)`", text):
        found, rest = find_command(command.split())
        known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        missing = [word for word in rest if word.startswith("--") and word not in known]
        assert not missing, f"{name_of(page)}: `counterpoint {command}` has no {missing}"


def test_every_command_is_named_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    commands = [command.callback.__name__ for command in app.registered_commands if command.callback]
    missing = [name for name in (*commands, "bench step") if f"counterpoint {name}" not in text]
    assert not missing, f"say on some page what these commands are for: {missing}"
