"""The blocks of a page run one after another, in an empty folder, as a reader would run them.

Python is run on every page. Commands are run on the pages that go from nothing to a result. A block that cannot be run
says why in a comment above it, `<!-- not run: REASON -->`.
"""

import sys
from pathlib import Path

import pytest

from counterpoint.cli import main
from tests.docs.pages import BLOCKS, ROOT, Block
from tests.docs.shell import commands_in

EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.py"))]
"""Whole scripts, which tests/test_examples.py runs."""
RUN_ELSEWHERE = {
    "CONTRIBUTING.md": "tests/test_contributing.py",
    "docs/export.md": "tests/export/test_docs.py",
}
"""Pages whose Python needs more than an empty folder, and the test that has it."""
WITH_COMMANDS = {"docs/images.md", "docs/predictions.md", "docs/tutorial.md"}
"""The pages whose commands are run too."""
QUICKER = {
    "docs/images.md": {
        "load_digits()\n": "load_digits(n_class=4)\n",
        "epochs=10": "epochs=1",
        "width=16": "width=4",
        "--cell-images 50": "--cell-images 5",
        "--error 2%": "--error 95%",
    },
    "docs/loop.md": {"range(8)": "range(1)"},
    "docs/tutorial.md": {
        "make demo\n": "",  # tests/cli/demo runs it
        "epochs=5": "epochs=1 --set train_on=split --set width=4",
        "--cell-images 50": "--sets ''",
    },
}
"""What is changed in a page's blocks so that they are quick."""
IN_ORDER = {block.page: [other for other in BLOCKS if other.page == block.page] for block in BLOCKS}


def is_run(block: Block) -> bool:
    if block.not_run or block.code in EXAMPLES or block.page in RUN_ELSEWHERE:
        return False
    return block.language == "python" or (block.is_shell and block.page in WITH_COMMANDS)


def quicker(block: Block) -> str:
    code = block.code
    for slow, quick in QUICKER.get(block.page, {}).items():
        code = code.replace(slow, quick)
    return code


def test_what_is_made_quicker_is_there() -> None:
    for page, changes in QUICKER.items():
        code = "".join(block.code for block in IN_ORDER[page] if is_run(block))
        gone = [slow for slow in changes if slow not in code]
        assert not gone, f"{page} has no {gone} any more; say in tests/docs/test_running.py what makes it quick now"


@pytest.mark.filterwarnings("ignore:.*non-writable")
@pytest.mark.parametrize("page", [page for page, blocks in IN_ORDER.items() if any(map(is_run, blocks))])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    names: dict[str, object] = {}
    for block in filter(is_run, IN_ORDER[page]):
        if block.language == "python":
            # Blank lines before it make an error's line that of the page.
            exec(compile("\n" * block.line + quicker(block), page, "exec"), names)
        else:
            for words in commands_in(quicker(block)):
                run_command(words, block.place, monkeypatch)


def run_command(words: list[str], place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words[0] == "counterpoint", f"{place}: {words[0]} cannot be run here; give it a block of its own"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, f"{place}: `{' '.join(words)}` ended with status {ended.value.code}"
