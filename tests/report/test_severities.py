import numpy as np
import pytest

from counterpoint.report.bins import reliability_of
from counterpoint.report.run import ReportedRun
from counterpoint.report.severities import Rates, Severity, severities, severity_table
from counterpoint.report.suites import ShiftedRun, suites_of
from tests.report.made import MakeEvaluated, changed


@pytest.fixture
def both_suites(make_evaluated: MakeEvaluated) -> list[ShiftedRun]:
    return suites_of(ReportedRun("run", make_evaluated(members=2, shifted=True, extra=True)))


def test_a_severity_is_the_mean_over_its_cells(both_suites: list[ShiftedRun]) -> None:
    for shifted in both_suites:
        points = severities(shifted)
        assert [point.number for point in points] == [1, 2, 3, 4, 5]
        for point in points:
            cells = [row[point.number - 1] for row in shifted.figures.cells.values()]
            of_models = [[cell.ensemble for cell in cells], *([cell.members[i] for cell in cells] for i in range(2))]
            for rates, figures in zip((point.ensemble, *point.members), of_models, strict=True):
                assert rates.accuracy == pytest.approx(np.mean([1 - one.error for one in figures]))
                assert rates.confidence == pytest.approx(np.mean([one.mean_confidence for one in figures]))
            total = sum(row.count for row in point.bins)
            assert total == len(cells) * shifted.figures.images
            right = sum(row.count * row.accuracy for row in point.bins)
            assert right / total == pytest.approx(point.ensemble.accuracy)


def test_the_clean_set_comes_first_where_it_is_the_same_images(make_evaluated: MakeEvaluated) -> None:
    run = ReportedRun("run", changed(make_evaluated(members=1, shifted=True), "results.evaluated_on.images", 40))
    clean, *others = severities(suites_of(run)[0])
    assert (clean.number, clean.name, clean.members) == (0, "Clean", ())
    assert clean.ensemble.accuracy == pytest.approx(1 - run.clean.ensemble.error)
    assert clean.bins == reliability_of(run.clean).width15
    assert [point.name for point in others] == [f"Severity {number}" for number in range(1, 6)]


def test_severity_table_by_hand() -> None:
    point = Severity(3, "Severity 3", Rates(accuracy=0.7, confidence=0.8), (Rates(0.6, 0.55), Rates(0.5, 0.5)), (), ())
    rows = [(row.label, row.kind, [entry.text for entry in row.entries]) for row in severity_table("x", [point]).rows]
    assert rows == [
        ("Severity 3", "run", ["70.00", "80.00", "+10.00"]),
        ("member 1", "member", ["60.00", "55.00", "−5.00"]),
        ("member 2", "member", ["50.00", "50.00", "0.00"]),
    ]
