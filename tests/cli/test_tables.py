"""The tables that the commands print."""

import io
import itertools
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from counterpoint.cli.tables import data_table, evaluation_parts, experiments_table, results_table
from counterpoint.data.fetch import Status
from counterpoint.experiments import EXPERIMENTS, select_experiments


def lines(table: Table | str, width: int = 200) -> list[list[str]]:
    """The words of each printed line."""
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [line.split() for line in out.getvalue().splitlines()]


def figures(error: float) -> dict[str, float]:
    return {"error": error, "ece_width15": error / 2, "ece_rms_width15": error / 4}


def results(members: int) -> dict[str, Any]:
    def aggregates(error: float, **floor: float) -> dict[str, dict[str, float]]:
        return {"by-corruption": figures(error) | floor, "by-cell": figures(0.99), "pooled": figures(0.98)}

    def honest(floor: float) -> dict[str, dict[str, float]]:
        return {"ece_width15": {"floor": floor}}

    return {
        "experiment": "digits/quickstart",
        "evaluated_on": {"dataset": "digits", "part": "test", "images": 1450},
        "clean": {
            "ensemble": figures(0.04),
            "members": [figures(0.08)] * members,
            "honest": {"ensemble": honest(0.005), "members": [honest(0.006)] * members},
        },
        "corrupted": {
            "source": {"kind": "regenerated"},
            "images": 1450,
            "aggregates": {
                "ensemble": aggregates(0.2, ece_width15_floor=0.01),
                "members": [aggregates(0.4)] * members,
            },
        },
    }


def test_figures_are_percents_of_the_headline_aggregate() -> None:
    shown = lines(results_table(results(members=2)))
    assert " ".join(shown[0]) == "digits/quickstart on 1,450 digits test images, and on -C"
    assert [" ".join(line) for line in shown[2:6]] == [
        "ensemble clean 4.00 2.00 0.50 1.50 1.00",
        "-C 20.00 10.00 1.00 9.00 5.00",
        "member 1 clean 8.00 4.00 0.60 3.40 2.00",
        "-C 40.00 20.00 – – 10.00",
    ]
    assert shown[6][:2] == ["member", "2"]
    assert len(shown) == 8


def test_results_from_before_the_floors_have_dashes() -> None:
    old = results(members=2)
    del old["clean"]["honest"]
    assert lines(results_table(old))[2] == ["ensemble", "clean", "4.00", "2.00", "–", "–", "1.00"]


def scaled(temperature: float | list[float], nll: float) -> dict[str, Any]:
    headline = {"nll": 2 * nll, "ece_width15": 0.03}
    return {
        "temperature": temperature,
        "clean": {"ensemble": {"nll": nll, "ece_width15": 0.01}},
        "corrupted": {"ensemble": {"by-corruption": headline}},
    }


def test_what_was_asked_for_is_printed_too() -> None:
    assert evaluation_parts(results(members=2))[1:] == ["-C: regenerated, 1,450 images per cell."]
    difference = {"difference": -0.01, "low": -0.02, "high": 0.005}
    means = dict.fromkeys(("error", "nll", "brier"), difference)
    asked = {
        "collapse": {"verdict": "The members differ clearly."},
        "recalibrated": {
            "clean_how": "cross-fitted",
            "corrupted_how": "temperature of all",
            "ways": {"before": scaled(1.25, 0.5), "per-member": scaled([1.5, 0.75], 0.25)},
        },
        "against": [
            {
                "experiment": "digits/single",
                "seed": 3,
                "run": "folder",
                "clean": means | {"ece_width15_debiased": difference},
                "corrupted": {"mean": means},
            },
            {
                "experiment": "digits/single",
                "seed": 4,
                "run": "later",
                "clean": None,
                "corrupted": {"mean": means, "by_corruption": {"ece_width15_debiased": difference}},
            },
            {"experiment": "digits/other", "seed": 0, "run": "b", "clean": None, "corrupted": None},
        ],
    }
    parts = [lines(part) for part in evaluation_parts(results(members=2) | asked)]
    _, _, verdict, recalibrated, first, later, second = parts
    assert verdict == [["The", "members", "differ", "clearly."]]
    assert (
        " ".join(recalibrated[0] + recalibrated[1]) == "with temperatures; clean: cross-fitted; -C: temperature of all"
    )
    assert recalibrated[3] == ["before", "1.250", "0.5000", "1.00", "1.0000", "3.00"]
    assert recalibrated[4] == ["per-member", "1.500", "0.750", "0.2500", "1.00", "0.5000", "3.00"]
    assert [" ".join(line) for line in first] == [
        "this run − digits/single, seed 3 (folder), with 95 % intervals over images",
        "clean -C",
        "error % -1.00 (-2.00 to +0.50) -1.00 (-2.00 to +0.50)",
        "NLL -0.0100 (-0.0200 to +0.0050) -0.0100 (-0.0200 to +0.0050)",
        "Brier -0.0100 (-0.0200 to +0.0050) -0.0100 (-0.0200 to +0.0050)",
        "debiased ECE % -1.00 (-2.00 to +0.50) –",
    ]
    assert " ".join(later[-1]) == "debiased ECE % – -1.00 (-2.00 to +0.50)"
    assert " ".join(second[2]) == "clean: not the same images -C: not the same images"
    assert second[3] == ["error", "%", "–", "–"]


def test_lost_channels_are_warned_of() -> None:
    health = {"channels": 9, "epochs": [], "warnings": ["Many are lost."]}
    assert evaluation_parts(results(members=2) | {"health": health})[2:] == ["warning: Many are lost."]
    for healthy in (None, health | {"warnings": []}):
        assert evaluation_parts(results(members=2) | {"health": healthy})[2:] == []


def test_a_plain_network_has_one_line() -> None:
    assert [line[0] for line in lines(results_table(results(members=1)))[2:]] == ["network", "-C"]


def test_experiments_say_what_sets_them_apart() -> None:
    printed = [" ".join(line) for line in lines(experiments_table(select_experiments(["cifar10"])))]
    for line in (
        "cifar10/single single split 200 –",
        "cifar10/be+sd-not-diverse 4 split 250 drop rate 0.075",
        "cifar10/be+adv-not-diverse 4 split 250 adv 0–0.15 p 0.875 shuffled",
        "cifar10/am-beta 4 split 250 AugMix 1–4 beta 1",
    ):
        assert line in printed
    combined = printed.index("cifar10/am-bern-0.875+adv/test 4 all 250 AugMix 1–4 p 0.875")
    assert printed[combined + 1] == "adv 0–0.15 p 0.875"


def test_no_experiment_takes_more_than_two_lines_of_80_columns() -> None:
    printed = lines(experiments_table(EXPERIMENTS.values()), width=80)[1:]
    named = [line[0] in EXPERIMENTS for line in printed]
    assert sum(named) == 38
    assert all(here or before for before, here in itertools.pairwise(named)), "no two lines without a name"
    short = printed[[line[0] for line in printed].index("cifar100/am-bern-0.875")]
    assert " ".join(short[-4:]) == "AugMix 1–4 p 0.875", "on one line"


def test_data_sets_say_where_they_are_or_what_to_do() -> None:
    rows = [Status("cifar10", "/data/c10", 184_000_000, None), Status("cifar10-c", "not found", 0, "run this")]
    shown = lines(data_table(Path("/data"), rows))
    assert shown[2] == ["cifar10", "184", "MB", "/data/c10"]
    assert shown[3] == ["cifar10-c", "run", "this"]
