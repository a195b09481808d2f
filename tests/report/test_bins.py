from dataclasses import asdict

import numpy as np
import pytest
from scipy.stats import binomtest

from counterpoint.metrics import ece, reliability_bins
from counterpoint.records.figures import Bin
from counterpoint.report.bins import binned_ece, bins_in_words, bins_table, pool_bins, wilson_interval
from counterpoint.report.tables import Entry


def bin_rows(confidence: np.ndarray, correct: np.ndarray) -> list[Bin]:
    columns = {name: values.tolist() for name, values in asdict(reliability_bins(confidence, correct)).items()}
    return [Bin(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def test_pooled_bins_are_the_bins_of_all_images() -> None:
    """Cells of unequal size that do not fill the same bins, against the bins of their images put together."""
    rng = np.random.default_rng(0)
    cells = [(rng.beta(4, 2 + i, size=50 + 30 * i), rng.random(50 + 30 * i) < 0.6) for i in range(5)]
    pooled = pool_bins([bin_rows(*cell) for cell in cells])
    confidence, correct = (np.concatenate(column) for column in zip(*cells, strict=True))
    expected = bin_rows(confidence, correct)
    assert len({len(bin_rows(*cell)) for cell in cells}) > 1
    assert [(row.low, row.high, row.count) for row in pooled] == [(row.low, row.high, row.count) for row in expected]
    for key in ("confidence", "accuracy"):
        assert [getattr(row, key) for row in pooled] == pytest.approx(
            [getattr(row, key) for row in expected], abs=1e-12
        )
    assert binned_ece(pooled) == pytest.approx(ece(confidence, correct), abs=1e-12)


@pytest.mark.parametrize(("right", "count"), [(0, 1), (1, 1), (3, 8), (8, 8), (0, 50), (90, 120), (9_999, 10_000)])
def test_wilson_interval_is_scipys(right: int, count: int) -> None:
    expected = binomtest(right, count).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right / count, count) == pytest.approx((expected.low, expected.high), abs=1e-6)


@pytest.mark.parametrize("count", [100, 120, 450, 10_000])
def test_wilson_interval_holds_the_share_itself_at_both_ends(count: int) -> None:
    assert wilson_interval(0.0, count)[0] == 0
    assert wilson_interval(1.0, count)[1] == 1


def test_bins_table_by_hand() -> None:
    bins = [Bin(0.8, 0.9, 1200, 0.86, 0.75)]
    (row,) = bins_table("some bins", bins, intervals=False).rows
    assert row.label == "80.00–90.00"
    assert row.entries == (Entry("1,200"), Entry("86.00"), Entry("75.00"), Entry("+11.00"))
    table = bins_table("some bins", bins, intervals=True)
    assert [column.label for column in table.columns][4] == "Interval"
    assert table.rows[0].entries[3] == Entry("72.5–77.4")


def test_bins_in_words() -> None:
    bins = [
        Bin(0.4, 0.5, 30, 0.45, 0.5),
        Bin(0.8, 0.9, 90, 0.86, 0.75),
    ]
    assert " ".join(bins_in_words(bins).split()) == (
        "Bins that hold images: 2. 75.00 % of the images lie in bins where confidence exceeds accuracy. "
        "The widest gap (images: 90) is between mean confidence 86.00 % and accuracy 75.00 %."
    )
