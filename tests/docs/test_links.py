"""No link on a page leads nowhere, on GitHub. `make docs` finds those that would on the site."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name_of

LINKING = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "results" / "README.md"]


def without_code(page: Path) -> str:
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("](", "] ("), text)


@cache
def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page; a heading that comes again gets a number."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ +(.+)$", without_code(page), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, 0) + 1
    return {name if number == 0 else f"{name}-{number}" for name, count in found.items() for number in range(count)}


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        target, _, anchor = link.partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(link)
    assert not broken, f"{name_of(page)} links to what is not there: {broken}; mend the path, or the words after #"


def test_a_heading_has_the_anchor_that_github_gives_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `name`, and: more\n\n## r and s\n\n## r and s\n\n```\n# no heading\n```\n", encoding="utf-8")
    assert anchors(page) == {"a-name-and-more", "r-and-s", "r-and-s-1"}
