from collections.abc import Callable
from typing import Any

import pytest

from counterpoint import config
from counterpoint.experiments import EXPERIMENTS
from counterpoint.experiments.paper import PAPER
from counterpoint.report.run import label_runs
from counterpoint.report.sections.paper import beside_paper

MakeResults = Callable[..., dict[str, Any]]
NAME = "cifar10/single"


@pytest.fixture
def make_row(make_results: MakeResults) -> Callable[..., dict[str, Any]]:
    """Results that stand for a row of the paper, with changes to its configuration."""

    def make(name: str = NAME, seed: int = 0, *changes: str) -> dict[str, Any]:
        results = make_results(name, members=1, seed=seed, shifted=True)
        results["config"] = config.to_dict(config.override(EXPERIMENTS[name], changes))
        results["evaluated_on"] = {"dataset": "cifar10", "part": "validation", "images": 5_000}
        results["corrupted"]["images"] = 10_000
        return results

    return make


def lines(*results: dict[str, Any]) -> dict[str, list[str]]:
    (part,) = beside_paper(label_runs(results))
    return {row.label: [entry.text for entry in row.entries] for row in part.table.rows}


def test_ours_less_the_papers(make_row: Callable[..., dict[str, Any]]) -> None:
    results = make_row()
    results["clean"]["ensemble"].update(error=0.0518, ece_width15=0.01, ece_rms_width15=0.032)
    results["corrupted"]["aggregates"]["ensemble"]["by-corruption"].update(
        error=0.255, ece_width15=0.135, ece_rms_width15=0.16
    )
    assert lines(results) == {
        "Vanilla ResNeXt: the paper": ["4.18", "1.25", "3.20", "26.50", "13.50", "15.40"],
        "ours, seed 0": ["5.18", "1.00", "3.20", "25.50", "13.50", "16.00"],
        "difference": ["+1.00", "−0.25", "0.00", "−1.00", "0.00", "+0.60"],
    }


def test_a_shortened_run_stands_beside_the_row_without_a_difference(make_row: Callable[..., dict[str, Any]]) -> None:
    results = make_row(NAME, 0, "epochs=20")
    assert list(lines(results)) == [
        "Vanilla ResNeXt: the paper",
        "ours, seed 0, another configuration (epochs: 200 → 20)",
    ]


def test_many_changes_are_counted(make_row: Callable[..., dict[str, Any]]) -> None:
    changes = ("epochs=20", "batch_size=64", "momentum=0.5", "learning_rate=0.2", "weight_decay=0")
    (label,) = [label for label in lines(make_row(NAME, 0, *changes)) if label.startswith("ours")]
    assert label.endswith(" and 2 more)")
    assert label.count("→") == 3


def test_a_configuration_of_another_version(make_row: Callable[..., dict[str, Any]]) -> None:
    results = make_row()
    results["config"] = {"name": NAME, "later": 1}
    assert "ours, seed 0, another configuration" in lines(results)


def test_several_seeds_have_the_difference_of_their_mean(make_row: Callable[..., dict[str, Any]]) -> None:
    runs = [make_row(NAME, seed) for seed in (0, 1)] + [make_row(NAME, 2, "epochs=20")]
    for results, error in zip(runs, (0.05, 0.06, 0.5), strict=True):
        results["clean"]["ensemble"]["error"] = error
    shown = lines(*runs)
    assert shown["difference, mean of 2 runs"][0] == "+1.32"
    assert len(shown) == 5


@pytest.mark.parametrize(
    ("part", "label"),
    [
        ("clean", "ours, seed 0, clean on 150 images only"),
        ("corrupted", "ours, seed 0, -C on 150 images per cell only"),
    ],
)
def test_a_part_of_the_images_is_not_the_rows(make_row: Callable[..., dict[str, Any]], part: str, label: str) -> None:
    results = make_row()
    (results["evaluated_on"] if part == "clean" else results["corrupted"])["images"] = 150
    shown = lines(results)
    absent = slice(0, 3) if part == "clean" else slice(3, 6)
    assert shown[label][absent] == shown["difference"][absent] == 3 * ["–"]
    assert shown[label].count("–") == shown["difference"].count("–") == 3


def test_without_a_corrupted_set(make_row: Callable[..., dict[str, Any]]) -> None:
    results = make_row()
    del results["corrupted"]
    assert lines(results)["ours, seed 0, -C not run"][3:] == 3 * ["–"]


def test_the_other_rows_of_the_table_are_not_run(make_row: Callable[..., dict[str, Any]]) -> None:
    (part,) = beside_paper(label_runs([make_row()]))
    assert part.title == "Table 2, CIFAR-10"
    assert part.not_run is not None
    others = [row for name, row in PAPER.items() if row.table == 2 and name.startswith("cifar10/") and name != NAME]
    assert [row.label for row in part.not_run.rows] == [f"{row.label}: not run" for row in others]
    assert part.not_run.rows[0].entries[0].text == f"{100 * others[0].clean.error:.2f}"


def test_one_part_per_table_and_data_set(make_row: Callable[..., dict[str, Any]]) -> None:
    names = [NAME, "cifar10/am-beta", "cifar100/single", "cifar10/batch-ensemble"]
    titles = [part.title for part in beside_paper(label_runs([make_row(name) for name in names]))]
    assert sorted(titles) == ["Table 1, CIFAR-10", "Table 2, CIFAR-10", "Table 2, CIFAR-100"]


def test_runs_that_the_paper_has_not(make_results: MakeResults) -> None:
    assert beside_paper(label_runs([make_results("digits/quickstart")])) == ()
