from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.drawing.heatmaps import HeatMap, heat_maps
from counterpoint.report.run import CORRUPTIONS, ReportedRun

MakeResults = Callable[..., dict[str, Any]]


@pytest.fixture
def two_runs(make_results: MakeResults) -> list[ReportedRun]:
    return [
        ReportedRun("many", make_results(members=2, shifted=True)),
        ReportedRun("one", make_results(members=1, shifted=True)),
    ]


def by_key(runs: list[ReportedRun]) -> dict[str, HeatMap]:
    return {heat_map.key.removeprefix("map-"): heat_map for heat_map in heat_maps(runs)}


def test_one_map_per_metric_and_one_table_per_run(two_runs: list[ReportedRun]) -> None:
    maps = by_key(two_runs)
    assert {key: len(heat_map.tables) for key, heat_map in maps.items()} == {
        "error": 2,
        "ece-width15": 2,
        "ece-rms-width15": 2,
        "nll": 2,
        "brier": 2,
        "overconfidence": 2,
        "ece-width15-excess": 2,
        "disagreement": 1,
        "pairwise-kl": 1,
    }
    assert not {"disagreement", "pairwise-kl"} & set(by_key(two_runs[1:]))


def test_a_run_without_floors_has_no_map_of_the_excess(two_runs: list[ReportedRun]) -> None:
    del two_runs[0].corrupted["cells"]["fog"][3]["honest"]
    assert [table.caption for table in by_key(two_runs)["ece-width15-excess"].tables] == [
        "one: ECE excess, equal-width 15, points"
    ]
    assert "ece-width15-excess" not in by_key(two_runs[:1])


def test_the_excess_is_what_exceeds_the_floor(two_runs: list[ReportedRun]) -> None:
    cells = two_runs[0].corrupted["cells"]["snow"]
    heat_map = by_key(two_runs)["ece-width15-excess"]
    shown = [
        float(entry.text.replace("−", "-"))
        for entry in heat_map.tables[0].rows[list(CORRUPTIONS).index("snow")].entries
    ]
    expected = [
        100 * (cell["ensemble"]["ece_width15"] - cell["honest"]["ensemble"]["ece_width15"]["floor"]) for cell in cells
    ]
    assert shown == pytest.approx(expected, abs=0.0501)
    assert heat_map.sign_means == "above zero: more than noise would show"


@pytest.mark.parametrize(
    ("key", "places", "factor"),
    [("error", 1, 100), ("ece_width15", 1, 100), ("ece_rms_width15", 1, 100), ("nll", 2, 1), ("brier", 2, 1)],
)
def test_every_cell_is_its_figure(two_runs: list[ReportedRun], key: str, places: int, factor: int) -> None:
    tables = by_key(two_runs)[key.replace("_", "-")].tables
    for run, table in zip(two_runs, tables, strict=True):
        assert [row.label for row in table.rows] == [*CORRUPTIONS.values(), "Mean of 15"]
        grid = [[cell["ensemble"][key] * factor for cell in run.corrupted["cells"][name]] for name in CORRUPTIONS]
        grid.append([sum(column) / 15 for column in zip(*grid, strict=True)])
        for row, values in zip(table.rows, grid, strict=True):
            assert [float(entry.text) for entry in row.entries] == pytest.approx(values, abs=0.501 * 10**-places)


def test_disagreement_is_that_of_the_cells(two_runs: list[ReportedRun]) -> None:
    (table,) = by_key(two_runs)["disagreement"].tables
    cells = two_runs[0].corrupted["cells"]["gaussian_noise"]
    assert [entry.text for entry in table.rows[0].entries] == [f"{100 * cell['disagreement']:.1f}" for cell in cells]


def test_the_scale_is_shared_by_the_runs(two_runs: list[ReportedRun]) -> None:
    heat_map = by_key(two_runs)["nll"]
    cells = [
        (entry.heat, float(entry.text)) for table in heat_map.tables for row in table.rows for entry in row.entries
    ]
    deepest = max(cells)
    assert deepest == (100, float(heat_map.deepest))
    assert deepest[1] == max(text for _, text in cells)
    for heat, value in cells:
        assert heat == pytest.approx(100 * value / deepest[1], abs=1.5)


def test_over_confidence_has_two_colours(two_runs: list[ReportedRun]) -> None:
    results = two_runs[0].results
    for row in results["corrupted"]["cells"].values():
        for cell in row:
            cell["ensemble"]["overconfidence"] = 0.0
    results["corrupted"]["cells"]["fog"][0]["ensemble"]["overconfidence"] = 0.4
    results["corrupted"]["cells"]["fog"][1]["ensemble"]["overconfidence"] = -0.2
    heat_map = by_key(two_runs[:1])["overconfidence"]
    fog = heat_map.tables[0].rows[list(CORRUPTIONS).index("fog")]
    assert heat_map.sign_means == "above zero: over-confident"
    assert heat_map.deepest == "40.0"
    assert [(entry.text, entry.heat) for entry in fog.entries[:3]] == [("+40.0", 100), ("−20.0", -50), ("0.0", 0)]


def test_a_metric_that_is_zero_everywhere_has_no_colour(two_runs: list[ReportedRun]) -> None:
    for row in two_runs[1].corrupted["cells"].values():
        for cell in row:
            cell["ensemble"]["error"] = 0.0
    (table,) = by_key(two_runs[1:])["error"].tables
    assert {(entry.text, entry.heat) for row in table.rows for entry in row.entries} == {("0.0", 0)}
