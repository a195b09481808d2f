"""How Sphinx builds the site: `make docs` writes it to build/site, without a network."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from numpy.typing import ArrayLike
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import stringify_annotation

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import counterpoint  # noqa: E402  (its folder is put on the path above)

project = "counterpoint"
author = "the counterpoint authors"
release = counterpoint.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]

# The anchors of headings are GitHub's, so that a link to one works there and on the site.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

html_theme = "furo"
html_title = "counterpoint"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# Most blocks are commands of a shell. What is none of these names its language.
highlight_language = "sh"

# In docstrings, as in Markdown, `x` is code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# A type in a signature may be a library's, whose pages cannot be linked without a network, or a record without a page.
nitpick_ignore_regex = [("py:(class|data|obj)", ".*")]

PAGES_OF = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files at the top of the repository, and the pages that stand for them on the site."""
_LEADS_UP = re.compile(r"\[([^][]+)\]\(((?:\.\./)+[^)#]*)(#[^)]*)?\)")
_IN_ONE_LINE = re.compile(r"\([−+]?[\d.]+ to [−+]?[\d.]+\)|[\d.]+ ± [\d.]+")


def _as_on_the_site(_app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links that leave docs/ to the page that shows the same, and keep intervals and "a ± b" in one line."""
    folder = (ROOT / "docs" / page).parent

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.groups(default="")
        path = (folder / target).resolve()
        if path.is_relative_to(ROOT / "docs"):
            return found[0]
        if shown := PAGES_OF.get(path.relative_to(ROOT).as_posix()):
            return f"[{words}]({'../' * page.count('/')}{shown}{anchor})"
        # Folders and other Markdown files have no page: their name stays, without a link. Any other file can be opened.
        return words if path.is_dir() or path.suffix == ".md" else found[0]

    linked = _LEADS_UP.sub(link, source[0])
    source[0] = _IN_ONE_LINE.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), linked)


def _by_its_public_name(app: Sphinx, environment: BuildEnvironment, node: pending_xref, content: Element) -> Any:
    """Link a class that a signature names by its module to where the reference has it, which is its room."""
    python, target = environment.domains.python_domain, node.get("reftarget", "")
    room, name = target.split(".")[1:2], target.rpartition(".")[2]
    public = ".".join(["counterpoint", *room, name])
    if node.get("refdomain") != "py" or public not in python.objects:
        return None
    return python.resolve_xref(environment, node["refdoc"], app.builder, "obj", public, node, content)


def _in_short(
    _app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """NumPy's types by the names that the code has for them, which stand for half a line each."""
    long = stringify_annotation(ArrayLike, "smart")

    def short(text: str | None) -> str | None:
        return text and re.sub(r"~numpy\.ndarray\[.*?dtype\[(.+?)\]\]", r"NDArray[\1]", text.replace(long, "ArrayLike"))

    return short(signature), short(returned)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-signature", _in_short)
    app.connect("source-read", _as_on_the_site)
    app.connect("missing-reference", _by_its_public_name)
