"""The page in headless Chromium, by mouse, keyboard and touch."""

import base64
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from counterpoint.runs.folder import Run
from counterpoint.serving.correction import find_correction
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.address import Address
from counterpoint.serving.web.asking import Asked, shown
from counterpoint.serving.web.limits import MOST_BYTES
from tests.chromium import SIZES, contrast, luminance, overflow, pixels, press_tab_until
from tests.serving.web.conftest import picture, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: "Browser", whole_server: Address) -> Iterator[Open]:
    contexts, complaints = [], []

    def open_at(size: str = "desktop", *, scheme: str = "light", touch: bool = False, url: str = "") -> "Page":
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            has_touch=touch,
        )
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        # Asked for only when a test waits for it, a chooser may open before Chromium knows that somebody wants to hear.
        page.on("filechooser", lambda _: None)
        page.goto(url or whole_server.url)
        return page

    yield open_at
    for context in contexts:
        context.close()
    # Chromium itself notes each answer that is an error.
    assert [words for words in complaints if not words.startswith("Failed to load resource")] == []


@pytest.fixture(scope="module")
def file(pictures: list[Path]) -> Path:
    return pictures[0]


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}\N{NO-BREAK SPACE}%"


def wait_until_said(page: "Page", prediction: dict[str, Any]) -> None:
    words = re.compile(re.escape(f"{prediction['class']}, {percent(prediction['confidence'])}."))
    page.locator("#said").filter(has_text=words).wait_for()


def assert_shown(page: "Page", answer: dict[str, Any]) -> None:
    """The page says what the server does."""
    prediction = answer["prediction"]
    wait_until_said(page, prediction)
    rows = page.locator("#votes li")
    opinions = [prediction, *prediction["members"]]
    assert rows.locator(".class").all_inner_texts() == [opinion["class"] for opinion in opinions]
    assert rows.locator(".number").all_inner_texts() == [percent(opinion["confidence"]) for opinion in opinions]
    for row, opinion in zip(rows.all(), opinions, strict=True):
        width = row.locator(".fill").evaluate("one => one.style.width")
        assert float(width.removesuffix("%")) == pytest.approx(100 * opinion["confidence"], abs=0.01)
        assert ("other" in str(row.get_attribute("class"))) == (opinion["class"] != prediction["class"])
    assert page.locator("#said").inner_text().endswith("not sure") == (not prediction["sure"])
    assert page.locator("#seen").get_attribute("src") == answer["picture"]
    marked = page.locator(".place").evaluate_all("places => places.map(one => one.classList.contains('here'))")
    assert [number for number, is_marked in enumerate(marked) if is_marked] == [answer["bin"]]
    assert "a confidence from" in page.locator("#bin").inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_a_chosen_picture_is_predicted_and_the_slider_moves_it(
    open_page: Open, size: str, file: Path, whole_predictor: Predictor
) -> None:
    page = open_page(size)
    with page.expect_file_chooser() as chooser:
        page.locator("#drop").click()
    chooser.value.set_files(file)
    content = file.read_bytes()
    assert_shown(page, shown(whole_predictor, content, Asked()))
    assert page.locator("#file-name").inner_text() == file.name
    assert page.locator("#shifted").is_hidden()
    page.get_by_label("Corruption").select_option("contrast")
    page.locator("#severity").fill("4")
    assert_shown(page, shown(whole_predictor, content, Asked(None, "contrast", 4)))
    assert page.locator("#severity-value").inner_text() == "4 of 5: contrast"
    assert page.locator("#shifted").is_visible()
    alternative = "The picture as the network sees it, contrast at severity 4"
    assert page.get_by_role("img", name=alternative).is_visible()


def test_the_keyboard_reaches_and_moves_everything(open_page: Open, file: Path, whole_predictor: Predictor) -> None:
    page = open_page()
    press_tab_until(page, "#file:focus")
    assert page.locator("#drop").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(file)
    wait_until_said(page, shown(whole_predictor, file.read_bytes(), Asked())["prediction"])
    press_tab_until(page, "#corruption:focus")
    page.keyboard.type("sn")  # snow
    press_tab_until(page, "#severity:focus")
    assert page.locator("#severity").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    for level in (1, 2, 3):
        page.keyboard.press("ArrowRight")
        assert page.locator("#severity").get_attribute("aria-valuetext") == f"{level} of 5: snow"
        assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked(None, "snow", level)))
    page.keyboard.press("Home")
    assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked()))


def test_a_finger_is_enough(open_page: Open, file: Path, whole_predictor: Predictor) -> None:
    page = open_page("phone", touch=True)
    with page.expect_file_chooser() as chooser:
        page.locator("#drop").tap()
    chooser.value.set_files(file)
    wait_until_said(page, shown(whole_predictor, file.read_bytes(), Asked())["prediction"])
    box = page.locator("#severity").bounding_box()
    assert box is not None
    assert box["height"] >= 24, "less is hard to hit"
    page.touchscreen.tap(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked(None, "fog", 5)))


