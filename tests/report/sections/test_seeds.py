from statistics import mean, stdev
from typing import Any
from xml.etree import ElementTree

import pytest

from counterpoint.config import Experiment, to_dict
from counterpoint.report import render
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.seeds import seeds
from counterpoint.report.tables import Table
from tests.report.made import EXTRA, MakeEvaluated, changed, changed_all


def runs_of(make_evaluated: MakeEvaluated, numbers: tuple[int, ...], **more: Any) -> list[ReportedRun]:
    return label_runs([make_evaluated("a", members=1, seed=seed, **more) for seed in numbers])


def tables(runs: list[ReportedRun]) -> tuple[Table, ...]:
    content = seeds(runs)
    return tuple(one.table for one in content.sets) if content else ()


@pytest.mark.parametrize("suite", ["corrupted", f"shifts.{EXTRA}"])
def test_mean_and_standard_deviation_over_seeds(make_evaluated: MakeEvaluated, suite: str) -> None:
    headline = f"results.{suite}.aggregates.ensemble.by-corruption"
    shifted_figures = [(0.2 + 0.01 * i**2, 1.5 - 0.1 * i**2) for i in range(3)]
    runs = label_runs(
        [
            changed_all(
                make_evaluated("a", members=1, seed=seed, shifted=suite == "corrupted", extra=suite != "corrupted"),
                {f"{headline}.error": error, f"{headline}.nll": nll},
            )
            for seed, (error, nll) in enumerate(shifted_figures)
        ]
    )
    clean, shifted = tables(runs)
    assert clean.caption == "Spread over seeds on digits, test part, 120 images"
    assert shifted.caption.endswith("images per cell: by-corruption")
    for table, figures in (
        (clean, [(run.clean.ensemble.error, run.clean.ensemble.nll) for run in runs]),
        (shifted, shifted_figures),
    ):
        assert [(column.label, column.unit) for column in table.columns[1:]] == [("a", "n = 3 seeds")]
        shown = {row.label: row.entries[0].text for row in table.rows}
        errors, nlls = [100 * error for error, _ in figures], [nll for _, nll in figures]
        assert shown["Error, %"] == f"{mean(errors):.2f} ± {stdev(errors):.2f}"
        assert shown["NLL, nats"] == f"{mean(nlls):.3f} ± {stdev(nlls):.3f}"


def test_one_seed_has_no_spread(make_evaluated: MakeEvaluated) -> None:
    assert seeds(runs_of(make_evaluated, (0,), shifted=True)) is None


def test_a_seed_counts_once_with_its_first_run(make_evaluated: MakeEvaluated) -> None:
    assert seeds(runs_of(make_evaluated, (1, 1))) is None
    first, again, other = (make_evaluated("a", members=1, seed=seed) for seed in (1, 1, 2))
    again = changed(again, "results.clean.ensemble.error", 0.9)
    (table,) = tables(label_runs([first, again, other]))
    assert table.columns[1].unit == "n = 2 seeds"
    assert table == tables(label_runs([first, other]))[0]


@pytest.mark.parametrize(("path", "value"), [("config.epochs", 3), ("evaluated_on.part", "validation")])
def test_only_the_seed_may_differ(make_evaluated: MakeEvaluated, path: str, value: Any) -> None:
    one, other = (make_evaluated("a", members=1, seed=seed) for seed in (0, 1))
    assert seeds(label_runs([one, changed(other, f"results.{path}", value)])) is None


def test_a_figure_that_one_run_lacks_is_left_out(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated("a", members=1, seed=seed) for seed in (0, 1))
    (table,) = tables(label_runs([changed(one, "results.clean.ensemble.aurc", None), other]))
    labels = [row.label for row in table.rows]
    assert "Error, %" in labels
    assert "AURC, %" not in labels


def test_a_column_for_each_experiment(make_evaluated: MakeEvaluated) -> None:
    runs = [
        changed(make_evaluated(name, members=1, seed=seed), "results.config.epochs", epochs)
        for name, epochs in (("a", 17), ("b", 3))
        for seed in (0, 1)
    ]
    (table,) = tables(label_runs(runs))
    assert [column.label for column in table.columns] == ["Metric", "a", "b"]
    advice = "shows how far they differ, with an interval over seeds"
    assert advice in render(runs)
    assert advice not in render(runs[:2]), "there is nothing to compare"


def test_columns_of_one_name_are_told_apart_by_their_settings(make_evaluated: MakeEvaluated) -> None:
    runs = [
        changed(make_evaluated("a", members=1, seed=seed, shifted=epochs == 3), "results.config.epochs", epochs)
        for epochs, numbers in ((17, (0, 1)), (3, (2, 5, 7)))
        for seed in numbers
    ]
    clean, shifted = tables(label_runs(runs))
    assert [(column.label, column.unit) for column in clean.columns[1:]] == [
        ("a (epochs 17)", "n = 2 seeds"),
        ("a (epochs 3)", "n = 3 seeds"),
    ]
    assert [column.label for column in shifted.columns[1:]] == ["a (epochs 3)"], "the same name on every set of images"


def test_results_from_before_a_setting_existed_belong_to_the_same_experiment(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated("a", members=1, seed=seed) for seed in (0, 1))
    settings = to_dict(Experiment("a", "digits", num_members=None))
    earlier = {key: value for key, value in settings.items() if key != "ensemble"}
    runs = [changed(run, "results.config", config) for run, config in ((one, settings), (other, earlier))]
    (table,) = tables(label_runs(runs))
    assert table.columns[1].unit == "n = 2 seeds"


def test_each_seed_has_its_marker_in_a_plot_of_error_and_one_of_ece(make_evaluated: MakeEvaluated) -> None:
    runs = runs_of(make_evaluated, (0, 1, 2), shifted=True)
    content = seeds(runs)
    assert content is not None
    assert [len(one.plots) for one in content.sets] == [2, 2]
    for one in content.sets:
        images = one.table.caption.removeprefix("Spread over seeds on ")
        assert all(f"of each seed on {images}." in plot.caption for plot in one.plots)
    error, ece = content.sets[0].plots
    for plot, values in (
        (error, [run.clean.ensemble.error for run in runs]),
        (ece, [run.clean.ensemble.ece_width15 for run in runs]),
    ):
        titles = [one.text or "" for one in ElementTree.fromstring(plot.svg).iter("title")]
        assert [text.split()[-2] for text in titles] == [f"{100 * value:.2f}" for value in values]
        assert [text.partition("\n")[0] for text in titles] == [run.label for run in runs]
