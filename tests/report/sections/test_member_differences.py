from xml.etree import ElementTree

import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.results import Between, Collapse, FactorCorrelation
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.member_differences import RunDifferences, member_differences
from tests.report.made import MakeEvaluated, changed


def between(disagreement: float, independent: float) -> Between:
    return Between(disagreement, 0.25, independent)


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    collapse = Collapse(
        r=FactorCorrelation(plain=0.25, closest=-0.125, independent=-0.5),
        s=FactorCorrelation(plain=-0.5, closest=1.0, independent=-0.5),
        clean=between(0.02, 0.08),
        severities=tuple(between(0.1 * i, 0.2 * i) for i in range(1, 6)),
        verdict="The members differ clearly.",
    )
    return changed(make_evaluated(members=4, shifted=True), "results.collapse", collapse)


def of_run(evaluated: Evaluated) -> RunDifferences:
    content = member_differences([ReportedRun("mine", evaluated)])
    assert content is not None
    (found,) = content.runs
    return found


def test_the_table_by_hand(evaluated: Evaluated) -> None:
    found = of_run(evaluated)
    assert found.verdict == "The members differ clearly."
    rows = [(row.label, [entry.text for entry in row.entries]) for row in found.chart.table.rows]
    assert rows[0] == ("Clean", ["2.00", "8.00", "25", "0.250"])
    assert rows[5] == ("Severity 5", ["50.00", "100.00", "50", "0.250"])
    assert found.factors is not None
    assert [(row.label, [entry.text for entry in row.entries]) for row in found.factors.rows] == [
        ("r, all pairs", ["0.250", "0.000", "1.000"]),
        ("r, closest pair", ["−0.125", "−0.500", "1.000"]),
        ("s, all pairs", ["−0.500", "0.000", "1.000"]),
        ("s, closest pair", ["1.000", "−0.500", "1.000"]),
    ]


@pytest.mark.parametrize(("images", "points"), [(40, 6), (120, 5)])
def test_clean_is_joined_to_the_severities_only_on_the_same_images(
    evaluated: Evaluated, images: int, points: int
) -> None:
    found = of_run(changed(evaluated, "results.evaluated_on.images", images))
    circles = ElementTree.fromstring(found.chart.svg).iter("circle")
    assert sum(circle.get("class") == "members-point" for circle in circles) == points
    assert "Clean: 2.00" in found.chart.caption


def test_members_that_never_err_have_no_share(evaluated: Evaluated) -> None:
    found = of_run(changed(evaluated, "results.collapse.clean", between(0.0, 0.0)))
    assert found.chart.table.rows[0].entries[2].text == "–"


def test_without_severities_and_factors(evaluated: Evaluated) -> None:
    found = of_run(changed(evaluated, "results.collapse", Collapse(clean=between(0.02, 0.08), verdict="x")))
    assert found.factors is None
    assert [row.label for row in found.chart.table.rows] == ["Clean"]


def test_one_network_has_nothing_to_compare(make_evaluated: MakeEvaluated) -> None:
    run = ReportedRun("single", make_evaluated(members=1, shifted=True, more=True))
    assert member_differences([run]) is None


def test_all_runs_have_the_same_axis_and_each_its_colour(evaluated: Evaluated) -> None:
    more = changed(evaluated, "results.collapse.clean.independent_disagreement", 0.93)
    content = member_differences([ReportedRun("a", evaluated, 0), ReportedRun("b", more, 1)])
    assert content is not None
    axes = [
        [one.text for one in ElementTree.fromstring(run.chart.svg).iter("text") if one.get("class") == "end"]
        for run in content.runs
    ]
    assert axes == 2 * [["0", "20", "40", "60", "80", "100"]]
    assert [run.colour for run in content.runs] == ["run-1", "run-2"]