TRANSFER = """([encoded, name, type, event]) => {
  const bytes = Uint8Array.from(atob(encoded), one => one.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], name, {type: 'image/png'}));
  const kind = type === 'paste' ? ClipboardEvent : DragEvent;
  const key = type === 'paste' ? 'clipboardData' : 'dataTransfer';
  document.body.dispatchEvent(new kind(type, {bubbles: true, cancelable: true, [key]: data}));
}"""


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_pictures_can_be_dropped_and_pasted(open_page: Open, file: Path, whole_predictor: Predictor, way: str) -> None:
    page = open_page()
    encoded = base64.b64encode(file.read_bytes()).decode()
    page.evaluate(TRANSFER, [encoded, "dropped.png", "dragover" if way == "drop" else way])
    page.evaluate(TRANSFER, [encoded, "dropped.png", way])
    assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked()))
    assert page.locator("#file-name").inner_text() == "dropped.png"


def test_a_quick_hand_gets_the_newest_answer(open_page: Open, file: Path, whole_predictor: Predictor) -> None:
    page = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_input_files("#file", file)
    for level in (1, 2, 3, 4, 5, 4, 3, 2, 1, 2) * 5:
        page.evaluate(
            "level => { const one = document.getElementById('severity'); one.value = level;"
            " one.dispatchEvent(new Event('input')); }",
            level,
        )
    assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked(None, "fog", 2)))
    assert len(asked) < 50, "what is out of date is not asked"


@pytest.mark.parametrize("size", SIZES)
def test_wrong_files_are_told_and_the_old_answer_goes(
    open_page: Open, size: str, file: Path, tmp_path: Path, whole_predictor: Predictor
) -> None:
    page = open_page(size)
    page.set_input_files("#file", file)
    wait_until_said(page, shown(whole_predictor, file.read_bytes(), Asked())["prediction"])
    wrong, huge = tmp_path / "notes.txt", tmp_path / "huge.png"
    wrong.write_text("no picture")
    huge.touch()
    os.truncate(huge, MOST_BYTES + 1)
    for path, words in ((wrong, "This file is no picture of a known format"), (huge, "larger than 32 MiB")):
        page.set_input_files("#file", path)
        page.get_by_role("alert").filter(has_text=words).wait_for()
        assert page.locator("#said").inner_text() == "No prediction."
        assert page.locator("#seen").is_hidden()
        assert page.locator(".place.here").count() == 0
        assert set(page.locator("#votes .number").all_inner_texts()) == {"–"}
        assert overflow(page) <= 0
    page.set_input_files("#file", file)
    assert_shown(page, shown(whole_predictor, file.read_bytes(), Asked()))
    assert page.get_by_role("alert").is_hidden()


def test_a_server_that_is_gone_is_told(open_page: Open, file: Path, whole_predictor: Predictor, whole_run: Run) -> None:
    with serving(whole_predictor, whole_run) as address:
        page = open_page(url=address.url)
    page.route("**/look*", lambda route: route.abort())
    page.set_input_files("#file", file)
    page.get_by_role("alert").filter(has_text="The server does not answer").wait_for()
    page.unroute_all()


def test_a_bare_run_has_no_diagram_and_never_speaks_of_being_sure(open_page: Open, bare_run: Run, file: Path) -> None:
    predictor = Predictor(bare_run, find_correction(bare_run.folder), device="cpu")
    with serving(predictor, bare_run) as address:
        page = open_page(url=address.url)
        assert "There is no results.json" in page.locator("#no-diagram").inner_text()
        page.set_input_files("#file", file)
        wait_until_said(page, shown(predictor, file.read_bytes(), Asked())["prediction"])
        assert "sure" not in page.locator("#said").inner_text()


def test_not_sure_is_said_below_the_threshold(open_page: Open, whole_predictor: Predictor, tmp_path: Path) -> None:
    page = open_page()
    by_sure = {}
    for seed in range(40):
        content = picture(32, seed=seed)
        answer = shown(whole_predictor, content, Asked())
        by_sure[answer["prediction"]["sure"]] = (content, answer)
    assert set(by_sure) == {True, False}
    for sure, (content, answer) in by_sure.items():
        (tmp_path / f"{sure}.png").write_bytes(content)
        page.set_input_files("#file", tmp_path / f"{sure}.png")
        assert_shown(page, answer)
        assert page.locator(".not-sure").count() == (not sure)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_screenshots(open_page: Open, tmp_path: Path, size: str, scheme: str, file: Path) -> None:
    folder = Path(os.environ.get("COUNTERPOINT_SCREENSHOTS", tmp_path))
    page = open_page(size, scheme=scheme)
    page.set_input_files("#file", file)
    page.locator("#severity").fill("3")
    page.get_by_role("img", name="fog at severity 3").wait_for()
    page.screenshot(path=folder / f"serve-{size}-{scheme}.png", full_page=True)
    assert (folder / f"serve-{size}-{scheme}.png").stat().st_size > 10_000
    assert overflow(page) <= 0
    ((background,),) = pixels(page, "body", "backgroundColor")
    assert luminance(background) < 0.05 if scheme == "dark" else luminance(background) > 0.8
    ((card,), *_) = pixels(page, ".card", "backgroundColor")
    for (colour,) in pixels(page, ".who, .class, .number, #said, .sure, .not-sure, .beside, .drop strong", "color"):
        assert contrast(colour, card) >= 4.5


def test_on_a_phone_the_slider_and_the_ensembles_bar_are_in_view_together(open_page: Open, file: Path) -> None:
    page = open_page("phone")
    page.set_input_files("#file", file)
    page.locator("#seen").wait_for()
    slider, bar = page.locator("#severity").bounding_box(), page.locator(".whole-vote .bar").bounding_box()
    assert slider is not None
    assert bar is not None
    assert bar["y"] + bar["height"] - slider["y"] < SIZES["phone"][1]
