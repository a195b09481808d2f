"""Headless Chromium. Tests skip without playwright or Chromium, unless COUNTERPOINT_BROWSER is "required".

COUNTERPOINT_SCREENSHOTS names a folder in which screenshots are kept.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


def absent(what: str) -> NoReturn:
    if os.environ.get("COUNTERPOINT_BROWSER") == "required":
        pytest.fail(f"COUNTERPOINT_BROWSER is required, and {what}")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("playwright is not installed")
    if not CHROMIUM.exists():
        absent(f"there is no {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def press_tab_until(page: "Page", focused: str) -> None:
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.locator(focused).count():
            return
    pytest.fail(f"the keyboard does not reach {focused}")


def overflow(page: "Page") -> int:
    """How many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def pixels(page: "Page", selector: str, *properties: str) -> list[list[list[int]]]:
    """Computed colours of each element as red, green and blue, whatever notation the browser gives them in."""
    script = """([selector, properties]) => {
      const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const pixel = colour => {
        pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
      };
      return [...document.querySelectorAll(selector)].map(
        one => properties.map(name => pixel(getComputedStyle(one)[name])));
    }"""
    return page.evaluate(script, [selector, list(properties)])


def luminance(colour: list[int]) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in (c / 255 for c in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: list[int], other: list[int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
