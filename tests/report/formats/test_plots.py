"""The plots in headless Chromium: values at the pointer, keys, touch, and legends that switch all plots."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from counterpoint.report import render
from tests.chromium import SIZES, contrast, overflow, pixels, press_tab_until
from tests.report.made import evaluated

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

HOSTILE = "<img src=x onerror=alert(1)></title><script>alert('x')</script> \" & run"
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ensemble whose name is hostile, and a single network, under shift."""
    file = tmp_path_factory.mktemp("plots") / "report.html"
    runs = [evaluated(HOSTILE, members=3, shifted=True), evaluated("single", members=1, shifted=True)]
    file.write_text(render(runs), encoding="utf-8")
    return file


@pytest.fixture
def open_page(browser: "Browser", report: Path) -> Iterator[Open]:
    """Whatever the page complains of fails the test."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_at(size: str = "desktop", *, scheme: str = "light", touch: bool = False, script: bool = True) -> "Page":
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            has_touch=touch,
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(report.as_uri())
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


def plot(page: "Page", section: str, kind: str) -> "Locator":
    return page.locator(f"section[aria-labelledby={section}] svg.{kind}").first


def scroll_to(element: "Locator") -> None:
    """A scroll hides what was shown, and the page hears of it only with the next frame."""
    element.scroll_into_view_if_needed()
    element.evaluate("async () => { for (const _ of [1, 2]) await new Promise(requestAnimationFrame); }")


def place(svg: "Locator", selector: str, number: int = 0) -> tuple[float, float]:
    """Where a point of a plot is on the screen."""
    scroll_to(svg)
    script = """(svg, [selector, number]) => {
      const {x, y} = svg.querySelectorAll(selector)[number].dataset, at = svg.getScreenCTM();
      return [x * at.a + at.e, y * at.d + at.f];
    }"""
    x, y = svg.evaluate(script, [selector, number])
    return x, y


def said(page: "Page") -> list[str]:
    return page.locator(".tip:visible p").all_text_contents()


def dimmed(page: "Page") -> set[str]:
    """The runs that step back, in plots of more than one section."""
    found = page.locator("svg .dim").all()
    return {one.get_attribute("data-run") or "" for one in found}


def test_a_pointer_shows_the_value_and_the_run_everywhere(open_page: Open) -> None:
    page = open_page()
    svg = plot(page, "severities", "ece-severity")
    x, y = place(svg, "[data-run='1'] .point", 2)
    page.mouse.move(x + 3, y + 3)
    assert said(page)[:2] == ["single", "Severity 3"]
    assert said(page)[2].startswith("ECE ")
    assert dimmed(page) == {"0"}
    assert page.locator("section[aria-labelledby=reliability] svg .dim").count() > 0, "in the other plots too"
    ring = svg.locator(".ring")
    at = svg.locator("[data-run='1'] .point").nth(2).get_attribute("data-x")
    assert float(ring.get_attribute("cx") or "") == float(at or "")
    box = page.locator(".tip").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < y or box["y"] > y, "the point itself stays in view"
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()
    assert dimmed(page) == set()


def test_a_hostile_name_is_only_text_in_a_tip(open_page: Open) -> None:
    page = open_page()
    x, y = place(plot(page, "severities", "ece-severity"), "[data-run='0'] .point", 4)
    page.mouse.move(x, y)
    assert said(page)[0] == HOSTILE
    assert page.locator("img").count() == 0
    assert page.get_by_role("button", name=HOSTILE).count() > 1


def test_keys_move_from_point_to_point_and_are_heard(open_page: Open) -> None:
    page = open_page()
    voice = page.locator("[aria-live=polite]")
    press_tab_until(page, "svg.ece-severity:focus")
    for key, words in (
        ("ArrowRight", f"{HOSTILE}, Severity 1, ECE"),
        ("ArrowRight", f"{HOSTILE}, Severity 2, ECE"),
        ("ArrowDown", "single, Severity 2, ECE"),
        ("End", "single, Severity 5, ECE"),
        ("ArrowRight", "single, Severity 5, ECE"),
        ("ArrowLeft", "single, Severity 4, ECE"),
        ("Home", "single, Severity 1, ECE"),
        ("ArrowUp", f"{HOSTILE}, Severity 1, ECE"),
    ):
        page.keyboard.press(key)
        assert (voice.text_content() or "").startswith(words), key
        assert page.locator(".tip").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    assert not page.locator(".tip").is_visible(), "it belongs to the plot in focus"


def test_every_plot_can_be_reached_and_says_how(open_page: Open) -> None:
    page = open_page()
    script = """() => [...document.querySelectorAll('figure > svg')].filter(svg =>
      svg.tabIndex !== 0 || !svg.getAttribute('aria-label') || svg.getAttribute('role') !== 'img'
      || !document.getElementById(svg.getAttribute('aria-describedby'))).length"""
    assert page.locator("figure > svg").count() > 10
    assert page.evaluate(script) == 0


def test_a_legend_switches_a_run_in_all_plots(open_page: Open) -> None:
    page = open_page()
    first, *others = page.get_by_role("button", name="single", exact=True).all()
    assert len(others) > 2
    drawn = page.locator("svg [data-run='1'].series:visible")
    before = drawn.count()
    first.focus()
    page.keyboard.press("Enter")
    assert drawn.count() == 0
    assert {button.get_attribute("aria-pressed") for button in (first, *others)} == {"false"}
    svg = plot(page, "severities", "ece-severity")
    page.mouse.move(*place(svg, "[data-run='1'] .point", 2))
    assert "single" not in said(page)
    others[-1].click()
    assert drawn.count() == before
    assert first.get_attribute("aria-pressed") == "true"


def test_members_begin_switched_off_beside_another_run(open_page: Open) -> None:
    page = open_page()
    members = page.locator("svg [data-part=members].series:visible")
    button = page.get_by_role("button", name="each member").first
    assert (members.count(), button.get_attribute("aria-pressed")) == (0, "false")
    button.click()
    assert members.count() == 3 * (2 + 2 + 5), "accuracy and confidence, two diagrams, and one at each severity"
    page.get_by_role("button", name=HOSTILE).first.click()
    assert members.count() == 0, "without their run"
    page.emulate_media(media="print")
    assert members.count() == 3 * (2 + 2 + 5), "on paper everything is there"


def test_a_finger_shows_values_and_a_tap_elsewhere_hides_them(open_page: Open) -> None:
    page = open_page("phone", touch=True)
    svg = plot(page, "severities", "ece-severity")
    page.touchscreen.tap(*place(svg, "[data-run='1'] .point", 1))
    assert said(page)[:2] == ["single", "Severity 2"]
    box = page.locator(".tip").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SIZES["phone"][0]
    assert overflow(page) == 0
    x, y = place(svg, "[data-run='1'] .point", 3)
    moved = {"clientX": x, "clientY": y, "pointerType": "touch", "bubbles": True}
    svg.dispatch_event("pointermove", moved)
    assert said(page)[:2] == ["single", "Severity 4"]
    assert svg.evaluate("svg => getComputedStyle(svg).touchAction") == "pan-y pinch-zoom"
    page.touchscreen.tap(5, 5)
    assert not page.locator(".tip").is_visible()


def test_a_cell_of_a_heat_map_says_what_it_is(open_page: Open) -> None:
    page = open_page()
    table = page.get_by_role("table", name="single: Error, %")
    row = table.get_by_role("row").filter(has_text="Fog")
    cell = row.get_by_role("cell").nth(2)
    scroll_to(cell)
    cell.hover()
    assert said(page) == ["single: Error, %; 40 images per cell", "Fog, severity 3", cell.inner_text()]
    page.mouse.move(2, 2)
    assert not page.locator(".tip").is_visible()


def test_a_finger_keeps_the_words_of_a_cell_until_it_taps_elsewhere(open_page: Open) -> None:
    page = open_page("phone", touch=True)
    cell = page.get_by_role("table", name="single: Error, %").get_by_role("row").nth(3).get_by_role("cell").first
    scroll_to(cell)
    cell.tap()
    assert said(page)[1:] == ["Impulse noise, severity 1", cell.inner_text()]
    page.touchscreen.tap(5, 5)
    assert said(page) == []


def test_the_contents_mark_the_section_in_view(open_page: Open) -> None:
    page = open_page()
    for section in ("severities", "reliability"):
        page.locator(f"nav.contents a[href='#{section}']").click()
        page.locator(f"nav.contents a[href='#{section}'][aria-current]").wait_for(state="attached")
        assert page.locator("nav.contents a[aria-current]").count() == 1


def test_without_script_the_page_is_complete(open_page: Open) -> None:
    page = open_page(script=False)
    assert page.get_by_role("button").count() == 0
    assert page.locator(".legend li[data-run='1']").first.is_visible()
    assert page.locator("svg [data-part=members].series:visible").count() == 3 * (2 + 2 + 5)
    points, titles = (page.locator(f"figure svg .point{more}").count() for more in ("", " > title"))
    assert points == titles > 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tips_and_buttons_can_be_read(open_page: Open, scheme: str) -> None:
    page = open_page(scheme=scheme)
    page.mouse.move(*place(plot(page, "severities", "ece-severity"), "[data-run='1'] .point", 2))
    (tip,) = pixels(page, ".tip", "color", "backgroundColor")
    assert contrast(*tip) >= 4.5
    ((page_colour,),) = pixels(page, "body", "backgroundColor")
    for text, background in pixels(page, ".legend button[aria-pressed=true]", "color", "backgroundColor"):
        assert contrast(text, background) >= 4.5
    for (text,) in pixels(page, ".legend button[aria-pressed=false]", "color"):
        assert contrast(text, page_colour) >= 4.5
    for (line,) in pixels(page, "svg .series.solid[class*=run-] > .line", "stroke"):
        assert contrast(line, page_colour) >= 3
