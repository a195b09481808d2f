import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from counterpoint.report.bins import wilson_interval
from counterpoint.runs.folder import Run
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.facts import BINS, Diagram, Facts, facts_as_json, facts_in_words, find_facts
from counterpoint.serving.web.page import render, script, style


class Elements(HTMLParser):
    """Every element's name and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def count(self, kind: str) -> int:
        return sum(kind in (attributes.get("class") or "").split() for _, attributes in self.found)


@pytest.fixture
def facts(whole_run: Run, whole_predictor: Predictor) -> Facts:
    return find_facts(whole_run, whole_predictor)


def test_facts_are_those_of_the_run(facts: Facts, whole_run: Run) -> None:
    assert (facts.members, facts.size, facts.grey) == (4, 32, True)
    assert facts.classes == tuple("0123456789")
    assert facts_in_words(facts) == "4 members of resnet, 10 classes, images of 32 × 32 pixels in grey"
    about = facts_as_json(facts)
    assert isinstance(facts.diagram, Diagram)
    assert [row["count"] for row in about["reliability"]["bins"]] == [row.count for row in facts.diagram.bins]
    assert about["no_reliability"] is None
    assert about["sure_from"] == facts.sure_from
    assert str(whole_run.folder) not in str(about) + render(facts)


def test_a_threshold_is_not_rounded(facts: Facts) -> None:
    """Beyond 0.99 they lie close together. As 100 %, none of them could have a prediction that is sure."""
    assert "Not sure below a confidence of 0.9999999.</p>" in render(replace(facts, sure_from=0.9999999))


def test_nothing_is_inline_and_nothing_comes_from_elsewhere(facts: Facts) -> None:
    page = render(facts)
    for tag, attributes in Elements(page).found:
        assert not {name for name in attributes if name.startswith("on") or name == "style"}, tag
        for name in ("src", "href"):
            assert attributes.get(name) in (None, "data:,", "page.css", "page.js")
    assert "<style" not in page
    assert "http" not in script() + style()


def test_there_is_a_bar_for_each_member_and_a_place_for_each_bin(facts: Facts) -> None:
    elements = Elements(render(facts))
    assert (elements.count("vote"), elements.count("whole-vote"), elements.count("mark")) == (4, 1, 1)
    assert elements.count("place") == BINS
    sentences = re.findall(r"<li>(.*) had a confidence from ([0-9.]+) to ([0-9.]+)\s%(.*)</li>", render(facts))
    assert [float(high) for _, _, high, _ in sentences] == [round(100 * (i + 1) / BINS, 1) for i in range(BINS)]
    assert isinstance(facts.diagram, Diagram)
    empty = f"None of the {facts.diagram.images.images} images"
    filled = [(counted, right) for counted, _, _, right in sentences if counted != empty]
    for row, (counted, right) in zip(facts.diagram.bins, filled, strict=True):
        assert counted == f"{row.count} image{'s' * (row.count > 1)}"
        low, high = (round(100 * end) for end in wilson_interval(row.accuracy, row.count))
        share = f"{100 * row.accuracy:.2f}\N{NO-BREAK SPACE}%"
        assert right == f": {share} of the predictions were right (interval {low} to {high})."


def test_one_network_has_one_bar(facts: Facts) -> None:
    page = render(replace(facts, members=1, sure_from=None, recalibration="none"))
    elements = Elements(page)
    assert (elements.count("vote"), elements.count("whole-vote"), elements.count("mark")) == (0, 1, 0)
    assert "What the network says" in page
    assert "The network’s own confidence." in page


def test_without_a_diagram_the_page_says_why(facts: Facts) -> None:
    page = render(replace(facts, diagram="There is no results.json; counterpoint evaluate RUN makes it."))
    assert "There is no reliability diagram to look it up in. There is no results.json; counterpoint" in page
    assert "<svg" not in page


def test_a_corrupted_picture_is_warned_of_beside_the_prediction(facts: Facts) -> None:
    def warning(page: str) -> str:
        found = re.search(
            '<section[^>]*id="result">.*?<p class="warning" id="shifted" hidden>(.*?)</p>', page, re.DOTALL
        )
        return found[1].removeprefix("This picture is corrupted. ") if found else ""

    bare = replace(facts, diagram="There is none.")
    assert warning(render(facts)) == ("The threshold and the diagram are for clean images. They promise nothing here.")
    assert warning(render(bare)) == "The threshold is for clean images. It promises nothing here."
    assert (
        warning(render(replace(facts, sure_from=None))) == "The diagram is for clean images. It promises nothing here."
    )
    assert not warning(render(replace(bare, sure_from=None)))


def test_members_that_are_not_recalibrated_are_said_to_be_so(facts: Facts) -> None:
    words = "the members’ bars are without it"
    assert (words in render(replace(facts, members_recalibrated=False))) > (
        words in render(replace(facts, members_recalibrated=True))
    )


def test_names_are_text(facts: Facts) -> None:
    page = render(replace(facts, experiment="<script>alert(1)</script>", model="a&b"))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "a&amp;b" in page
