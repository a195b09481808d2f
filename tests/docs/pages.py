"""The pages that a user reads, and the code blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")


class Block(NamedTuple):
    """A fenced block of code: where it is, its language, its lines, and why it is not run, if it says so."""

    page: str
    line: int
    language: str
    code: str
    not_run: str | None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language in ("", "sh")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, without MyST's directives, which are no code."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, start = [], None
    for number, line in enumerate(lines):
        if start is None and (opened := re.match(r"^( *)```(\S*)", line)):
            start, indent, language = number, len(opened[1]), opened[2]
        elif start is not None and line.strip() == "```":
            before = NOT_RUN.match(lines[start - 1].strip()) if start else None
            code = "".join(f"{inside[indent:]}\n" for inside in lines[start + 1 : number])
            found.append(Block(name_of(page), start + 1, language, code, before and before[1]))
            start = None
    assert start is None, f"{name_of(page)}: a code block is opened and never closed"
    return [block for block in found if not block.language.startswith("{")]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
