"""The list of sections: what html.py, page.html and markdown.py rely on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from markupsafe import Markup

from counterpoint import report
from counterpoint.records.files import Evaluated
from counterpoint.report import render, sections, to_markdown
from counterpoint.report.formats.markdown import markdown_page
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.section import Block, Chart, Code, Content, Facts, Panel, Plot, Section
from counterpoint.report.sections import SECTIONS, build_sections
from counterpoint.report.tables import Column, Entry, Row, Table
from tests.report.made import EXTRA, MakeEvaluated

FOLDER = Path(report.__file__).parent
IDS = [section.id for section in SECTIONS]


def page_ids(html: str) -> list[str]:
    return re.findall(r'<h2 id="([\w-]+)"', html)


def contents_ids(html: str) -> list[str]:
    return re.findall(r'<li><a href="#([\w-]+)"', html)


@pytest.fixture
def everything(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    """Two seeds of an experiment with all that is ever known of a run."""
    return [make_evaluated("cifar10/single", seed=seed, shifted=True, more=True, extra=True) for seed in (0, 1)]


def test_every_section_has_an_id_a_title_and_a_template_of_its_own() -> None:
    assert len(set(IDS)) == len(IDS)
    assert len({section.title for section in SECTIONS}) == len(SECTIONS)
    templates = [FOLDER / section.template for section in SECTIONS]
    assert {path.name for path in templates} | {"macros.html"} == {
        path.name for path in (FOLDER / "sections").glob("*.html")
    }


def test_every_module_s_section_is_in_the_list() -> None:
    modules = {path.stem for path in (FOLDER / "sections").glob("*.py")} - {"__init__"}
    listed = {section.build.__module__.rpartition(".")[2] for section in SECTIONS}
    assert listed == modules


def test_a_full_page_has_every_section_in_order(everything: list[Evaluated]) -> None:
    html = render(everything)
    assert page_ids(html) == IDS
    assert contents_ids(html) == IDS


@pytest.mark.parametrize(
    "parts",
    [{}, {"shifted": True}, {"extra": True}, {"more": True}, {"shifted": True, "more": True, "members": 1}],
    ids=str,
)
def test_contents_and_page_agree_and_have_only_what_there_is(
    make_evaluated: MakeEvaluated, parts: dict[str, bool | int]
) -> None:
    run = make_evaluated(**parts)
    built = [section.id for section, _ in build_sections(label_runs([run]))]
    html = render([run])
    assert page_ids(html) == built
    assert contents_ids(html) == built
    has_suite = bool(run.results.suites)
    assert ({"shift", "severities", "heat-maps"} <= set(built)) == has_suite


def test_markdown_has_each_section_that_has_something_to_show(everything: list[Evaluated]) -> None:
    headings = re.findall("^## (.*)$", to_markdown(everything), re.MULTILINE)
    expected = []
    for section, content in build_sections(label_runs(everything)):
        blocks = list(content.blocks())
        assert blocks, section.id
        assert all(block.parts for block in blocks), section.id
        expected += [block.title for block in blocks]
    assert headings == expected


@dataclass(frozen=True)
class Greeting(Content):
    words: tuple[str, ...]
    tables = (Table("Greetings", (Column("Who"), Column("Times", "n")), (Row("a_b", (Entry("2", best=True),)),)),)
    has_members = False

    @property
    def panels(self) -> Sequence[Panel]:
        return (Panel("hello", "Hello"),)

    def blocks(self) -> Sequence[Block]:
        return [Block("Hello", (*self.words, *self.tables, Facts((("who", "<b>"),)), Code("say *hello*\nagain")))]


def greet(runs: Sequence[ReportedRun]) -> Greeting | None:
    return Greeting(tuple(f"Hello, {run.label}." for run in runs)) if len(runs) > 1 else None


def test_a_new_section_needs_its_module_and_a_place_in_the_list(
    make_evaluated: MakeEvaluated, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Section("greeting", "A greeting", greet, "sections/metrics.html")  # a template that shows `tables`
    monkeypatch.setattr(sections, "SECTIONS", (*SECTIONS, new))
    two = [make_evaluated(name, members=1) for name in ("a", "b")]
    html = render(two)
    assert contents_ids(html)[-1] == "greeting"
    assert '<section aria-labelledby="greeting">' in html
    assert '<h2 id="greeting">' in html
    assert "<span>Greetings</span>" in html
    assert "main:not(:has(#show-hello:checked)) #hello { display: none; }" in html
    assert to_markdown(two).endswith(
        "## Hello\n\nHello, a.\n\nHello, b.\n\n**Greetings**\n\n| Who | Times (n) |\n| --- | ---: |\n"
        "| a\\_b | **2** |\n\n- who: &lt;b&gt;\n\n<!-- -->\n\n    say *hello*\n    again\n"
    )
    assert "greeting" not in render(two[:1])
    assert "Hello" not in to_markdown(two[:1])


def test_markdown_shows_the_numbers_of_a_picture_and_nothing_for_a_missing_part() -> None:
    tables = tuple(Table(name, (Column("x"),), ()) for name in "abc")
    chart, plot = Chart(Markup("<svg/>"), "c", tables[0]), Plot(Markup("<svg/>"), Markup(""), "c", tables[1:])
    text = markdown_page("t", [Block("b", (None, chart, "words", None, plot))])
    assert [part for part in text.split("\n\n") if "|" not in part] == [
        "# t",
        "## b",
        "**a**",
        "words",
        "**b**",
        "**c**",
    ]


def test_a_second_suite_is_on_the_page_beside_the_paper_s(make_evaluated: MakeEvaluated) -> None:
    alone, both = (make_evaluated("mine", members=2, shifted=True, extra=extra) for extra in (False, True))
    captions = {
        name: re.findall("<caption id=[^>]*><span>(.*?)</span>", render([run]))
        for name, run in (("one", alone), ("both", both))
    }
    added = [caption for caption in captions["both"] if EXTRA in caption]
    assert [caption for caption in captions["both"] if caption not in added] == captions["one"]
    # Three aggregates; two tables of severities and five of their bins; the nine maps.
    assert len(added) == 3 + 2 + 5 + 9
    assert f"mine on {EXTRA}: Error, %; 40 images per cell" in added
    assert "Speckle noise" in render([both])
    text = to_markdown([both])
    assert f"## Under shift: Corrupted images ({EXTRA})" in text
    made = "regenerated with CIFAR-C's constants, seed 0 (generator 0.1.0), 40 validation"
    assert f"Corrupted set, {EXTRA}: digits-{EXTRA}, {made}" in text


def test_a_run_without_the_paper_s_suite_has_a_good_page(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated("mine", members=2, extra=True, more=True)
    html = render([run])
    assert {"shift", "severities", "heat-maps", "recalibration", "comparison", "collapse"} <= set(page_ids(html))
    assert "-C" not in re.sub("CIFAR-C|“-C”", "", html[html.index("<main>") :])
    assert "Corrupted set</dt><dd>not evaluated" in html
