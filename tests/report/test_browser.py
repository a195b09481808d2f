"""The page in headless Chromium. Skipped without playwright or Chromium, unless COUNTERPOINT_BROWSER is "required".

COUNTERPOINT_RUN names a run folder whose report is opened instead of made-up results, and COUNTERPOINT_SCREENSHOTS a
folder in which the screenshots are kept.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from counterpoint.report import load_results, render

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MakeResults = Callable[..., dict[str, Any]]
Open = Callable[..., "Page"]

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
METRICS = ["Error", "ECE", "ECE-rms", "NLL", "Brier", "Over-confidence", "Members disagree"]


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


@pytest.fixture
def report(tmp_path: Path, make_results: MakeResults) -> Path:
    """A page of two runs, one of them without members."""
    run = os.environ.get("COUNTERPOINT_RUN")
    many = load_results(run) if run else make_results("cifar10/am-bern-0.875+adv", members=4, shifted=True)
    file = tmp_path / "report.html"
    file.write_text(render([many, make_results("single", members=1, shifted=True)]), encoding="utf-8")
    return file


@pytest.fixture
def open_page(browser: "Browser", report: Path) -> Iterator[Open]:
    contexts = []

    def open_at(size: str, *, scheme: str = "light", javascript: bool = False) -> "Page":
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=javascript,
        )
        context.set_default_timeout(5_000)
        contexts.append(context)
        page = context.new_page()
        page.goto(report.as_uri())
        return page

    yield open_at
    for context in contexts:
        context.close()


def shown_maps(page: "Page") -> list[str]:
    return [one.get_attribute("id") or "" for one in page.locator(".heat-map").all() if one.is_visible()]


def overflow(page: "Page") -> int:
    """How many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def open_details(page: "Page") -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_loaded_and_nothing_complains(browser: "Browser", report: Path, size: str) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri(), wait_until="networkidle")
    for name in METRICS:
        page.get_by_role("radio", name=name, exact=True).check()
    open_details(page)
    context.close()
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    assert complaints == []


@pytest.mark.parametrize("size", SIZES)
def test_a_click_switches_the_map_without_javascript(open_page: Open, size: str) -> None:
    page = open_page(size)
    assert shown_maps(page) == ["map-error"]
    for name, key in (
        ("Over-confidence", "map-overconfidence"),
        ("ECE-rms", "map-ece-rms-width15"),
        ("NLL", "map-nll"),
    ):
        page.get_by_role("radio", name=name, exact=True).click()
        assert shown_maps(page) == [key]
        assert page.get_by_role("radio", name=name, exact=True).is_checked()


def test_the_switch_works_with_the_keyboard(open_page: Open) -> None:
    page = open_page("desktop")
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.locator(".switch input:focus").count():
            break
    assert page.locator(".switch input:focus").get_attribute("id") == "show-error"
    page.keyboard.press("ArrowRight")
    assert shown_maps(page) == ["map-ece-width15"]
    outline = page.locator(".switch input:focus + span").evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert shown_maps(page) == ["map-disagreement"]


@pytest.mark.parametrize("size", SIZES)
def test_the_page_never_scrolls_sideways(open_page: Open, size: str) -> None:
    page = open_page(size)
    open_details(page)
    for name in METRICS:
        page.get_by_role("radio", name=name, exact=True).check()
        assert overflow(page) <= 0


def test_a_phone_shows_whole_maps(open_page: Open) -> None:
    page = open_page("phone")
    for name in METRICS:
        page.get_by_role("radio", name=name, exact=True).check()
        hidden = "one => one.scrollWidth - one.clientWidth"
        assert [one.evaluate(hidden) for one in page.locator(".heat-map:visible .scroll").all()] in ([0, 0], [0])


def test_screen_readers_get_tables_and_figures_with_names(open_page: Open) -> None:
    page = open_page("desktop")
    table = page.get_by_role("table", name="single: Error, %")
    assert table.get_by_role("columnheader").all_inner_texts() == ["Severity", "1", "2", "3", "4", "5"]
    assert table.get_by_role("rowheader").count() == 16
    assert page.get_by_role("group", name="Metric").get_by_role("radio").count() == len(METRICS)
    assert page.get_by_role("img", name="Accuracy and mean confidence of single against severity").count() == 1


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


@pytest.mark.parametrize(("scheme", "media"), [("light", "screen"), ("dark", "screen"), ("dark", "print")])
def test_every_number_of_a_map_can_be_read(open_page: Open, scheme: str, media: str) -> None:
    page = open_page("desktop", scheme=scheme)
    page.emulate_media(media="print" if media == "print" else "screen")
    cells = pixels(page, ".heat-map td", "color", "backgroundColor")
    assert len(cells) == 13 * 16 * 5
    assert len({tuple(background) for _, background in cells}) > 50
    assert min(contrast(text, background) for text, background in cells) >= 4.5


def test_dark_mode_is_dark(open_page: Open) -> None:
    ((light,),) = pixels(open_page("phone"), "body", "backgroundColor")
    ((dark,),) = pixels(open_page("phone", scheme="dark"), "body", "backgroundColor")
    assert luminance(light) > 0.8
    assert luminance(dark) < 0.05


def test_on_paper_everything_is_there(open_page: Open) -> None:
    page = open_page("desktop")
    page.emulate_media(media="print")
    assert len(shown_maps(page)) == len(METRICS)
    assert not page.locator(".switch").is_visible()
    assert all(table.is_visible() for table in page.locator("details table").all())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_screenshots(open_page: Open, tmp_path: Path, size: str, scheme: str) -> None:
    folder = Path(os.environ.get("COUNTERPOINT_SCREENSHOTS", tmp_path))
    page = open_page(size, scheme=scheme)
    page.screenshot(path=folder / f"report-{size}-{scheme}.png", full_page=True)
    page.get_by_role("radio", name="Over-confidence").click()
    page.locator("section[aria-labelledby=heat-maps]").screenshot(path=folder / f"heat-map-{size}-{scheme}.png")
    assert all((folder / f"{name}-{size}-{scheme}.png").stat().st_size > 10_000 for name in ("report", "heat-map"))
