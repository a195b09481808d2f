from typing import Any

import pytest

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.records.files import Evaluated
from counterpoint.report.run import label_runs
from counterpoint.report.sections.heat_maps import HeatMap, heat_maps
from counterpoint.report.suites import corruption_label
from tests.report.made import EXTRA, MakeEvaluated, changed, changed_all

CELLS = "results.corrupted.cells"


@pytest.fixture
def two_runs(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    return [make_evaluated("many", members=2, shifted=True), make_evaluated("one", members=1, shifted=True)]


def by_key(runs: list[Evaluated]) -> dict[str, HeatMap]:
    content = heat_maps(label_runs(runs))
    assert content is not None
    assert content.panels == content.maps
    return {heat_map.key.removeprefix("map-"): heat_map for heat_map in content.maps}


def cells_of(run: Evaluated, name: str) -> Any:
    assert run.results.corrupted is not None
    return run.results.corrupted.cells[name]


def every_cell(path: str, value: float) -> dict[str, float]:
    return {f"{CELLS}.{name}.{i}.{path}": value for name in CORRUPTIONS for i in range(5)}


def test_one_map_per_metric_and_one_table_per_run(two_runs: list[Evaluated]) -> None:
    maps = by_key(two_runs)
    assert {key: len(heat_map.tables) for key, heat_map in maps.items()} == {
        "error": 3,  # with the difference
        "ece-width15": 3,
        "ece-rms-width15": 2,
        "nll": 2,
        "brier": 2,
        "overconfidence": 2,
        "ece-width15-excess": 2,
        "disagreement": 1,
        "pairwise-kl": 1,
    }
    assert not {"disagreement", "pairwise-kl"} & set(by_key(two_runs[1:]))


def test_a_run_without_floors_has_no_map_of_the_excess(two_runs: list[Evaluated]) -> None:
    old = changed(two_runs[0], f"{CELLS}.fog.3.honest", None)
    assert [table.caption for table in by_key([old, two_runs[1]])["ece-width15-excess"].tables] == [
        "one: ECE excess, equal-width 15, points; 40 images per cell"
    ]
    assert "ece-width15-excess" not in by_key([old])


def test_the_excess_is_what_exceeds_the_floor(two_runs: list[Evaluated]) -> None:
    heat_map = by_key(two_runs)["ece-width15-excess"]
    entries = heat_map.tables[0].rows[CORRUPTIONS.index("snow")].entries
    expected = [
        100 * (cell.ensemble.ece_width15 - cell.honest.ensemble["ece_width15"].floor)
        for cell in cells_of(two_runs[0], "snow")
    ]
    assert [float(entry.text.replace("−", "-")) for entry in entries] == pytest.approx(expected, abs=0.0501)
    assert heat_map.sign_means == "above zero: more than noise would show"


@pytest.mark.parametrize(
    ("key", "places", "factor"),
    [("error", 1, 100), ("ece_width15", 1, 100), ("ece_rms_width15", 1, 100), ("nll", 2, 1), ("brier", 2, 1)],
)
def test_every_cell_is_its_figure(two_runs: list[Evaluated], key: str, places: int, factor: int) -> None:
    tables = by_key(two_runs)[key.replace("_", "-")].tables
    for run, table in zip(two_runs, tables[:2], strict=True):
        assert [row.label for row in table.rows] == [*map(corruption_label, CORRUPTIONS), "Mean of 15"]
        grid = [[getattr(cell.ensemble, key) * factor for cell in cells_of(run, name)] for name in CORRUPTIONS]
        grid.append([sum(column) / 15 for column in zip(*grid, strict=True)])
        for row, values in zip(table.rows, grid, strict=True):
            assert [float(entry.text) for entry in row.entries] == pytest.approx(values, abs=0.501 * 10**-places)


def test_disagreement_is_that_of_the_cells(two_runs: list[Evaluated]) -> None:
    (table,) = by_key(two_runs)["disagreement"].tables
    cells = cells_of(two_runs[0], "gaussian_noise")
    assert [entry.text for entry in table.rows[0].entries] == [f"{100 * cell.disagreement:.1f}" for cell in cells]


def test_the_scale_is_shared_by_the_runs_on_a_suite(two_runs: list[Evaluated]) -> None:
    heat_map = by_key(two_runs)["nll"]
    (suite,) = heat_map.suites
    cells = [(entry.heat, float(entry.text)) for table in suite.tables for row in table.rows for entry in row.entries]
    deepest = float(suite.deepest)
    assert deepest == 3, "a round number above the largest value"
    assert 2 < max(value for _, value in cells) <= deepest
    for heat, value in cells:
        assert heat == pytest.approx(100 * value / deepest, abs=1.5)


def test_suites_have_scales_of_their_own(make_evaluated: MakeEvaluated) -> None:
    extra = f"results.shifts.{EXTRA}.cells.spatter.0.ensemble.nll"
    run = changed(make_evaluated("many", members=1, shifted=True, extra=True), extra, 30.0)
    papers, others = by_key([run])["nll"].suites
    assert float(papers.deepest) < 5
    assert others.deepest == "30"
    (table,) = others.tables
    assert table.caption == f"many on {EXTRA}: NLL, nats; 40 images per cell"
    assert [row.label for row in table.rows] == ["Speckle noise", "Gaussian blur", "Spatter", "Saturate", "Mean of 4"]


def test_a_suite_s_own_severities(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=1, extra=True)
    cells = {name: row[:2] for name, row in run.results.shifts[EXTRA].cells.items()}
    few = changed_all(run, {f"results.shifts.{EXTRA}.cells": cells, f"results.shifts.{EXTRA}.severities": (2, 7)})
    (table,) = by_key([few])["error"].tables
    assert [column.label for column in table.columns] == ["Severity", "2", "7"]


def test_over_confidence_has_two_colours(two_runs: list[Evaluated]) -> None:
    values = every_cell("ensemble.overconfidence", 0.0) | {
        f"{CELLS}.fog.0.ensemble.overconfidence": 0.4,
        f"{CELLS}.fog.1.ensemble.overconfidence": -0.2,
    }
    heat_map = by_key([changed_all(two_runs[0], values)])["overconfidence"]
    fog = heat_map.tables[0].rows[CORRUPTIONS.index("fog")]
    assert heat_map.sign_means == "above zero: over-confident"
    assert heat_map.suites[0].deepest == "40"
    assert [(entry.text, entry.heat) for entry in fog.entries[:3]] == [("+40.0", 100), ("−20.0", -50), ("0.0", 0)]


def test_a_metric_that_is_zero_everywhere_has_no_colour(two_runs: list[Evaluated]) -> None:
    (table,) = by_key([changed_all(two_runs[1], every_cell("ensemble.error", 0.0))])["error"].tables
    assert {(entry.text, entry.heat) for row in table.rows for entry in row.entries} == {("0.0", 0)}


@pytest.mark.parametrize(
    ("key", "noise"),
    [("error", 0.19), ("ece_width15", 0.1)],  # 2 √(2 · 0.2 · 0.8 / 40) = 0.179, and two floors of 0.05
)
def test_a_difference_within_noise_has_brackets_and_no_colour(
    two_runs: list[Evaluated], key: str, noise: float
) -> None:
    plain = every_cell("ensemble.error", 0.2) | every_cell("ensemble.ece_width15", 0.2)
    plain |= every_cell("honest.ensemble.ece_width15.floor", 0.05)
    ours, theirs = (changed_all(run, plain) for run in two_runs)
    places = {f"{CELLS}.fog.{i}.ensemble.{key}": 0.2 + step for i, step in enumerate((-noise - 0.01, 0.05, 0.4))}
    (suite,) = by_key([changed_all(ours, places), theirs])[key.replace("_", "-")].suites
    assert suite.difference is not None
    (table,) = suite.difference.tables
    assert table.caption.startswith(f"many − one: {'Error' if key == 'error' else 'ECE'} difference, points")
    assert suite.difference.deepest == "40"
    fog = table.rows[CORRUPTIONS.index("fog")]
    first = -100 * (noise + 0.01)
    assert [(entry.text, entry.heat) for entry in fog.entries[:4]] == [
        (f"−{-first:.1f}", round(first / 0.4)),
        ("(+5.0)", 0),
        ("+40.0", 100),
        ("(0.0)", 0),
    ]


def test_without_a_suite_there_is_nothing(make_evaluated: MakeEvaluated) -> None:
    assert heat_maps(label_runs([make_evaluated(members=1)])) is None
