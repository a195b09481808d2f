"""Committed results: which count for a row, and how they stand beside the paper's."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.config import to_dict
from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS, is_row
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.rows import (
    Folders,
    RowRun,
    epochs_done,
    parse_seeds,
    read_result,
    select_rows,
    write_result,
)
from counterpoint.storage.files import read_json
from tests.made_rows import begin_row, row_figures, row_results

PAPER, SHORT = find_schedule("paper"), find_schedule("short")
SINGLE = RowRun("cifar10/single", PAPER, 0)


def test_tables_and_words_select_rows() -> None:
    assert [len(select_rows(table)) for table in ("table1", "table2", "table3", "all")] == [16, 14, 6, 36]
    assert select_rows("table2", ["cifar10 single", "cifar100/be+sd"]) == ["cifar10/single", "cifar100/be+sd"]
    assert select_rows("table3", ["single cifar10"]) == select_rows("table3")[:3]
    assert (
        select_rows("table1", ["test", "cifar10 single-am-bern-0.875 test"])[0] == "cifar10/single-am-bern-0.875/test"
    )
    with pytest.raises(InputError, match="unknown table 'table4'"):
        select_rows("table4")
    with pytest.raises(InputError, match="no row of table1 fits 'cifar10/single' or 'be"):
        select_rows("table1", ["cifar10/single", "be+sd"])
    with pytest.raises(InputError, match="no experiment has 'imagenet' in its name"):
        select_rows("all", ["imagenet"])


def test_seeds() -> None:
    assert parse_seeds("0") == [0]
    assert parse_seeds("2, 0,2") == [2, 0]
    for wrong in ("", "a", "1,", "-1", "0.5"):
        with pytest.raises(InputError, match="they must be whole numbers separated by commas"):
            parse_seeds(wrong)


def test_a_result_keeps_every_figure_and_no_list_of_them(folders: Folders) -> None:
    added = {"recalibrated": {"fitted_on": {}}, "against": [{"run": "/somewhere"}]}
    path = write_result(folders.results, SINGLE, row_results(SINGLE) | added)
    assert path == folders.results / "cifar10" / "single" / "paper-0.json"
    kept = read_result(folders.results, SINGLE)
    assert kept is not None
    assert not added.keys() & kept.keys()
    assert kept["clean"] == {"ensemble": row_figures(0.0421), "members": [row_figures(0.0421)]}
    assert kept["corrupted"]["cells"] == {name: [{"ensemble": row_figures(0.3)}] * 5 for name in CORRUPTIONS}
    assert "risk_coverage" not in kept["corrupted"]
    for part in ("run", "evaluation", "evaluated_on", "config"):
        assert kept[part] == row_results(SINGLE)[part]
    assert path.stat().st_size < 100_000


def test_a_result_keeps_the_networks_health(folders: Folders) -> None:
    epoch = {"below_eps": 12, "dead_scales": 407, "spread_r": 0.1234567, "spread_s": None}
    health = {"channels": 12608, "epochs": [{"epoch": i} | epoch for i in range(1, 12)], "warnings": []}
    without = write_result(folders.results, SINGLE, row_results(SINGLE)).stat().st_size
    path = write_result(folders.results, SINGLE, row_results(SINGLE) | {"health": health})
    kept = json.loads(path.read_text())["health"]
    assert kept["epochs"][-1] == {"epoch": 11} | epoch | {"spread_r": 0.123457}
    assert path.stat().st_size - without < 2000


def test_only_the_rows_own_configuration_counts(folders: Folders) -> None:
    short = RowRun(SINGLE.row, SHORT, 0)
    with pytest.raises(InputError, match="not those of cifar10/single at the schedule 'paper'"):
        write_result(folders.results, SINGLE, row_results(short))
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    right = json.loads(path.read_text())
    for wrong in (
        {"config": to_dict(short.experiment)},
        {"config": to_dict(replace(SINGLE.experiment, decay_rs=False))},
        {"config": right["config"] | {"colour": "red"}},
        {"run": right["run"] | {"seed": 1}},
    ):
        path.write_text(json.dumps(right | wrong))
        assert read_result(folders.results, SINGLE) is None
    path.write_text(json.dumps(right | {"config": {k: v for k, v in right["config"].items() if k != "steps"}}))
    assert read_result(folders.results, SINGLE) is not None


def test_a_damaged_result_is_named(folders: Folders) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    whole = path.read_text()
    path.write_text(whole[:-20])
    with pytest.raises(InputError, match=r"paper-0.json is not a whole JSON file"):
        read_result(folders.results, SINGLE)
    path.write_text(whole.replace('"schema": 1', '"schema": 2'))
    with pytest.raises(InputError, match="is not a result that `counterpoint reproduce` wrote"):
        read_result(folders.results, SINGLE)


def test_a_run_with_other_settings_is_not_under_way(folders: Folders) -> None:
    assert epochs_done(folders.runs, SINGLE) is None
    begin_row(folders, SINGLE, 5)
    assert epochs_done(folders.runs, SINGLE) == 5
    path = folders.runs / SINGLE.place / "run.json"
    path.write_text(json.dumps({"experiment": to_dict(replace(SINGLE.experiment, epochs=20))}))
    assert epochs_done(folders.runs, SINGLE) is None


RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = sorted(path.relative_to(RESULTS) for path in RESULTS.glob("cifar*/**/*-[0-9].json"))


@pytest.mark.parametrize("path", COMMITTED, ids=str)
def test_a_committed_result_counts_and_says_how_it_was_made(path: Path) -> None:
    schedule, seed = path.stem.split("-")
    result = read_result(RESULTS, RowRun(path.parent.as_posix(), find_schedule(schedule), int(seed)))
    assert result is not None
    assert result["schedule"] == schedule
    for made in (result["run"], result["evaluation"]):
        assert re.fullmatch(r"counterpoint (train|evaluate|reproduce) [^/][^ ]*( (?!/)[^ ]+)*", made["command"])
        assert re.match(r"[0-9a-f]{7}", made["commit"])
        assert {"python", "torch", "numpy"} <= set(made["versions"])
        assert made["device"]
    assert result["run"]["train_seconds"] > 0
    assert result["evaluation"]["seconds"] > 0
    assert result["corrupted"]["source"].get("frost", "photographs") == "photographs"


WITHOUT_WARMUP = sorted((RESULTS / "without-warmup").rglob("*.json"))


@pytest.mark.parametrize("path", WITHOUT_WARMUP, ids=lambda path: path.relative_to(RESULTS).as_posix())
def test_a_result_without_a_warm_up_counts_for_no_row(path: Path) -> None:
    config = read_json(path)["config"]
    assert config["name"] in EXPERIMENTS
    assert not is_row(config)
    warmed_up = EXPERIMENTS[config["name"]].warmup_steps
    assert is_row(config | {"warmup_steps": warmed_up}), "nothing else is missing"
