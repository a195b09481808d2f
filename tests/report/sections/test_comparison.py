from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.comparison import comparisons

MakeResults = Callable[..., dict[str, Any]]


def difference(value: float, low: float, high: float) -> dict[str, float]:
    return {"difference": value, "low": low, "high": high}


def a_run(make_results: MakeResults, **parts: Any) -> ReportedRun:
    other = {"experiment": "b", "seed": 3, "run": "b-3", "clean": None, "corrupted": None, **parts}
    return ReportedRun("a", {**make_results(members=1), "against": [other]})


def test_differences_by_hand(make_results: MakeResults) -> None:
    clean = {
        "error": difference(-0.0123, -0.02, -0.004),
        "nll": difference(0.05, 0.01, 0.09),
        "brier": difference(0.0, -0.01, 0.01),
        "ece_rms_mass15_debiased": difference(0.001, 0.0, 0.002),
    }
    (one,) = comparisons([a_run(make_results, clean=clean)])
    assert one.label == "a − b, seed 3"
    (chart,) = one.charts
    assert [(row.label, [entry.text for entry in row.entries]) for row in chart.table.rows] == [
        ("Error", ["−1.23 points", "−2.00 to −0.40", "lower"]),
        ("NLL", ["+0.050 nats", "+0.010 to +0.090", "higher"]),
        ("Brier", ["0.000", "−0.010 to +0.010", "not told apart"]),
        ("ECE-rms (equal-mass 15, debiased)", ["+0.10 points", "0.00 to +0.20", "not told apart"]),
    ]
    assert one.words == (
        "On clean images this run is lower in Error (0 is outside the interval); "
        "higher in NLL (0 is outside the interval); "
        "not told from the other in Brier, ECE-rms (equal-mass 15, debiased) (0 is inside the interval).",
    )
    assert one.severities is None


def test_corrupted_images_and_each_severity(make_results: MakeResults) -> None:
    run = ReportedRun("a", make_results(members=2, shifted=True, more=True))
    (one,) = comparisons([run])
    corrupted = run.results["against"][0]["corrupted"]
    assert [chart.table.caption.split(": ")[1] for chart in one.charts] == [
        "clean images",
        "corrupted images (each image’s mean over the 75 cells)",
        "corrupted images, by corruption (each image with all its cells)",
    ]
    assert [row.label for row in one.charts[2].table.rows] == [
        f"{metric} ({binning} 15, debiased)"
        for binning in ("equal-width", "equal-mass")
        for metric in ("ECE", "ECE-rms")
    ]
    ece = corrupted["by_corruption"]["ece_width15_debiased"]
    ends = one.charts[2].table.rows[0].entries[1].text.replace("−", "-").split(" to ")
    assert [float(text) for text in ends] == pytest.approx([100 * ece["low"], 100 * ece["high"]], abs=0.0051)
    shown = one.charts[1].table.rows[0].entries[0].text
    assert float(shown.removesuffix(" points").replace("−", "-")) == pytest.approx(
        100 * corrupted["mean"]["error"]["difference"], abs=0.0051
    )
    assert one.severities is not None
    assert [row.label for row in one.severities.rows] == [
        f"Severity {severity}: {name}" for severity in range(1, 6) for name in ("Error", "NLL", "Brier")
    ]
    last = one.severities.rows[-3].entries[1].text.replace("−", "-").split(" to ")
    error = corrupted["severities"][4]["error"]
    assert [float(text) for text in last] == pytest.approx([100 * error["low"], 100 * error["high"]], abs=0.0051)


def test_only_the_images_that_both_have(make_results: MakeResults) -> None:
    errors = {key: difference(0.1, 0.05, 0.15) for key in ("error", "nll", "brier")}
    (one,) = comparisons([a_run(make_results, corrupted={"mean": errors, "severities": 5 * [errors]})])
    assert len(one.charts) == len(one.words) == 1
    assert one.words[0].startswith("On corrupted images")


def test_a_metric_of_a_later_version_is_left_alone(make_results: MakeResults) -> None:
    clean = {key: difference(0.1, 0.05, 0.15) for key in ("error", "nll", "brier", "wisdom")}
    (one,) = comparisons([a_run(make_results, clean=clean)])
    assert [row.label for row in one.charts[0].table.rows] == ["Error", "NLL", "Brier"]


def test_runs_that_were_not_compared(make_results: MakeResults) -> None:
    assert comparisons([ReportedRun("a", make_results(members=1))]) == ()
