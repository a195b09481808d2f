import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from counterpoint.errors import InputError
from counterpoint.records.figures import Figures
from counterpoint.records.files import Evaluated
from counterpoint.report import render, to_csv, to_json, to_markdown, verdict
from counterpoint.report.run import label_runs
from counterpoint.report.sections.metrics import metrics
from tests.report.made import OFFICIAL, MakeEvaluated, changed, changed_all

VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = "</title></script><script>alert('x')</script> \" & {{ 7 * 7 }}"


class Page(HTMLParser):
    """The page's elements in order, and the text inside each kind; fails on a tag that is not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, list[str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        opened, pieces = self.open.pop()
        assert opened == tag
        self.texts.append((tag, " ".join("".join(pieces).split())))

    def handle_data(self, data: str) -> None:
        for _, pieces in self.open:
            pieces.append(data)

    def count(self, tag: str) -> int:
        return len(self.attributes(tag))

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


@pytest.fixture
def page(make_evaluated: MakeEvaluated) -> Page:
    return Page(render([make_evaluated("quickstart", members=4), make_evaluated("single", members=1)]))


def charts(page: Page) -> list[dict[str, str | None]]:
    """The drawings that stand for numbers; the others are marks of a legend, beside their words."""
    assert {(svg.get("role"), svg.get("aria-hidden")) for svg in page.attributes("svg")} <= {
        ("img", None),
        (None, "true"),
    }
    return [svg for svg in page.attributes("svg") if svg.get("role")]


def test_structure(page: Page) -> None:
    assert page.text("h1") == ["quickstart and single"]
    assert page.attributes("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.count("main") == 1
    assert page.count("script") == 1


def test_every_table_has_a_caption_and_scoped_headings(page: Page) -> None:
    # Main figures; all metrics; two of bins per run; one of noise per calibration error; of each run risk–coverage, and
    # its classes.
    assert page.count("table") == 1 + 1 + 2 * 2 + 4 + 2 * 2
    assert page.count("caption") == page.count("table")
    assert all(page.text("caption"))
    assert {heading.get("scope") for heading in page.attributes("th")} == {"col", "row"}


def test_every_chart_has_a_text_alternative_and_a_table(page: Page) -> None:
    assert page.count("figure") == len(charts(page)) == page.count("figcaption") == 2 + 4 + 1
    alternatives = [str(svg["aria-label"]) for svg in charts(page)]
    for start, count in (
        (r"Reliability diagram with equal-(width|mass) bins\. quickstart: Bins .* single: Bins", 2),
        (r"ECE(-rms)?, equal-(width|mass) 15, with its noise floor\. quickstart: observed", 4),
        (r"Error on clean images against the share of images kept, surest first\. quickstart: .*; single:", 1),
    ):
        assert sum(bool(re.match(start, alternative)) for alternative in alternatives) == count


def test_identifiers_are_unique_and_all_references_lead_somewhere(page: Page) -> None:
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    references = {attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes}
    assert references <= set(identifiers)
    assert {str(link["href"]).removeprefix("#") for link in page.attributes("a")} <= set(identifiers)


def test_the_page_loads_nothing(make_evaluated: MakeEvaluated) -> None:
    html = render([make_evaluated()])
    links = [
        value for _, attributes in Page(html).elements for name, value in attributes.items() if name in {"src", "href"}
    ]
    assert links[0] == "data:,"
    assert all(str(link).startswith("#") for link in links[1:])
    assert not re.search(r"https?:|url\(|@import|srcset|<iframe|<object|<embed", html)


def test_only_the_page_s_own_script_may_run(make_evaluated: MakeEvaluated) -> None:
    html = render([make_evaluated()])
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = re.findall('<meta http-equiv="Content-Security-Policy" content="(.*?)">', html)
    expected = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    assert policy == expected
    assert not re.search(r"innerHTML|insertAdjacentHTML|eval\(|localStorage|cookie|fetch\(", script)
    assert not any(name.startswith("on") for _, attributes in Page(html).elements for name in attributes)


def test_figures_on_the_page_are_those_of_the_results(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=4)
    page = Page(render([run]))
    clean = run.results.clean
    whole = clean.ensemble
    assert clean.disagreement is not None
    assert clean.pairwise_kl is not None
    assert whole.aurc is not None
    texts = page.text("td")
    main = [float(text) for text in texts[:2]]
    assert main == [round(100 * whole.error, 2), round(100 * whole.ece_width15, 2)]
    (table,) = metrics(label_runs([run])).tables
    cells = [float(entry.text.replace("−", "-")) for entry in table.rows[0].entries]
    assert cells == pytest.approx(
        [
            100 * whole.error,
            whole.nll,
            whole.brier,
            100 * whole.ece_width15,
            100 * whole.ece_rms_width15,
            100 * whole.ece_mass15,
            100 * whole.ece_rms_mass15,
            100 * whole.mean_confidence,
            100 * (whole.mean_confidence + whole.error - 1),
            100 * whole.aurc,
            100 * clean.disagreement,
            clean.pairwise_kl,
        ],
        abs=0.005001,
    )


def test_the_best_value_is_marked_in_words_too(make_evaluated: MakeEvaluated) -> None:
    page = Page(render([make_evaluated(members=3)]))
    marked = page.text("strong")
    assert len(marked) >= 7
    assert all(re.fullmatch(r"★[\d.]+ best", text) for text in marked)


def test_the_verdict_is_on_the_page_and_comes_first(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=2, shifted=True)
    page = Page(render([run]))
    assert page.text("h2")[0] == "Verdict"
    items = page.text("li")
    first = items.index(" ".join(verdict([run])[0].split()))
    assert items[first : first + len(verdict([run]))] == [" ".join(text.split()) for text in verdict([run])]


def test_what_was_run_and_how_to_do_it_again(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated()
    page = Page(render([run]))
    facts = dict(zip(page.text("dt"), page.text("dd"), strict=True))
    assert facts["Trained"] == "from 2026-11-15 09:00:00 UTC to 2026-11-15 10:00:00 UTC, 1 h 2 min of training, on cpu"
    assert facts["Evaluated"] == "2026-11-15 11:30:00 UTC, in 1.23 s, with float32"
    assert facts["Versions"] == "counterpoint 0.1.0, python 3.11.2, torch 2.13.0+cpu"
    assert facts["Commit"] == "not known"
    config, commands = page.text("code")
    assert commands == f"# quickstart {run.results.trained.command} {run.results.evaluation.command}"
    assert json.loads(config) == run.results.config


def test_hostile_names_are_only_text(make_evaluated: MakeEvaluated) -> None:
    run = changed_all(
        make_evaluated(HOSTILE, extra=True),
        {
            "results.config": {HOSTILE: HOSTILE},
            "results.run.command": HOSTILE,
            "results.run.device": HOSTILE,
            "results.run.versions": {HOSTILE: HOSTILE},
            "results.evaluated_on.dataset": HOSTILE,
        },
    )
    (suite,) = run.results.shifts.values()
    cells = {HOSTILE: suite.cells["spatter"]}
    page = Page(render([changed(run, "results.shifts", {HOSTILE: changed(suite, "cells", cells)})]))
    assert page.count("script") == 1
    assert page.text("h1") == [HOSTILE]
    assert HOSTILE in page.text("h3"), "the suite"
    assert HOSTILE in str(charts(page)[0]["aria-label"])
    assert any(words.startswith(HOSTILE) for words in page.text("title")[1:]), "what a point says"


def test_equal_names_are_told_apart(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("a", seed=0), make_evaluated("a", seed=1), make_evaluated("a", seed=1), make_evaluated("b")]
    page = Page(render(runs))
    assert page.text("h1") == ["4 runs compared"]
    rows = page.text("th")
    first = rows.index("a (seed 0)")
    assert rows[first : first + 4] == ["a (seed 0)", "a (seed 1, run 2)", "a (seed 1, run 3)", "b"]


def test_a_title_can_be_given(make_evaluated: MakeEvaluated) -> None:
    page = Page(render([make_evaluated()], title="The demo"))
    assert page.text("h1") == ["The demo"]
    assert page.text("title")[0] == "The demo · counterpoint"


@pytest.fixture
def shifted_page(make_evaluated: MakeEvaluated) -> Page:
    return Page(
        render([make_evaluated("many", members=4, shifted=True), make_evaluated("one", members=1, shifted=True)])
    )


def test_structure_under_shift(shifted_page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in shifted_page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identifiers = [attributes["id"] for _, attributes in shifted_page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    references = {attributes.get("aria-labelledby") for _, attributes in shifted_page.elements} - {None}
    assert references <= set(identifiers)
    assert shifted_page.count("script") == 1
    # Main figures of two sets; clean and three aggregates; for each run two of bins, one of severities, five of their
    # bins, one of risk and coverage and one of classes; the ECE at each severity; for each calibration error one of
    # noise on clean images and one under shift; the maps, two of them of differences.
    tables = 2 + 1 + 3 + 2 * (2 + 1 + 5 + 1 + 1) + 1 + 4 * 2 + 9 + 7 + 2
    assert shifted_page.count("table") == shifted_page.count("caption") == tables
    # Both runs together: two of bins, two over severities, five of their bins, six of risk and coverage; noise.
    assert len(charts(shifted_page)) == shifted_page.count("figcaption") == 2 + 2 + 5 + 6 + 4
    assert all(svg["aria-label"] for svg in charts(shifted_page))


@pytest.mark.parametrize(("name", "panel", "count"), [("heat-map", "panel heat-map", 9), ("honest", "panel", 4)])
def test_a_switch_has_one_button_per_panel_and_the_first_is_on(
    shifted_page: Page, name: str, panel: str, count: int
) -> None:
    buttons = [button for button in shifted_page.attributes("input") if button["name"] == name]
    assert {button["type"] for button in buttons} == {"radio"}
    assert ["checked" in button for button in buttons] == [True] + (count - 1) * [False]
    panels = [attributes["id"] for _, attributes in shifted_page.elements if attributes.get("class") == panel]
    assert panels == [str(button["id"]).removeprefix("show-") for button in buttons]


def test_the_source_of_the_corrupted_set_is_stated(make_evaluated: MakeEvaluated) -> None:
    official = changed(make_evaluated("theirs", members=1, shifted=True), "results.corrupted.source", OFFICIAL)
    page = Page(render([official, make_evaluated("none", members=1)]))
    assert [text for text in page.text("li") if text.startswith(("theirs:", "none:"))] == [
        "theirs: digits-C, the official files, 40 images per cell",
        "none: not evaluated",
    ]
    assert not any("the regenerated images itself" in text for text in page.text("p"))
    ours = Page(render([make_evaluated("ours", members=1, shifted=True)]))
    words = (
        "All metrics on digits-C, regenerated with CIFAR-C's constants, seed 0 (generator 0.1.0), frost from a made "
        "texture, 40 images per cell: by-corruption"
    )
    assert words in ours.text("caption")
    assert any("made the regenerated images itself" in text for text in ours.text("p"))


@pytest.mark.parametrize(
    ("part", "images", "says"),
    [
        ("test", 40, "Clean is the same 40 images without corruption."),
        ("validation", 120, "There is no clean point: the clean figures are of 120 validation images"),
        ("test", 120, "There is no clean point: the clean figures are of 120 test images"),
    ],
)
def test_whether_there_is_a_clean_point_is_said(
    make_evaluated: MakeEvaluated, part: str, images: int, says: str
) -> None:
    changes = {"results.evaluated_on.part": part, "results.evaluated_on.images": images}
    page = Page(render([changed_all(make_evaluated(members=1, shifted=True), changes)]))
    assert any(says in words for words in page.text("p"))
    assert any(caption.startswith("Clean: ECE") for caption in page.text("figcaption")) == (images == 40)


def test_four_runs_stay_small_and_the_same(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("cifar10/single", members=4, seed=seed, shifted=True, more=True) for seed in range(4)]
    html = render(runs)
    assert len(html.encode()) < 3_000_000
    assert html == render(runs)


def test_no_runs() -> None:
    with pytest.raises(InputError, match="at least one run"):
        render([])


@pytest.fixture
def whole_page(make_evaluated: MakeEvaluated) -> Page:
    """Two seeds of an experiment with all that is ever known of a run."""
    parts = {"shifted": True, "more": True, "extra": True}
    return Page(render([make_evaluated("cifar10/single", seed=seed, **parts) for seed in (0, 1)]))


def test_a_whole_page_is_well_formed(whole_page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in whole_page.elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    everything = [attributes["id"] for _, attributes in whole_page.elements if "id" in attributes]
    assert len(everything) == len(set(everything))
    references = {attributes.get("aria-labelledby") for _, attributes in whole_page.elements} - {None}
    assert references <= set(everything)
    assert whole_page.count("table") == whole_page.count("caption")
    assert all(svg["aria-label"] for svg in charts(whole_page))


def test_intervals_and_spread_over_seeds_are_told_apart(whole_page: Page) -> None:
    captions = [text for text in whole_page.text("caption") if "seeds" in text]
    assert captions
    assert all(text.startswith("Spread over seeds on") for text in captions)
    intervals = [text for text in whole_page.text("th") if text.startswith("Interval")]
    assert {text.removeprefix("Interval ") for text in intervals} == {"95 %", "95 %, over images"}


def bare(run: Evaluated) -> Evaluated:
    """As it was before runs had floors, curves and all that belongs to the whole run."""
    results = run.results
    corrupted = results.corrupted
    assert corrupted is not None
    plain = {
        "honest": None,
        "risk_coverage": None,
        "pairwise_kl": None,
        "ensemble": without_new(results.clean.ensemble),
    }
    clean = changed_all(results.clean, plain | {"members": tuple(map(without_new, results.clean.members))})
    cells = {
        name: tuple(
            changed_all(cell, {"honest": None, "pairwise_kl": None, "ensemble": without_new(cell.ensemble)})
            for cell in row
        )
        for name, row in corrupted.cells.items()
    }
    aggregates = changed_all(
        corrupted.aggregates,
        {
            "pairwise_kl": None,
            "intervals": None,
            "floors_over": "cells",
            "ensemble": {name: without_new(figures) for name, figures in corrupted.aggregates.ensemble.items()},
            "members": tuple(
                {name: without_new(figures) for name, figures in member.items()}
                for member in corrupted.aggregates.members
            ),
        },
    )
    changes = {"clean": clean, "classes": (), "outside": {}, "collapse": None, "health": None}
    shifted = changed_all(corrupted, {"cells": cells, "aggregates": aggregates, "risk_coverage": ()})
    return Evaluated(changed_all(results, changes | {"corrupted": shifted}))


def without_new(figures: Figures) -> Figures:
    floors = [name for name in vars(figures) if name.endswith("_floor")]
    return changed_all(figures, dict.fromkeys([*floors, "aurc"]))


def test_older_results_have_a_page_without_the_new_sections(make_evaluated: MakeEvaluated) -> None:
    old = bare(make_evaluated("old", members=2, shifted=True, more=True))
    page = Page(render([old]))
    identifiers = {str(heading["id"]) for heading in page.attributes("h2")}
    assert identifiers == {
        "verdict", "headlines", "glossary", "metrics", "reliability", "shift", "severities", "heat-maps", "provenance"
    }  # fmt: skip
    assert "AURC" not in " ".join(page.text("th"))
    assert "Noise floor %" not in page.text("th")
    for export in (to_csv, to_json, to_markdown):
        assert export([old])


def test_old_and_new_stand_side_by_side(make_evaluated: MakeEvaluated) -> None:
    old = bare(make_evaluated("old", members=1, shifted=True))
    new = make_evaluated("new", members=2, shifted=True, more=True)
    page = Page(render([old, new]))
    assert page.text("caption").count("new: ECE excess, equal-width 15, points; 40 images per cell") == 1
    assert not any(text.startswith("old: ECE excess") for text in page.text("caption"))
    assert to_csv([old, new]).count("\n") == 1 + to_csv([old]).count("\n") + to_csv([new]).count("\n") - 2


def test_hostile_words_of_the_new_sections_are_only_text(make_evaluated: MakeEvaluated) -> None:
    places = (
        "results.collapse.verdict",
        "recalibrated.clean_how",
        "recalibrated.fitted_on.run",
        "recalibrated.choice.candidates.1.name",
        "recalibrated.ways.by both.moves.0.images",
        "compared.against.0.experiment",
    )
    run = changed_all(make_evaluated(members=2, shifted=True, more=True), dict.fromkeys(places, HOSTILE))
    assert run.recalibrated is not None
    ways = {**run.recalibrated.ways, HOSTILE: run.recalibrated.ways["by both"]}
    run = changed_all(
        run,
        {
            "recalibrated.ways": ways,
            "recalibrated.choice.chosen": HOSTILE,
            "recalibrated.choice.refused": {HOSTILE: HOSTILE},
            "results.outside": {HOSTILE: run.results.outside["letters"]},
        },
    )
    page = Page(render([changed(run, "results.health.warnings", (HOSTILE,))]))
    assert page.count("script") == 1
    assert HOSTILE in page.text("p")
    assert f"Warning: {HOSTILE}" in page.text("p")
    assert f"Refused: “{HOSTILE}”, because {HOSTILE}." in page.text("p")
    assert f"chosen: {HOSTILE}" in page.text("th")
    assert HOSTILE in page.text("h3")


def test_a_warning_is_on_the_page_only_where_many_channels_were_lost(make_evaluated: MakeEvaluated) -> None:
    good = make_evaluated("good", members=2, shifted=True, more=True)
    warnings = ("Most of it is lost.", "The rest too.")
    bad = changed(make_evaluated("bad", members=1, shifted=True, more=True), "results.health.warnings", warnings)
    assert "warning" not in [element.get("class") for element in Page(render([good])).attributes("p")]
    page = Page(render([good, bad]))
    assert [element.get("class") for element in page.attributes("p")].count("warning") == 2
    assert "Warning: Most of it is lost." in page.text("p")
    assert [text for text in page.text("caption") if "lost channels" in text] == [
        "good: lost channels by epoch",
        "bad: lost channels by epoch",
    ]
