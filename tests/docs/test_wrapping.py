"""Paragraphs stay paragraphs: no wrapped line begins with what Markdown takes for a list, a heading or a quotation."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, name_of

MARK = re.compile(r" {0,3}(1[.)]|[-+*]|#{1,6}|>) ")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def cut_paragraphs(text: str) -> Iterator[str]:
    """Lines that cut a paragraph in two. A list may follow the end of a sentence."""
    for block in FENCED.sub("", text).split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines and not MARK.match(lines[0]):
            yield from (now for before, now in pairwise(lines) if cuts(before, now))


def cuts(before: str, now: str) -> bool:
    may_precede = bool(MARK.match(before)) or before.startswith(" ") or before.endswith((".", ":"))
    return bool(MARK.match(now)) and not may_precede


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_wrapped_line_cuts_a_paragraph(page: Path) -> None:
    assert not list(cut_paragraphs(page.read_text(encoding="utf-8")))


def test_a_cut_paragraph_is_found() -> None:
    cut = "any number from 0 to\n1. With Bernoulli mixing\n\nThese two:\n- one\n  more\n- two\n\n```\n1\n- 2\n```\n"
    assert list(cut_paragraphs(cut)) == ["1. With Bernoulli mixing"]
