from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterpoint.report.run import CORRUPTIONS, ReportedRun
from counterpoint.report.severities import Rates, Severity, severities, severity_table

MakeResults = Callable[..., dict[str, Any]]


def test_a_severity_is_the_mean_over_its_cells(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    points = severities(ReportedRun("run", results))
    assert [point.number for point in points] == [1, 2, 3, 4, 5]
    for point in points:
        cells = [results["corrupted"]["cells"][name][point.number - 1] for name in CORRUPTIONS]
        of_models = [[cell["ensemble"] for cell in cells], *([cell["members"][i] for cell in cells] for i in range(2))]
        for rates, scores in zip((point.ensemble, *point.members), of_models, strict=True):
            assert rates.accuracy == pytest.approx(np.mean([1 - one["error"] for one in scores]))
            assert rates.confidence == pytest.approx(np.mean([one["mean_confidence"] for one in scores]))
        total = sum(row["count"] for row in point.bins)
        assert total == 15 * results["corrupted"]["images"]
        assert sum(row["count"] * row["accuracy"] for row in point.bins) / total == pytest.approx(
            point.ensemble.accuracy
        )


def test_the_clean_set_comes_first_where_it_is_the_same_images(make_results: MakeResults) -> None:
    results = make_results(members=1, shifted=True)
    results["evaluated_on"]["images"] = results["corrupted"]["images"]
    clean, *others = severities(ReportedRun("run", results))
    assert (clean.number, clean.name, clean.members) == (0, "Clean", ())
    assert clean.ensemble.accuracy == pytest.approx(1 - results["clean"]["ensemble"]["error"])
    assert clean.bins == tuple(results["clean"]["reliability"]["width15"])
    assert [point.name for point in others] == [f"Severity {number}" for number in range(1, 6)]


def test_severity_table_by_hand() -> None:
    point = Severity(3, Rates(accuracy=0.7, confidence=0.8), (Rates(0.6, 0.55), Rates(0.5, 0.5)), bins=())
    rows = [(row.label, row.kind, [entry.text for entry in row.entries]) for row in severity_table("x", [point]).rows]
    assert rows == [
        ("Severity 3", "run", ["70.00", "80.00", "+10.00"]),
        ("member 1", "member", ["60.00", "55.00", "−5.00"]),
        ("member 2", "member", ["50.00", "50.00", "0.00"]),
    ]
