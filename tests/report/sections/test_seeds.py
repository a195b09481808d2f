from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.seeds import seeds_tables

MakeResults = Callable[..., dict[str, Any]]


def runs_of(make_results: MakeResults, seeds: tuple[int, ...], **more: Any) -> list[ReportedRun]:
    return label_runs([make_results("a", members=1, seed=seed, **more) for seed in seeds])


def test_mean_and_standard_deviation_over_seeds(make_results: MakeResults) -> None:
    runs = runs_of(make_results, (0, 1, 2), shifted=True)
    for i, run in enumerate(runs):
        run.aggregate("by-corruption")["ensemble"].update(error=0.2 + 0.01 * i**2, nll=1.5 - 0.1 * i**2)
    clean, shifted = seeds_tables(runs)
    assert clean.caption == "Spread over seeds on digits, test part, 120 images"
    assert shifted.caption.endswith("40 images per cell: by-corruption")
    for table, figures in (
        (clean, [run.clean["ensemble"] for run in runs]),
        (shifted, [run.aggregate("by-corruption")["ensemble"] for run in runs]),
    ):
        assert [(column.label, column.unit) for column in table.columns[1:]] == [("a", "n = 3 seeds")]
        shown = {row.label: row.entries[0].text for row in table.rows}
        error = [100 * one["error"] for one in figures]
        nll = [one["nll"] for one in figures]
        assert shown["Error, %"] == f"{mean(error):.2f} ± {stdev(error):.2f}"
        assert shown["NLL, nats"] == f"{mean(nll):.3f} ± {stdev(nll):.3f}"


def test_one_seed_has_no_spread(make_results: MakeResults) -> None:
    assert seeds_tables(runs_of(make_results, (0,), shifted=True)) == []


def test_a_seed_counts_once(make_results: MakeResults) -> None:
    assert seeds_tables(runs_of(make_results, (1, 1))) == []
    (table,) = seeds_tables(runs_of(make_results, (1, 1, 2)))
    assert table.columns[1].unit == "n = 2 seeds"


@pytest.mark.parametrize(("part", "key", "value"), [("config", "epochs", 3), ("evaluated_on", "part", "validation")])
def test_only_the_seed_may_differ(make_results: MakeResults, part: str, key: str, value: Any) -> None:
    results = [make_results("a", members=1, seed=seed) for seed in (0, 1)]
    results[1][part][key] = value
    assert seeds_tables(label_runs(results)) == []


def test_a_figure_that_one_run_lacks_is_left_out(make_results: MakeResults) -> None:
    results = [make_results("a", members=1, seed=seed) for seed in (0, 1)]
    del results[0]["clean"]["ensemble"]["aurc"]
    (table,) = seeds_tables(label_runs(results))
    labels = [row.label for row in table.rows]
    assert "Error, %" in labels
    assert "AURC, %" not in labels


def test_a_column_for_each_experiment(make_results: MakeResults) -> None:
    results = [make_results(name, members=1, seed=seed) for name in ("a", "b") for seed in (0, 1)]
    for one in results[2:]:
        one["config"]["epochs"] = 3
    (table,) = seeds_tables(label_runs(results))
    assert [column.label for column in table.columns] == ["Metric", "a", "b"]
