from xml.etree import ElementTree

import pytest

from counterpoint.records.figures import Curve
from counterpoint.records.files import Evaluated
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.selective import Selective, selective
from tests.report.made import MakeEvaluated, changed

CURVE = Curve((0.25, 0.5, 0.75, 1.0), (0.0, 0.1, 0.2, 0.3))


@pytest.fixture
def by_hand(make_evaluated: MakeEvaluated) -> Evaluated:
    return changed(make_evaluated(members=1), "results.clean.risk_coverage", CURVE)


def content_of(*runs: Evaluated) -> Selective:
    found = selective([ReportedRun("mine", run) for run in runs])
    assert found is not None
    return found


def test_the_table_by_hand(by_hand: Evaluated) -> None:
    (plot,) = content_of(by_hand).clean[0].plots
    (table,) = plot.tables
    assert [column.label for column in table.columns] == [
        "Kept", "20 %", "50 %", "70 %", "80 %", "90 %", "95 %", "100 %"
    ]  # fmt: skip
    (row,) = table.rows
    assert (row.label, [entry.text for entry in row.entries]) == (
        "Clean",
        ["0.00", "10.00", "20.00", "20.00", "30.00", "30.00", "30.00"],
    )
    assert plot.caption.startswith(
        "Wrong predictions, mine: 30.00\N{NO-BREAK SPACE}% of all, 10.00\N{NO-BREAK SPACE}% of the"
    )


def test_curves_lie_at_their_values(by_hand: Evaluated) -> None:
    svg = ElementTree.fromstring(content_of(by_hand).clean[0].plots[0].svg)
    (curve,) = (one for one in svg.iter("path") if one.get("class") == "line")
    numbers = [float(text) for text in curve.attrib["d"].removeprefix("M").split()]
    assert numbers[::2] == pytest.approx([46 + 302 * share for share in CURVE.coverage], abs=0.01)
    assert numbers[1::2] == pytest.approx([12 + 300 * (1 - risk / 0.3) for risk in CURVE.risk], abs=0.01)
    points = [one for one in svg.iter("g") if one.get("class") == "point"]
    assert [float(one.get("data-x", "")) for one in points] == numbers[::2]
    assert [one.findtext("title") for one in points][-1] == (
        "mine\nClean\nkept: the surest 100\N{NO-BREAK SPACE}% of the images\n"
        "wrong among those kept: 30.00\N{NO-BREAK SPACE}%"
    )


def test_clean_and_every_severity(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, shifted=True, extra=True)
    content = content_of(evaluated)
    (table,) = content.clean[0].plots[0].tables
    assert [row.label for row in table.rows] == ["Clean", *(f"Severity {i}" for i in range(1, 6))]
    assert evaluated.results.corrupted is not None
    for row, curve in zip(table.rows[1:], evaluated.results.corrupted.risk_coverage, strict=True):
        assert row.entries[-1].text == f"{100 * curve.risk[-1]:.2f}"
    (corrupted,) = content.corrupted
    assert corrupted.label == "Corrupted images (-C)"
    assert [plot.caption for plot in corrupted.plots] == [f"Severity {i}" for i in range(1, 6)]
    scales = [texts(plot.svg, "end") for plot in corrupted.plots]
    assert scales == 5 * scales[:1], "the severities share one scale"


def test_all_runs_on_the_same_images_are_in_one_plot(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated(name, members=1, shifted=True) for name in "ab")
    found = selective(label_runs([one, other]))
    assert found is not None
    for plot in (*found.clean[0].plots, *found.corrupted[0].plots):
        drawn = ElementTree.fromstring(plot.svg).iter("g")
        assert {run.get("data-run") for run in drawn} == {"0", "1", None}
    apart = selective(label_runs([one, changed(other, "results.evaluated_on.images", 40)]))
    assert apart is not None
    assert len(apart.clean) == 2
    assert len(apart.corrupted) == 1


def texts(svg: str, kind: str) -> list[str | None]:
    return [one.text for one in ElementTree.fromstring(svg).iter("text") if one.get("class") == kind]


def test_nothing_to_show(by_hand: Evaluated) -> None:
    assert selective([ReportedRun("old", changed(by_hand, "results.clean.risk_coverage", None))]) is None
