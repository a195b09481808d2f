from xml.etree import ElementTree

from counterpoint.records.files import Evaluated
from counterpoint.report.run import label_runs
from counterpoint.report.sections.severities import Severities, against_severity
from tests.report.made import EXTRA, OFFICIAL, MakeEvaluated, changed


def content_of(*runs: Evaluated) -> Severities:
    content = against_severity(label_runs(runs))
    assert content is not None
    return content


def runs_drawn(svg: str) -> set[str | None]:
    return {one.get("data-run") for one in ElementTree.fromstring(svg).iter("g")} - {None}


def test_every_suite_of_every_run(make_evaluated: MakeEvaluated) -> None:
    content = content_of(
        make_evaluated("a", members=1, shifted=True, extra=True), make_evaluated("b", members=1, extra=True)
    )
    papers, extra = content.suites
    assert (papers.title, extra.title) == ("Corrupted images (-C)", f"Corrupted images ({EXTRA})")
    assert papers.lines[0].caption.startswith("Mean of the 15 corruptions.")
    assert extra.lines[0].caption.startswith("Mean of the 4 corruptions.")
    assert {len(suite.reliability) for suite in content.suites} == {5}
    assert [len(suite.bins) for suite in content.suites] == [5, 10]
    assert runs_drawn(papers.lines[0].svg) == {"0"}
    assert runs_drawn(extra.lines[0].svg) == runs_drawn(extra.lines[1].svg) == {"0", "1"}


def test_runs_on_other_images_are_in_another_plot(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated(name, members=1, shifted=True) for name in "ab")
    content = content_of(one, changed(other, "results.corrupted.source", OFFICIAL))
    assert [suite.title for suite in content.suites] == ["Corrupted images (-C): a", "Corrupted images (-C): b"]
    assert [runs_drawn(suite.lines[1].svg) for suite in content.suites] == [{"0"}, {"1"}]


def test_a_run_without_a_clean_point_stands_beside_one_that_has_it(make_evaluated: MakeEvaluated) -> None:
    without, having = (make_evaluated(name, members=1, shifted=True) for name in "ab")
    (suite,) = content_of(without, changed(having, "results.evaluated_on.images", 40)).suites
    (table,) = suite.lines[1].tables
    assert [row.label for row in table.rows] == ["Clean", *(f"Severity {i}" for i in range(1, 6))]
    assert table.rows[0].entries[0].text == "–"
    assert len(suite.notes) == 2
    points = [one for one in ElementTree.fromstring(suite.lines[1].svg).iter("g") if one.get("class") == "point"]
    assert len(points) == 5 + 6
    assert points[0].get("data-x") == points[6].get("data-x"), "severity 1 of both"


def test_the_images_are_named(make_evaluated: MakeEvaluated) -> None:
    evaluated = changed(make_evaluated(members=1, shifted=True, extra=True), "results.evaluated_on.images", 40)
    papers, extra = content_of(evaluated).suites
    assert papers.notes == ("Clean is the same 40 images without corruption.",)
    assert extra.notes == (
        "There is no clean point: the clean figures are of 40 test images, and the corrupted ones of 40 validation "
        "images.",
    )


def test_without_a_suite_there_is_nothing(make_evaluated: MakeEvaluated) -> None:
    assert against_severity(label_runs([make_evaluated(members=1)])) is None


def test_members_are_in_the_small_diagrams(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=2, shifted=True)
    content = against_severity(label_runs([run]))
    assert content
    (suite,) = content.suites
    assert [plot.svg.count('data-part="members"') for plot in suite.reliability] == [2] * 5
    earlier = against_severity(label_runs([changed(run, "results.corrupted.member_bins", ())]))
    assert earlier
    assert not any("members" in plot.svg for plot in earlier.suites[0].reliability)
