from dataclasses import replace
from typing import Any

import pytest

from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    Compared,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
    OutsideDifference,
)
from counterpoint.records.images import OutsideImages, Shift, Source
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.comparison import PairDifferences, comparisons, differences_table
from tests.report.made import MakeEvaluated

MEANS = MeanDifferences(*3 * [Difference(0.1, 0.05, 0.15)])


def comparison(make_evaluated: MakeEvaluated, **parts: Any) -> Comparison:
    made_from = make_evaluated(members=1).results.made_from
    return Comparison("b", 3, "b-3", made_from, **{"clean": None, "corrupted": None, **parts})


def shown(make_evaluated: MakeEvaluated, other: Comparison, **run: Any) -> PairDifferences:
    evaluated = make_evaluated(members=1, **run)
    compared = Compared("a", 0, evaluated.results.made_from, "counterpoint compare", "then", (other,))
    content = comparisons([ReportedRun("a", replace(evaluated, compared=compared))])
    assert content is not None
    (one,) = content.pairs
    return one


def test_differences_by_hand(make_evaluated: MakeEvaluated) -> None:
    clean = CleanDifferences(
        error=Difference(-0.0123, -0.02, -0.004),
        nll=Difference(0.05, 0.01, 0.09),
        brier=Difference(0.0, -0.01, 0.01),
        ece_rms_mass15_debiased=Difference(0.001, 0.0, 0.002),
    )
    one = shown(make_evaluated, comparison(make_evaluated, clean=clean))
    assert one.label == "a − b"
    (chart,) = one.charts
    assert [(row.label, [entry.text for entry in row.entries]) for row in chart.table.rows] == [
        ("Error", ["−1.23 points", "−2.00 to −0.40", "lower"]),
        ("NLL", ["+0.050 nats", "+0.010 to +0.090", "higher"]),
        ("Brier", ["0.000", "−0.010 to +0.010", "not told apart"]),
        ("ECE-rms (equal-mass 15, debiased)", ["+0.10 points", "0.00 to +0.20", "not told apart"]),
    ]
    assert one.words == (
        "On clean images a has a lower Error and a higher NLL than b. On clean images the two are not told apart in "
        "Brier and ECE-rms (equal-mass 15, debiased): these intervals hold 0.",
    )
    assert chart.table.columns[-1].label == "a is"
    assert one.severities is None


def test_corrupted_images_and_each_severity(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=2, shifted=True, more=True)
    content = comparisons([ReportedRun("a", evaluated)])
    assert content is not None
    (one,) = content.pairs
    assert evaluated.compared is not None
    corrupted = evaluated.compared.against[0].corrupted
    assert corrupted is not None
    assert [chart.table.caption.split(": ")[1] for chart in one.charts] == [
        "clean images",
        "corrupted images (each image’s mean over all cells)",
        "corrupted images, by corruption (each image with all its cells)",
    ]
    assert [row.label for row in one.charts[2].table.rows] == [
        f"{metric} ({binning} 15, debiased)"
        for binning in ("equal-width", "equal-mass")
        for metric in ("ECE", "ECE-rms")
    ]
    ece = corrupted.by_corruption.ece_width15_debiased
    assert ece is not None
    ends = one.charts[2].table.rows[0].entries[1].text.replace("−", "-").split(" to ")
    assert [float(text) for text in ends] == pytest.approx([100 * ece.low, 100 * ece.high], abs=0.0051)
    error = one.charts[1].table.rows[0].entries[0].text
    assert float(error.removesuffix(" points").replace("−", "-")) == pytest.approx(
        100 * corrupted.mean.error.difference, abs=0.0051
    )
    assert one.severities is not None
    assert [row.label for row in one.severities.rows] == [
        f"Severity {severity}: {name}" for severity in range(1, 6) for name in ("Error", "NLL", "Brier")
    ]
    last = one.severities.rows[-3].entries[1].text.replace("−", "-").split(" to ")
    worst = corrupted.severities[4].error
    assert [float(text) for text in last] == pytest.approx([100 * worst.low, 100 * worst.high], abs=0.0051)


def test_only_the_images_that_both_have(make_evaluated: MakeEvaluated) -> None:
    corrupted = CorruptedDifferences(MEANS, 5 * (MEANS,), CalibrationDifferences())
    one = shown(make_evaluated, comparison(make_evaluated, corrupted=corrupted), shifted=True)
    assert len(one.charts) == len(one.words) == 1
    assert one.words[0].startswith("On corrupted images")


def test_runs_that_were_not_compared(make_evaluated: MakeEvaluated) -> None:
    assert comparisons([ReportedRun("a", make_evaluated(members=1))]) is None


def test_the_headlines_of_a_comparison(make_evaluated: MakeEvaluated) -> None:
    clean = CleanDifferences(
        error=Difference(-0.01, -0.02, 0.005), nll=Difference(0.05, 0.01, 0.09), brier=Difference(0.0, -0.01, 0.01)
    )
    by_corruption = CalibrationDifferences(ece_width15_debiased=Difference(0.02, 0.01, 0.03))
    corrupted = CorruptedDifferences(MEANS, 5 * (MEANS,), by_corruption)
    table = differences_table("a, seed 0", comparison(make_evaluated, clean=clean, corrupted=corrupted))
    assert table.caption.startswith("a, seed 0 − b, seed 3 (b-3), with 95 % intervals over images")
    assert [(column.label, column.unit) for column in table.columns[1:]] == [("Clean", ""), ("-C", "")]
    assert [(row.label, *(entry.text for entry in row.entries)) for row in table.rows] == [
        ("Error, points", "−1.00 (−2.00 to +0.50)", "+10.00 (+5.00 to +15.00)"),
        ("NLL, nats", "+0.050 (+0.010 to +0.090)", "+0.100 (+0.050 to +0.150)"),
        ("Brier", "0.000 (−0.010 to +0.010)", "+0.100 (+0.050 to +0.150)"),
        ("ECE, points", "–", "+2.00 (+1.00 to +3.00)"),
    ]


def test_no_headlines_on_other_images(make_evaluated: MakeEvaluated) -> None:
    other = comparison(make_evaluated)
    table = differences_table("a, seed 0", other)
    assert [column.unit for column in table.columns[1:]] == ["not the same images", "not in both runs"]
    shift = Shift(Source("official"), 10, "test", ("fog",), (1, 2))
    has_cells = differences_table("a, seed 0", replace(other, made_from=replace(other.made_from, corrupted=shift)))
    assert [column.unit for column in has_cells.columns[1:]] == 2 * ["not the same images"]
    assert {entry.text for row in table.rows for entry in row.entries} == {"–"}


def test_outside_images_have_a_table(make_evaluated: MakeEvaluated) -> None:
    letters = OutsideDifference(OutsideImages(1200, "a key"), Difference(0.0304, 0.00004, 0.0607))
    photos = OutsideDifference(OutsideImages(50), Difference(-0.5, -0.6, -0.4))
    one = shown(make_evaluated, comparison(make_evaluated, outside={"letters": letters, "photos": photos}))
    assert one.outside is not None
    assert [(row.label, *(entry.text for entry in row.entries)) for row in one.outside.rows] == [
        ("letters", "+0.03040", "+0.00004 to +0.06070"),
        ("photos", "−0.500", "−0.600 to −0.400"),
    ]
    assert shown(make_evaluated, comparison(make_evaluated)).outside is None
