"""The page in headless Chromium. COUNTERPOINT_RUN names a run folder whose report is opened, not a short run's."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from counterpoint.records.files import Evaluated
from counterpoint.report import load_runs, render
from tests.chromium import SIZES, contrast, luminance, overflow, pixels, press_tab_until
from tests.report import made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]

METRICS = [
    "Error",
    "ECE",
    "ECE-rms",
    "NLL",
    "Brier",
    "Over-confidence",
    "ECE excess",
    "Members disagree",
    "Members’ KL",
]
CALIBRATION = ["ECE, equal-width 15", "ECE-rms, equal-width 15", "ECE, equal-mass 15", "ECE-rms, equal-mass 15"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, real_run: Evaluated) -> Path:
    """A page of two runs: a real ensemble, and a made-up network without members that shares a name with the paper.

    Tests do not change it.
    """
    run = os.environ.get("COUNTERPOINT_RUN")
    many = load_runs([Path(run)])[0] if run else real_run
    file = tmp_path_factory.mktemp("page") / "report.html"
    single = made.evaluated("cifar10/single", members=1, shifted=True, more=True)
    file.write_text(render([many, single]), encoding="utf-8")
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
        context.set_default_timeout(30_000)  # a whole page as a picture takes seconds on a busy machine
        contexts.append(context)
        page = context.new_page()
        page.goto(report.as_uri())
        return page

    yield open_at
    for context in contexts:
        context.close()


def shown_maps(page: "Page") -> list[str]:
    return shown_panels(page, ".panel.heat-map")


def shown_panels(page: "Page", selector: str) -> list[str]:
    return [one.get_attribute("id") or "" for one in page.locator(selector).all() if one.is_visible()]


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
    for name in METRICS + CALIBRATION:
        page.get_by_role("radio", name=name, exact=True).check()
    for link in page.get_by_role("navigation").get_by_role("link").all():
        link.click()
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
    press_tab_until(page, "#show-map-error:focus")
    page.keyboard.press("ArrowRight")
    assert shown_maps(page) == ["map-ece-width15"]
    outline = page.locator(".switch input:focus + span").evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert shown_maps(page) == ["map-pairwise-kl"]


@pytest.mark.parametrize("size", SIZES)
def test_the_calibration_errors_switch_by_themselves(open_page: Open, size: str) -> None:
    page = open_page(size)
    assert shown_panels(page, "#honesty ~ .panel") == ["honest-ece-width15"]
    page.get_by_role("radio", name=CALIBRATION[3], exact=True).click()
    assert shown_panels(page, "#honesty ~ .panel") == ["honest-ece-rms-mass15"]
    assert shown_maps(page) == ["map-error"]
    press_tab_until(page, "#show-map-error:focus")
    page.keyboard.press("ArrowRight")
    assert shown_panels(page, "#honesty ~ .panel") == ["honest-ece-rms-mass15"]


def test_the_contents_lead_to_every_section(open_page: Open) -> None:
    page = open_page("phone")
    headings = page.get_by_role("heading", level=2).all()
    ids = [heading.get_attribute("id") for heading in headings]
    links = page.get_by_role("navigation", name="Contents").get_by_role("link").all()
    assert [str(link.get_attribute("href")).removeprefix("#") for link in links] == ids
    press_tab_until(page, "nav a[href='#collapse']:focus")
    page.keyboard.press("Enter")
    assert page.url.endswith("#collapse")
    top = page.locator("#collapse").bounding_box()
    assert top is not None
    assert -1 <= top["y"] < SIZES["phone"][1]


@pytest.mark.parametrize("size", SIZES)
def test_the_contents_and_the_ece_stay_in_view(open_page: Open, size: str) -> None:
    page = open_page(size)
    page.locator("#headlines-1").scroll_into_view_if_needed()
    nav = page.get_by_role("navigation", name="Contents").bounding_box()
    ece = page.locator("section[aria-labelledby=headlines] th", has_text="ECE").first.bounding_box()
    assert nav is not None
    assert ece is not None
    assert 0 <= nav["y"] < 30
    assert ece["x"] + ece["width"] <= SIZES[size][0]


def test_details_open_with_the_keyboard(open_page: Open) -> None:
    page = open_page("desktop")
    numbers = page.locator("section[aria-labelledby=comparison] details").first
    press_tab_until(page, "section[aria-labelledby=comparison] summary:focus")
    assert not numbers.get_by_role("table").is_visible()
    page.keyboard.press("Enter")
    assert numbers.get_by_role("table").is_visible()


@pytest.mark.parametrize("size", SIZES)
def test_the_page_never_scrolls_sideways(open_page: Open, size: str) -> None:
    page = open_page(size)
    open_details(page)
    for name in METRICS + CALIBRATION:
        page.get_by_role("radio", name=name, exact=True).check()
        assert overflow(page) <= 0


@pytest.mark.parametrize("size", SIZES)
def test_no_word_of_a_chart_is_cut_off(open_page: Open, size: str) -> None:
    """Measured within each drawing; the text of a run's name may be long, and is left out."""
    page = open_page(size)
    page.emulate_media(media="print")
    cut = page.evaluate("""() => [...document.querySelectorAll('svg')].flatMap(svg => {
      const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text:not(.row-label)')].filter(text => {
        const own = text.getBoundingClientRect();
        return Math.min(own.left - box.left, box.right - own.right, own.top - box.top, box.bottom - own.bottom) < -1;
      }).map(text => text.textContent);
    })""")
    assert cut == []


