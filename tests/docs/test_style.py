"""The site's style, on a page that is switched like Furo's."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("system", "theme"), [("light", "dark"), ("dark", "light")])
def test_figures_follow_the_switch_of_the_page(
    browser: "Browser",
    system: str,
    theme: str,
    tmp_path: Path,
) -> None:
    style, figure = (DOCS / name for name in ("_static/site.css", "figures/noise-floor.svg"))
    words = f'<link rel="stylesheet" href="{style.as_uri()}"><body data-theme="{{}}"><img src="{figure.as_uri()}">'
    shots = []
    for name in (theme, system, "auto"):
        (tmp_path / f"{name}.html").write_text(words.format(name))
        page = browser.new_page(color_scheme=system)  # type: ignore[arg-type]
        page.goto((tmp_path / f"{name}.html").as_uri())
        shots.append(page.locator("img").screenshot())
        page.close()
    switched, as_the_system, left_alone = shots
    assert as_the_system == left_alone
    assert switched != left_alone
