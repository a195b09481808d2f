from dataclasses import replace

import pytest

from counterpoint import corrupt
from counterpoint.records.images import Source
from counterpoint.report.run import AGGREGATES, ReportedRun, label_runs
from counterpoint.report.suites import (
    ShiftedRun,
    by_cells,
    by_suite,
    corruption_label,
    papers_suite,
    papers_suites,
    suites_of,
)
from tests.report.made import EXTRA, OFFICIAL, MakeEvaluated, changed, changed_all


def the_paper_s(run: ReportedRun) -> ShiftedRun:
    shifted = papers_suite(run)
    assert shifted is not None
    return shifted


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (OFFICIAL, "the official files"),
        (
            Source("regenerated", 3, "0.1.0", "photographs"),
            "regenerated with CIFAR-C's constants, seed 3 (generator 0.1.0), frost from photographs",
        ),
        (
            Source("regenerated", 0, "0.2.0", "texture", constants="imagenet-c"),
            "regenerated with ImageNet-C's constants, seed 0 (generator 0.2.0), frost from a made texture",
        ),
    ],
)
def test_the_source_in_words(make_evaluated: MakeEvaluated, source: Source, words: str) -> None:
    evaluated = changed(make_evaluated(members=1, shifted=True), "results.corrupted.source", source)
    shifted = the_paper_s(ReportedRun("run", evaluated))
    assert shifted.source == words
    assert shifted.images == f"digits-C, {words}, 40 images per cell"


def test_what_suites_are_called_and_made_of(make_evaluated: MakeEvaluated) -> None:
    papers, extra = suites_of(ReportedRun("mine", make_evaluated(members=1, shifted=True, extra=True)))
    assert (papers.called, papers.label, papers.dataset) == ("-C", "mine", "digits-C")
    assert (extra.called, extra.label, extra.dataset) == (EXTRA, f"mine on {EXTRA}", f"digits-{EXTRA}")
    assert papers.made_of == "15 kinds of corruption, each at 5 severities: 75 cells"
    assert extra.made_of == "4 kinds of corruption, each at 5 severities: 20 cells"
    words = (
        f"digits-{EXTRA}, regenerated with CIFAR-C's constants, seed 0 (generator 0.1.0), 40 validation images per cell"
    )
    assert extra.images == words, "it has no frost"


def test_a_shift_of_one_s_own_is_not_called_after_the_run_s_images(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=1, shifted=True)
    own = changed(evaluated, "results.corrupted.source", Source("own", key="0123456789"))
    fog = replace(the_paper_s(ReportedRun("mine", own)), suite="fog")
    assert fog.images == "fog, named with --shift (key 01234567), 40 images at each of 5 severities"


def test_one_cell_is_counted_too(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=1, shifted=True)
    assert evaluated.results.corrupted is not None
    fog = {"fog": evaluated.results.corrupted.cells["fog"][:1]}
    few = changed_all(evaluated, {"results.corrupted.cells": fog, "results.corrupted.severities": (3,)})
    assert the_paper_s(ReportedRun("run", few)).made_of == "1 kind of corruption, each at 1 severity: 1 cell"


@pytest.mark.parametrize(
    ("suite", "part", "images", "same"),
    [
        ("corrupted", "test", 40, True),
        ("corrupted", "test", 120, False),
        ("corrupted", "validation", 40, False),
        (EXTRA, "validation", 40, True),
        (EXTRA, "test", 40, False),
    ],
)
def test_clean_is_severity_0_only_on_the_same_images(
    make_evaluated: MakeEvaluated, suite: str, part: str, images: int, same: bool
) -> None:
    changes = {"results.evaluated_on.part": part, "results.evaluated_on.images": images}
    run = ReportedRun("run", changed_all(make_evaluated(members=1, shifted=True, extra=True), changes))
    assert {one.suite: one.clean_is_severity_0 for one in suites_of(run)}[suite] is same


def test_an_aggregate_is_a_summary(make_evaluated: MakeEvaluated) -> None:
    shifted = the_paper_s(ReportedRun("run", make_evaluated(members=2, shifted=True)))
    found = shifted.figures.aggregates
    cells = [cell.disagreement for cell in shifted.figures.all_cells()]
    for aggregate in AGGREGATES:
        summary = shifted.aggregate(aggregate)
        assert summary.ensemble == found.ensemble[aggregate]
        assert summary.members == tuple(member[aggregate] for member in found.members)
        assert summary.disagreement == pytest.approx(sum(value for value in cells if value is not None) / 75)
        assert summary.pairwise_kl == found.pairwise_kl
    single = the_paper_s(ReportedRun("run", make_evaluated(members=1, shifted=True)))
    assert single.aggregate("pooled").disagreement is None


def test_the_paper_s_suite_comes_first(make_evaluated: MakeEvaluated) -> None:
    runs = label_runs(
        [make_evaluated("a", members=1, extra=True), make_evaluated("b", members=1, shifted=True, extra=True)]
    )
    assert {suite: [one.run.label for one in group] for suite, group in by_suite(runs).items()} == {
        "corrupted": ["b"],
        EXTRA: ["a", "b"],
    }
    assert list(by_suite(runs)) == ["corrupted", EXTRA]
    assert [one.label for one in papers_suites(runs)] == ["b"]


@pytest.mark.parametrize(
    "changes",
    [
        {"source": OFFICIAL},
        {"images": 39},
        {"severities": (2, 3, 4, 5, 6)},
        {"part": "validation"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_only_the_same_cells_are_compared(make_evaluated: MakeEvaluated, changes: dict[str, object]) -> None:
    one = make_evaluated("a", members=1, shifted=True)
    other = changed_all(
        make_evaluated("b", members=1, shifted=True), {f"results.corrupted.{key}": new for key, new in changes.items()}
    )
    assert [len(group) for _, group in by_cells(papers_suites(label_runs([one, one])))] == [2]
    assert [len(group) for _, group in by_cells(papers_suites(label_runs([one, other])))] == [1, 1]


def test_other_corruptions_are_other_cells(make_evaluated: MakeEvaluated) -> None:
    one = make_evaluated("a", members=1, extra=True)
    suite = one.results.shifts[EXTRA]
    fewer = {name: row for name, row in suite.cells.items() if name != "spatter"}
    other = changed(one, f"results.shifts.{EXTRA}.cells", fewer)
    groups = by_cells(by_suite(label_runs([one, other]))[EXTRA])
    assert [len(group) for _, group in groups] == [1, 1]


def test_every_corruption_has_a_name_for_people() -> None:
    assert [corruption_label(name) for name in corrupt.CORRUPTIONS] == [
        "Gaussian noise", "Shot noise", "Impulse noise", "Defocus blur", "Glass blur", "Motion blur", "Zoom blur",
        "Snow", "Frost", "Fog", "Brightness", "Contrast", "Elastic", "Pixelate", "JPEG",
    ]  # fmt: skip
    assert corruption_label("rain_of_frogs") == "Rain of frogs"
