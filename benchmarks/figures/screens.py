"""Screenshots of the demo's report and of a served run, light and dark, by Chromium."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from counterpoint.report import write_report
from figures.sheets import MOST_BYTES
from figures.sources import Shifted, Sources, corrupted_cell
from figures.svg import check_size

if TYPE_CHECKING:
    from playwright.sync_api import Page

_ARGUMENTS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking".split()
# Corruptions without chance, so that the page shows what the evaluation saw; the stronger severities first.
_CELLS = [(name, severity) for severity in (4, 3, 5) for name in ("defocus_blur", "pixelate", "contrast", "brightness")]
_SCHEMES = ("light", "dark")


class NoBrowserError(Exception):
    """What a screenshot needs and this machine lacks."""


def shoot_report(sources: Sources, out: Path) -> list[Path]:
    """The top of the report of the demo's runs, as it is written now."""
    report = sources.demo / "report.html"
    write_report(sources.runs, report)
    with _pages(1200, 1000) as pages:
        return [_shot(page, report.resolve().as_uri(), out, "report") for page in pages]


def shoot_serve(sources: Sources, out: Path) -> list[Path]:
    """A corrupted digit about which the members disagree, on the page of `counterpoint serve`."""
    chosen = [(cell, disagreed_on(corrupted_cell(sources.ensemble, *cell))) for cell in _CELLS]
    cell, number = next(((cell, number) for cell, number in chosen if number is not None), (_CELLS[0], 0))
    picture = sources.demo / "digit.png"
    Image.fromarray(sources.digits.test.images_NCHW[number, 0].numpy()).save(picture)
    with _served(sources.ensemble.folder) as url, _pages(1280, 900) as pages:
        return [_shot(page, url, out, "serve", picture, cell) for page in pages]


def disagreed_on(shifted: Shifted) -> int | None:
    """The first image that the ensemble gets right and exactly one member gets wrong; None if there is none."""
    wrong_N = (shifted.probs_MNK.argmax(axis=2) != shifted.labels_N).sum(axis=0)
    right_N = shifted.probs_MNK.mean(axis=0).argmax(axis=1) == shifted.labels_N
    found = np.flatnonzero(right_N & (wrong_N == 1))
    return int(found[0]) if len(found) else None


def _shot(
    page: "Page", url: str, out: Path, name: str, picture: Path | None = None, cell: tuple[str, int] = _CELLS[0]
) -> Path:
    page.goto(url)
    if picture:
        page.set_input_files("#file", picture)
        page.get_by_label("Corruption").select_option(cell[0])
        page.locator("#severity").fill(str(cell[1]))
        page.locator("#severity-value").filter(has_text=f"{cell[1]} of 5").wait_for()
        page.wait_for_load_state("networkidle")
    scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? '-dark' : ''")
    path = out / f"{name}{scheme}.png"
    page.screenshot(path=path)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    check_size(path, path.stat().st_size, MOST_BYTES)
    return path


@contextmanager
def _pages(width: int, height: int) -> Iterator[Iterator["Page"]]:
    """A page of each colour scheme."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        raise NoBrowserError("there is no Chromium to take the screenshot with")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("playwright, which drives Chromium, is not installed; pip install playwright") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_ARGUMENTS)
        size = {"width": width, "height": height}
        yield (browser.new_page(viewport=size, color_scheme=scheme) for scheme in _SCHEMES)  # type: ignore[arg-type]
        browser.close()


@contextmanager
def _served(run: Path) -> Iterator[str]:
    """The address of `counterpoint serve` for the run, which ends afterwards."""
    command = [sys.executable, "-m", "counterpoint", "serve", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        said = ""
        assert server.stdout is not None
        for line in server.stdout:
            said += line
            if address := re.search(r"serving at (\S+)", line):
                break
        else:
            raise NoBrowserError(f"`counterpoint serve` ended: {said.strip()}")
        try:
            yield address[1]
        finally:
            server.terminate()
