"""The tables that the commands print."""

import io
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from counterpoint.data.fetch import Status
from counterpoint.experiments import select_experiments
from counterpoint.terminal import data_table, experiments_table, results_table


def lines(table: Table) -> list[list[str]]:
    """The words of each printed line."""
    out = io.StringIO()
    Console(file=out, width=200).print(table)
    return [line.split() for line in out.getvalue().splitlines()]


def figures(error: float) -> dict[str, float]:
    return {"error": error, "ece_width15": error / 2, "ece_rms_width15": error / 4}


def results(members: int) -> dict[str, Any]:
    def aggregates(error: float) -> dict[str, dict[str, float]]:
        return {"by-corruption": figures(error), "by-cell": figures(0.99), "pooled": figures(0.98)}

    return {
        "experiment": "digits/quickstart",
        "evaluated_on": {"dataset": "digits", "part": "test", "images": 1450},
        "clean": {"ensemble": figures(0.04), "members": [figures(0.08)] * members},
        "corrupted": {"aggregates": {"ensemble": aggregates(0.2), "members": [aggregates(0.4)] * members}},
    }


def test_figures_are_percents_of_the_headline_aggregate() -> None:
    shown = lines(results_table(results(members=2)))
    assert " ".join(shown[0]) == "digits/quickstart on 1,450 digits test images, and on -C"
    assert shown[2] == ["ensemble", "4.00", "2.00", "1.00", "20.00", "10.00", "5.00"]
    assert shown[3] == ["member", "1", "8.00", "4.00", "2.00", "40.00", "20.00", "10.00"]
    assert shown[4][:2] == ["member", "2"]


def test_a_plain_network_has_one_line() -> None:
    assert [line[0] for line in lines(results_table(results(members=1)))[2:]] == ["network"]


def test_experiments_say_what_sets_them_apart() -> None:
    shown = {line[0]: " ".join(line[1:]) for line in lines(experiments_table(select_experiments(["cifar10"])))}
    assert shown["cifar10/single"] == "single split 200 –"
    assert shown["cifar10/be+sd-not-diverse"] == "4 split 250 drop rate 0.075"
    assert shown["cifar10/be+adv-not-diverse"] == "4 split 250 adversarial 0 0.05 0.1 0.15 shuffled p 0.875"
    combined = "AugMix 1 2 3 4 p 0.875, adversarial 0 0.05 0.1 0.15 p 0.875"
    assert shown["cifar10/am-bern-0.875+adv/test"] == f"4 all 250 {combined}"
    assert shown["cifar10/am-beta"] == "4 split 250 AugMix 1 2 3 4 beta 1"


def test_data_sets_say_where_they_are_or_what_to_do() -> None:
    rows = [Status("cifar10", "/data/c10", 184_000_000, None), Status("cifar10-c", "not found", 0, "run this")]
    shown = lines(data_table(Path("/data"), rows))
    assert shown[2] == ["cifar10", "184", "MB", "/data/c10"]
    assert shown[3] == ["cifar10-c", "run", "this"]
