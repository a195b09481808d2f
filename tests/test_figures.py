"""`make figures`: the parts that draw, and the committed pictures."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from figures.averaged import agreements
from figures.axes import Axes
from figures.drawn import batch_ensemble, stochastic_depth
from figures.noise import perfect_eces
from figures.screens import disagreed_on
from figures.sheets import MOST_BYTES
from figures.sources import Shifted, Sources
from figures.svg import MOST_BYTES as MOST_SVG_BYTES
from figures.svg import Drawing
from make_figures import DRAWINGS, PICTURES, make

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOWHERE = Sources(Path("no demo"), Path("no results"))
TWO_MEMBERS = Shifted(
    np.array([[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [[0.7, 0.3], [0.3, 0.7], [0.2, 0.8]]]), np.array([0, 0, 1])
)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "figures").iterdir()), ids=lambda path: path.name)
def test_a_committed_picture_is_small_and_has_a_command(path: Path) -> None:
    assert path.stat().st_size <= (MOST_SVG_BYTES if path.suffix == ".svg" else MOST_BYTES)
    assert path.stem.removesuffix("-dark") in {**DRAWINGS, **PICTURES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_of_a_page_are_there(page: Path) -> None:
    shown = re.findall(r"!\[[^\]]*\]\(([^):]+)\)|(?:src|srcset)=\"([^\":]+)\"", page.read_text(encoding="utf-8"))
    missing = [name for found in shown if not (page.parent / (name := "".join(found))).exists()]
    assert not missing


@pytest.mark.parametrize("draw", [batch_ensemble, stochastic_depth])
def test_a_drawing_is_whole_and_follows_the_colour_scheme(draw: Callable[[Sources], Drawing], tmp_path: Path) -> None:
    drawn = draw(NOWHERE)
    drawn.write(tmp_path / "drawing.svg")
    root = ElementTree.parse(tmp_path / "drawing.svg").getroot()
    assert root.get("aria-label")
    assert "prefers-color-scheme: dark" in (root[0].text or "")
    assert root[1].get("class") == "page"


@pytest.mark.parametrize("name", ["batch-ensemble", "cifar-members", "ensembles", "seeds"])
def test_a_drawing_of_seeds_or_committed_results_is_the_same_again(name: str, tmp_path: Path) -> None:
    again = make(name, Sources(Path("no demo"), ROOT / "results"), tmp_path)[0]
    assert again.read_bytes() == (ROOT / "docs" / "figures" / f"{name}.svg").read_bytes()


def test_a_drawing_that_is_too_large_is_refused(tmp_path: Path) -> None:
    drawing = Drawing(10, 10, "noise")
    noise = np.random.default_rng(0).integers(0, 256, (160, 160, 3), dtype=np.uint8)
    drawing.tile(noise, 0, 0, 10)
    with pytest.raises(ValueError, match=r"noise\.svg has .* bytes; a picture of the docs may have 60,000"):
        drawing.write(tmp_path / "noise.svg")


def test_places_on_a_logarithmic_axis() -> None:
    axes = Axes(10, 20, 100, 50, (1, 100), (0, 1), log=True)
    assert axes.place(10, 0.5) == (60, 45)


def test_members_agree_on_one_image_and_disagree_on_two() -> None:
    agree, disagree = agreements(TWO_MEMBERS)
    assert agree.share == pytest.approx(1 / 3)
    assert agree.member == pytest.approx((0.8, 1.0))
    assert agree.average == pytest.approx((0.8, 1.0))
    assert disagree.member == pytest.approx(((0.8 + 0.6 + 0.7 + 0.8) / 4, 0.5))
    assert disagree.average == pytest.approx(((0.55 + 0.6) / 2, 1.0))


def test_the_image_that_one_member_gets_wrong() -> None:
    assert disagreed_on(TWO_MEMBERS) == 1


def test_a_perfect_model_shows_less_ece_on_more_images() -> None:
    draws = np.random.default_rng(0)
    few, many = (perfect_eces(np.array([0.6, 0.9]), images, "width", 20, draws).mean() for images in (50, 5_000))
    assert 0 < many < few / 5
