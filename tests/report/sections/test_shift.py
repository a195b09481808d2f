import pytest

from counterpoint.records.files import Evaluated
from counterpoint.report.run import AGGREGATES, ReportedRun, label_runs
from counterpoint.report.sections.shift import UnderShift, under_shift
from tests.report.made import EXTRA, OFFICIAL, MakeEvaluated, changed


def content_of(*runs: Evaluated) -> UnderShift:
    content = under_shift(label_runs(runs))
    assert content is not None
    return content


def test_one_table_per_suite_and_aggregate(make_evaluated: MakeEvaluated) -> None:
    mine = make_evaluated("mine", members=2, shifted=True, extra=True)
    content = content_of(mine)
    assert [suite.title for suite in content.suites] == ["Corrupted images (-C)", f"Corrupted images ({EXTRA})"]
    assert [suite.is_folded for suite in content.suites] == [False, True], "validation images are for choices"
    assert not any(suite.sources for suite in content.suites), "the tables name the images"
    for suite, shifted in zip(content.suites, mine.results.suites.values(), strict=True):
        tables = (*suite.headline_tables, *suite.other_tables)
        for table, aggregate in zip(tables, AGGREGATES, strict=True):
            assert table.caption.endswith(f"images per cell: {aggregate}")
            assert [row.label for row in table.rows] == ["mine", "member 1", "member 2"]
            found = shifted.aggregates
            figures = [found.ensemble[aggregate], *(member[aggregate] for member in found.members)]
            assert [row.entries[3].text for row in table.rows] == [f"{100 * one.ece_width15:.2f}" for one in figures]


def test_what_each_suite_is_made_of(make_evaluated: MakeEvaluated) -> None:
    papers, extra = content_of(make_evaluated(members=1, shifted=True, extra=True)).suites
    assert papers.words == ("The test images with 15 kinds of corruption, each at 5 severities: 75 cells in all.",)
    assert extra.words == ("The validation images with 4 kinds of corruption, each at 5 severities: 20 cells in all.",)


def test_runs_that_lack_a_suite_are_named(make_evaluated: MakeEvaluated) -> None:
    papers, extra = content_of(
        make_evaluated("a", members=1, shifted=True), make_evaluated("b", members=1, extra=True)
    ).suites
    assert [source.partition(":")[0] for source in papers.sources] == ["a", "b"]
    assert papers.sources[1] == "b: not evaluated"
    assert extra.sources[0] == "a: not evaluated"
    assert [[row.label for row in table.rows] for table in papers.headline_tables] == [["a"]]
    assert [[row.label for row in table.rows] for table in extra.headline_tables] == [["b"]]


def test_different_corrupted_sets_are_not_compared(make_evaluated: MakeEvaluated) -> None:
    one = make_evaluated("a", members=1, shifted=True)
    two = changed(make_evaluated("b", members=1, shifted=True), "results.evaluated_on.part", "validation")
    assert len(content_of(one, two).suites[0].headline_tables) == 1, "the clean images do not matter here"
    two = changed(two, "results.corrupted.source", OFFICIAL)
    content = content_of(one, two)
    assert [[row.label for row in table.rows] for table in content.suites[0].headline_tables] == [["a"], ["b"]]
    assert content.is_regenerated
    assert not content_of(two).is_regenerated


@pytest.mark.parametrize("extra", [True, False])
def test_without_a_suite_there_is_nothing(make_evaluated: MakeEvaluated, extra: bool) -> None:
    content = under_shift([ReportedRun("plain", make_evaluated(members=1, extra=extra))])
    assert (content is not None) == extra
    assert content is None or not content.suites[0].is_folded, "nothing else is there to see"