def test_a_phone_shows_whole_maps(open_page: Open) -> None:
    page = open_page("phone")
    page.locator("details.topic").evaluate_all("topics => topics.forEach(topic => { topic.open = true; })")
    for name in METRICS:
        page.get_by_role("radio", name=name, exact=True).check()
        hidden = "one => one.scrollWidth - one.clientWidth"
        assert {one.evaluate(hidden) for one in page.locator(".heat-map:visible .scroll").all()} == {0}


def test_folded_topics_are_whole_on_paper(open_page: Open) -> None:
    page = open_page("desktop")
    topics = page.locator("details.topic")
    heights = "topics => topics.map(topic => topic.getBoundingClientRect().height)"
    folded = topics.evaluate_all(heights)
    assert folded
    assert max(folded) < 60, "the summary alone"
    page.emulate_media(media="print")
    assert min(topics.evaluate_all(heights)) > 100
    page.emulate_media(media="screen")


def test_plots_of_differences_are_below_each_other_on_paper(open_page: Open) -> None:
    page = open_page("desktop")
    lefts = "figures => figures.map(figure => figure.getBoundingClientRect().left)"
    assert len(set(page.locator(".titled figure").evaluate_all(lefts))) > 1
    page.emulate_media(media="print")
    assert len(set(page.locator(".titled figure").evaluate_all(lefts))) == 1, "their tables are whole there, and wide"
    page.emulate_media(media="screen")


def test_screen_readers_get_tables_and_charts_with_names(open_page: Open) -> None:
    page = open_page("desktop")
    page.locator("details.topic").evaluate_all("topics => topics.forEach(topic => { topic.open = true; })")
    table = page.get_by_role("table", name="cifar10/single: Error, %;")
    assert table.get_by_role("columnheader").all_inner_texts() == ["Severity", "1", "2", "3", "4", "5"]
    assert table.get_by_role("rowheader").count() == 16
    kept = page.get_by_role("table", name="cifar10/single: error of what is kept, %; ✗ breaks")
    assert kept.get_by_role("rowheader").count() == 15
    assert kept.get_by_role("cell").filter(has_text="✗").count() > 0
    assert page.get_by_role("group", name="Metric").get_by_role("radio").count() == len(METRICS)
    assert page.get_by_role("group", name="Calibration error").get_by_role("radio").count() == len(CALIBRATION)
    for name in (
        "ECE, equal-width 15, with its noise floor. cifar10/single: observed",
        "Differences on clean images, cifar10/single − digits/single",
        "ECE of cifar10/single with and without recalibration",
        "ECE of cifar10/single against severity",
        "Mean temperature of cifar10/single against severity",
    ):
        assert page.get_by_role("img", name=name).count() == 1
    for name in (
        "Accuracy and mean confidence against severity. cifar10/single: from severity 1",
        "ECE against severity. cifar10/single: severity 1",
        "Error on clean images against the share of images kept, surest first. cifar10/single",
    ):
        assert page.get_by_role("img", name=name).count() == 1


@pytest.mark.parametrize(("scheme", "media"), [("light", "screen"), ("dark", "screen"), ("dark", "print")])
def test_every_number_of_a_map_can_be_read(open_page: Open, scheme: str, media: str) -> None:
    page = open_page("desktop", scheme=scheme)
    page.emulate_media(media="print" if media == "print" else "screen")
    cells = pixels(page, ".heat-map td", "color", "backgroundColor")
    assert len(cells) >= (7 * 2 + 2) * 16 * 5  # of the paper's suite, and more of others
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
    assert len(shown_panels(page, "#honesty ~ .panel")) == len(CALIBRATION)
    assert not any(one.is_visible() for one in page.locator(".switch, nav").all())
    assert all(table.is_visible() for table in page.locator("details table").all())


def test_every_table_fits_on_paper(open_page: Open) -> None:
    page = open_page("desktop")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 less Chromium's margins, at 96 pixels per inch
    page.emulate_media(media="print")
    right = "one => one.getBoundingClientRect().right"
    tables = page.locator("table").all()
    wide = {table.locator("caption").inner_text(): table.evaluate(right) for table in tables}
    assert {caption: edge for caption, edge in wide.items() if edge > 719} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_screenshots(open_page: Open, tmp_path: Path, size: str, scheme: str) -> None:
    folder = Path(os.environ.get("COUNTERPOINT_SCREENSHOTS", tmp_path))
    page = open_page(size, scheme=scheme)
    page.screenshot(path=folder / f"report-{size}-{scheme}.png", full_page=True)
    page.get_by_role("radio", name="Over-confidence").click()
    page.locator("section[aria-labelledby=heat-maps]").screenshot(path=folder / f"heat-map-{size}-{scheme}.png")
    assert all((folder / f"{name}-{size}-{scheme}.png").stat().st_size > 10_000 for name in ("report", "heat-map"))


@pytest.mark.parametrize("size", SIZES)
def test_no_caption_is_a_narrow_column(open_page: Open, size: str) -> None:
    """A caption is as wide as its table, which may have two columns of numbers alone."""
    page = open_page(size)
    open_details(page)
    widths = page.evaluate("[...document.querySelectorAll('caption')].map(one => one.offsetWidth).filter(Boolean)")
    assert len(widths) > 10
    assert min(widths) >= 288


@pytest.mark.parametrize("size", SIZES)
def test_given_predictions_fit_into_the_window(
    browser: "Browser", tmp_path: Path, given_runs: list[Path], size: str
) -> None:
    file = tmp_path / "given.html"
    file.write_text(render(load_runs(given_runs)), encoding="utf-8")
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(file.as_uri())
    assert overflow(page) == 0
    open_details(page)
    assert overflow(page) == 0
    assert page.get_by_text("from the file ensemble.npz").is_visible()
    small = page.locator(".multiples figure").last.bounding_box()
    assert small is not None
    assert small["width"] <= 16 * 16
    context.close()
