"""How Sphinx builds the site: `make docs` writes it to build/site, without a network."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

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
# The libraries' own pages are not linked, because the site is built without a network; our own names must be found.
nitpick_ignore_regex = [(r"py:.*", r"(?!counterpoint\b).*")]
# A page may go from its title to a small heading.
suppress_warnings = ["myst.header"]

PAGES_OF = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files at the top of the repository, and the pages that stand for them on the site."""


def _as_on_the_site(_app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links that leave docs/ to the page that shows the same. What has no page keeps its name, without a link."""
    up = "../" * page.count("/")
    for file, shown in PAGES_OF.items():
        source[0] = source[0].replace(f"]({up}../{file}", f"]({up}{shown}")
    source[0] = re.sub(
        r"\[([^][]+)\]\(((?:\.\./)+[^)#]*)\)", lambda link: _file_or_name(page, *link.groups()), source[0]
    )


def _file_or_name(page: str, words: str, target: str) -> str:
    has_no_page = (ROOT / "docs" / page).parent.joinpath(target).is_dir() or target.endswith(".md")
    return words if has_no_page else f"[{words}]({target})"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _as_on_the_site)
