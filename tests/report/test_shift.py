from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from counterpoint.metrics import ece, reliability_bins
from counterpoint.report.run import CORRUPTIONS, Run
from counterpoint.report.shift import Rates, Severity, binned_ece, pool_bins, severities, severity_table

MakeResults = Callable[..., dict[str, Any]]


def bin_rows(confidence: np.ndarray, correct: np.ndarray) -> list[dict[str, Any]]:
    columns = {name: values.tolist() for name, values in asdict(reliability_bins(confidence, correct)).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_pooled_bins_are_the_bins_of_all_images() -> None:
    """Cells of unequal size that do not fill the same bins, against the bins of their images put together."""
    rng = np.random.default_rng(0)
    cells = [(rng.beta(4, 2 + i, size=50 + 30 * i), rng.random(50 + 30 * i) < 0.6) for i in range(5)]
    pooled = pool_bins([bin_rows(*cell) for cell in cells])
    confidence, correct = (np.concatenate(column) for column in zip(*cells, strict=True))
    expected = bin_rows(confidence, correct)
    assert len({len(bin_rows(*cell)) for cell in cells}) > 1
    assert [(row["low"], row["high"], row["count"]) for row in pooled] == [
        (row["low"], row["high"], row["count"]) for row in expected
    ]
    for key in ("confidence", "accuracy"):
        assert [row[key] for row in pooled] == pytest.approx([row[key] for row in expected], abs=1e-12)
    assert binned_ece(pooled) == pytest.approx(ece(confidence, correct), abs=1e-12)


def test_a_severity_is_the_mean_over_its_cells(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    points = severities(Run("run", results))
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
    clean, *others = severities(Run("run", results))
    assert (clean.number, clean.name, clean.members) == (0, "Clean", ())
    assert clean.ensemble.accuracy == pytest.approx(1 - results["clean"]["ensemble"]["error"])
    assert clean.bins == tuple(results["clean"]["reliability"]["width15"])
    assert [point.name for point in others] == [f"Severity {number}" for number in range(1, 6)]


def test_severity_table_by_hand() -> None:
    point = Severity(3, Rates(accuracy=0.7, confidence=0.8), (Rates(0.6, 0.55), Rates(0.5, 0.5)), bins=())
    rows = [(row.label, row.kind, [cell.text for cell in row.cells]) for row in severity_table("x", [point]).rows]
    assert rows == [
        ("Severity 3", "run", ["70.00", "80.00", "+10.00"]),
        ("member 1", "member", ["60.00", "55.00", "−5.00"]),
        ("member 2", "member", ["50.00", "50.00", "0.00"]),
    ]
