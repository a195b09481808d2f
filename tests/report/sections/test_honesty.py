import pytest

from counterpoint.report.run import AGGREGATES, CALIBRATION, ReportedRun
from counterpoint.report.sections.honesty import HonestPanel, honesty
from tests.report.made import MakeEvaluated, changed, changed_all


def numbers(text: str) -> list[float]:
    return [float(part) / 100 for part in text.replace("−", "-").split(" to ")]


@pytest.fixture
def run(make_evaluated: MakeEvaluated) -> ReportedRun:
    return ReportedRun("mine", make_evaluated(members=2, shifted=True))


def panels_of(*runs: ReportedRun) -> tuple[HonestPanel, ...]:
    content = honesty(runs)
    assert content is not None
    assert content.panels == content.errors
    return content.errors


def test_every_entry_is_its_estimate(run: ReportedRun) -> None:
    panels = panels_of(run)
    assert [panel.key for panel in panels] == [f"honest-{key.replace('_', '-')}" for key in CALIBRATION]
    honest = run.clean.honest
    assert honest is not None
    for key, panel in zip(CALIBRATION, panels, strict=True):
        (chart,) = panel.clean
        assert [row.label for row in chart.table.rows] == ["mine", "member 1", "member 2"]
        all_figures = [run.clean.ensemble, *run.clean.members]
        for row, estimates, figures in zip(
            chart.table.rows, [honest.ensemble, *honest.members], all_figures, strict=True
        ):
            shown = [number for entry in row.entries for number in numbers(entry.text)]
            one = estimates[key]
            expected = [getattr(figures, key), one.floor, one.excess, one.debiased, one.low, one.high]
            assert shown == pytest.approx(expected, abs=5.001e-5)


def test_under_shift_there_are_floors_and_the_headline_has_an_interval(run: ReportedRun) -> None:
    assert run.results.corrupted is not None
    aggregates = run.results.corrupted.aggregates
    for key, panel in zip(CALIBRATION, panels_of(run), strict=True):
        (table,) = panel.corrupted
        assert [row.label for row in table.rows] == ["mine: by-corruption", "by-cell", "pooled"]
        for row, aggregate in zip(table.rows, AGGREGATES, strict=True):
            figures = aggregates.ensemble[aggregate]
            value, floor = getattr(figures, key), getattr(figures, f"{key}_floor")
            shown = [numbers(entry.text)[0] for entry in row.entries[:3]]
            assert shown == pytest.approx([value, floor, value - floor], abs=5.001e-5)
        estimate = getattr(aggregates.intervals, f"{key}_debiased")
        shown = [number for entry in table.rows[0].entries[3:] for number in numbers(entry.text)]
        assert shown == pytest.approx([estimate.value, estimate.low, estimate.high], abs=5.001e-5)
        assert [[entry.text for entry in row.entries[3:]] for row in table.rows[1:]] == [["–", "–"], ["–", "–"]]


def test_results_of_an_earlier_version_have_no_interval_under_shift(run: ReportedRun) -> None:
    earlier = ReportedRun("mine", changed(run.evaluated, "results.corrupted.aggregates.intervals", None))
    (table,) = panels_of(earlier)[0].corrupted
    assert [entry.text for entry in table.rows[0].entries[3:]] == ["–", "–"]
    assert table.rows[0].entries[:3] == panels_of(run)[0].corrupted[0].rows[0].entries[:3]


def test_the_words_name_the_estimator_and_the_images(run: ReportedRun) -> None:
    first = panels_of(run)[0]
    assert first.label == "ECE, equal-width 15"
    assert first.clean[0].table.caption == "ECE, equal-width 15, on digits, test part, 120 images"
    assert "mine: observed" in first.clean[0].svg
    assert "over images" in first.clean[0].table.columns[-1].unit


def test_runs_without_estimates_are_left_out(run: ReportedRun, make_evaluated: MakeEvaluated) -> None:
    floors = {
        f"results.corrupted.aggregates.ensemble.{aggregate}.{key}_floor": None
        for aggregate in AGGREGATES
        for key in CALIBRATION
    }
    evaluated = changed_all(make_evaluated(members=1, shifted=True), {"results.clean.honest": None, **floors})
    old = ReportedRun("old", evaluated)
    assert honesty([old]) is None
    for panel in panels_of(run, old):
        assert "old" not in [row.label for table in panel.tables for row in table.rows]


def test_members_without_estimates_are_left_out(run: ReportedRun) -> None:
    lone = ReportedRun("mine", changed(run.evaluated, "results.clean.honest.members", ()))
    assert [row.label for row in panels_of(lone)[0].clean[0].table.rows] == ["mine"]


def test_different_images_are_apart(run: ReportedRun, make_evaluated: MakeEvaluated) -> None:
    other = changed(make_evaluated(members=1), "results.evaluated_on.part", "validation")
    panel = panels_of(run, ReportedRun("other", other))[0]
    assert [[row.label for row in chart.table.rows] for chart in panel.clean] == [
        ["mine", "member 1", "member 2"],
        ["other"],
    ]


def test_floors_of_an_earlier_version_are_said_to_be_too_low(run: ReportedRun, make_evaluated: MakeEvaluated) -> None:
    """They took the cells of an image as independent. The page shows them beside others, and names the run."""
    new = honesty([run])
    assert new is not None
    assert new.too_low == ()
    earlier = changed(make_evaluated(members=1, shifted=True), "results.corrupted.aggregates.floors_over", "cells")
    both = honesty([run, ReportedRun("old", earlier)])
    assert both is not None
    (sentence,) = both.too_low
    assert "of old. It took the cells of an image as independent, so these floors are too low" in sentence
    (block,) = both.blocks()
    assert block.parts[-1] == sentence
