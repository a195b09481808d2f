from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.run import CALIBRATION, ReportedRun
from counterpoint.report.sections.honesty import honest_panels

MakeResults = Callable[..., dict[str, Any]]


def numbers(text: str) -> list[float]:
    return [float(part) / 100 for part in text.replace("−", "-").split(" to ")]


@pytest.fixture
def run(make_results: MakeResults) -> ReportedRun:
    return ReportedRun("mine", make_results(members=2, shifted=True))


def test_every_entry_is_its_estimate(run: ReportedRun) -> None:
    panels = honest_panels([run])
    assert [panel.key for panel in panels] == [f"honest-{key.replace('_', '-')}" for key in CALIBRATION]
    honest = run.clean["honest"]
    for key, panel in zip(CALIBRATION, panels, strict=True):
        (chart,) = panel.clean
        assert [row.label for row in chart.table.rows] == ["mine", "member 1", "member 2"]
        scores = [run.clean["ensemble"], *run.clean["members"]]
        for row, estimates, figures in zip(
            chart.table.rows, [honest["ensemble"], *honest["members"]], scores, strict=True
        ):
            shown = [number for entry in row.entries for number in numbers(entry.text)]
            expected = [
                figures[key],
                *(estimates[key][part] for part in ("floor", "excess", "debiased", "low", "high")),
            ]
            assert shown == pytest.approx(expected, abs=5.001e-5)


def test_under_shift_there_are_floors_and_no_intervals(run: ReportedRun) -> None:
    for key, panel in zip(CALIBRATION, honest_panels([run]), strict=True):
        (table,) = panel.corrupted
        assert [row.label for row in table.rows] == ["mine: by-corruption", "by-cell", "pooled"]
        assert not any("Interval" in column.label for column in table.columns)
        for row, aggregate in zip(table.rows, ("by-corruption", "by-cell", "pooled"), strict=True):
            figures = run.corrupted["aggregates"]["ensemble"][aggregate]
            value, floor = figures[key], figures[f"{key}_floor"]
            shown = [numbers(entry.text)[0] for entry in row.entries]
            assert shown == pytest.approx([value, floor, value - floor], abs=5.001e-5)


def test_the_words_name_the_estimator_and_the_images(run: ReportedRun) -> None:
    first = honest_panels([run])[0]
    assert first.label == "ECE, equal-width 15"
    assert first.clean[0].table.caption == "ECE, equal-width 15, on digits, test part, 120 images"
    assert "mine: observed" in first.clean[0].svg
    assert "over images" in first.clean[0].table.columns[-1].unit


def test_runs_without_estimates_are_left_out(run: ReportedRun, make_results: MakeResults) -> None:
    old = make_results(members=1, shifted=True)
    del old["clean"]["honest"]
    for figures in old["corrupted"]["aggregates"]["ensemble"].values():
        for key in CALIBRATION:
            del figures[f"{key}_floor"]
    assert honest_panels([ReportedRun("old", old)]) == ()
    panels = honest_panels([run, ReportedRun("old", old)])
    assert all("old" not in [row.label for table in panel.tables for row in table.rows] for panel in panels)


def test_different_images_are_apart(run: ReportedRun, make_results: MakeResults) -> None:
    other = make_results(members=1)
    other["evaluated_on"]["part"] = "validation"
    panel = honest_panels([run, ReportedRun("other", other)])[0]
    assert [[row.label for row in chart.table.rows] for chart in panel.clean] == [
        ["mine", "member 1", "member 2"],
        ["other"],
    ]
