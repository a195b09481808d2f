"""Committed results: which count for a row, and how they stand beside the paper's."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

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
from counterpoint.reproduction.tables import page, table_lines, terminal_tables
from counterpoint.storage.files import read_json

PAPER, SHORT = find_schedule("paper"), find_schedule("short")
SINGLE = RowRun("cifar10/single", PAPER, 0)


def figures(error: float) -> dict[str, float]:
    return {"error": error, "ece_width15": error / 2, "ece_rms_width15": error / 4}


def results(run: RowRun, error: float = 0.0421) -> dict[str, Any]:
    """What results.json holds, as far as a row's result takes it."""
    cell = {"ensemble": figures(0.3), "members": [figures(0.3)], "reliability": {"width15": [1, 2]}, "honest": {}}
    aggregates = {"by-corruption": figures(5 * error), "by-cell": figures(0.9), "pooled": figures(0.9)}
    made = {"device": "a machine", "commit": "0123456789abcdef", "versions": {}}
    segments = [{"step": 0, "path": "compiled", **made}, {"step": 9, "path": "fast", **made, "commit": "89abcdef"}]
    return {
        "schema": 7,
        "experiment": run.row,
        "config": to_dict(run.experiment),
        "run": {"seed": run.seed, "command": "counterpoint train", "train_seconds": 500.0, "segments": segments},
        "evaluation": {"seconds": 100.0, **made},
        "evaluated_on": {"dataset": "cifar10", "part": "validation", "images": 5000},
        "clean": {"ensemble": figures(error), "members": [figures(error)], "reliability": {"width15": [1, 2]}},
        "corrupted": {
            "source": {"kind": "regenerated", "seed": 0, "version": "1", "frost": "photographs"},
            "images": 10000,
            "aggregates": {"ensemble": aggregates, "members": [aggregates]},
            "cells": {name: [cell] * 5 for name in CORRUPTIONS},
            "risk_coverage": [{"coverage": [1], "risk": [1]}],
        },
    }


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "runs", tmp_path / "results")


def begin(folders: Folders, run: RowRun, epoch: int) -> None:
    folder = folders.runs / run.place
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"experiment": to_dict(run.experiment)}))
    lines = [{"event": "started", "step": 0}, *({"event": "epoch", "epoch": i} for i in range(1, epoch + 1))]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"event": "ep')


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
    path = write_result(folders.results, SINGLE, results(SINGLE) | added)
    assert path == folders.results / "cifar10" / "single" / "paper-0.json"
    kept = read_result(folders.results, SINGLE)
    assert kept is not None
    assert not added.keys() & kept.keys()
    assert kept["clean"] == {"ensemble": figures(0.0421), "members": [figures(0.0421)]}
    assert kept["corrupted"]["cells"] == {name: [{"ensemble": figures(0.3)}] * 5 for name in CORRUPTIONS}
    assert "risk_coverage" not in kept["corrupted"]
    for part in ("run", "evaluation", "evaluated_on", "config"):
        assert kept[part] == results(SINGLE)[part]
    assert path.stat().st_size < 100_000


def test_a_result_keeps_the_networks_health(folders: Folders) -> None:
    one = {"below_eps": 12, "dead_scales": 407, "spread_r": 0.1234567, "spread_s": None}
    health = {"channels": 12608, "epochs": [{"epoch": i} | one for i in range(1, 12)], "warnings": []}
    without = write_result(folders.results, SINGLE, results(SINGLE)).stat().st_size
    path = write_result(folders.results, SINGLE, results(SINGLE) | {"health": health})
    kept = json.loads(path.read_text())["health"]
    assert kept["epochs"][-1] == {"epoch": 11} | one | {"spread_r": 0.123457}
    assert path.stat().st_size - without < 2000


def test_only_the_rows_own_configuration_counts(folders: Folders) -> None:
    short = RowRun(SINGLE.row, SHORT, 0)
    with pytest.raises(InputError, match="not those of cifar10/single at the schedule 'paper'"):
        write_result(folders.results, SINGLE, results(short))
    path = write_result(folders.results, SINGLE, results(SINGLE))
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
    path = write_result(folders.results, SINGLE, results(SINGLE))
    whole = path.read_text()
    path.write_text(whole[:-20])
    with pytest.raises(InputError, match=r"paper-0.json is not a whole JSON file"):
        read_result(folders.results, SINGLE)
    path.write_text(whole.replace('"schema": 1', '"schema": 2'))
    with pytest.raises(InputError, match="is not a result that `counterpoint reproduce` wrote"):
        read_result(folders.results, SINGLE)


def test_ours_stand_beside_the_papers(folders: Folders) -> None:
    for seed, error in ((0, 0.04), (1, 0.05)):
        run = RowRun(SINGLE.row, PAPER, seed)
        write_result(folders.results, run, results(run, error))
    begin(folders, RowRun(SINGLE.row, PAPER, 0), 200)
    begin(folders, RowRun(SINGLE.row, PAPER, 2), 86)
    begin(folders, RowRun("cifar10/be+sd", PAPER, 0), 3)
    single, plain, depth = table_lines(["cifar10/single", "cifar10/batch-ensemble", "cifar10/be+sd"], PAPER, folders)
    assert single.status == "n = 2, 20.0 min; seed 2: epoch 86 of 200"
    assert (single.ours[:2], single.theirs[:2]) == (("4.50 ± 0.71", "2.25 ± 0.35"), ("4.18", "1.25"))
    assert (single.ours[3], single.theirs[3]) == ("22.50 ± 3.54", "26.5")
    assert (plain.status, plain.ours[:2], plain.theirs[:2]) == ("not run", ("–", "–"), ("3.96", "1.57"))
    assert depth.status == "seed 0: epoch 3 of 250"


def test_one_seed_has_no_spread(folders: Folders) -> None:
    write_result(folders.results, SINGLE, results(SINGLE))
    assert table_lines([SINGLE.row], PAPER, folders)[0].ours[0] == "4.21"


def test_a_short_result_says_so_and_nothing_about_clean_calibration(folders: Folders) -> None:
    run = RowRun("cifar10/single", SHORT, 0)
    write_result(folders.results, run, results(run))
    assert table_lines([run.row], PAPER, folders)[0].status == "not run"
    line = table_lines([run.row], SHORT, folders)[0]
    assert line.ours == ("4.21", "–", "–", "21.05", "10.53", "5.26")
    assert line.theirs == ("4.18", "1.25", "3.20", "26.5", "13.5", "15.4")
    text = page(folders)
    assert "## Schedule short: a fifth of the paper's epochs" in text
    assert "its figures do not stand for the paper's. Clean calibration is left out" in text
    paper_section, short_section = text.split("## Schedule short")
    assert "4.21" not in paper_section
    assert "4.21/4.18" in short_section


def test_a_smoke_result_shows_that_the_row_runs_and_no_figure(folders: Folders) -> None:
    run = RowRun("cifar10/single", find_schedule("smoke"), 0)
    write_result(folders.results, run, results(run))
    paper_section, smoke_section = page(folders).split("## Schedule smoke")
    assert "Nothing was run yet." in paper_section
    assert "[cifar10/single/smoke-0](../results/cifar10/single/smoke-0.json) | 10.0 |" in smoke_section
    assert "4.21" not in smoke_section
    assert "/4.18" not in smoke_section


def test_only_a_results_own_file_is_one(folders: Folders) -> None:
    path = write_result(folders.results, SINGLE, results(SINGLE))
    for name in ("paper-0.json.bak", "paper-0 (copy).json", "paper-.json"):
        path.with_name(name).write_text(path.read_text())
    assert table_lines([SINGLE.row], PAPER, folders)[0].status == "n = 1, 10.0 min"


def test_the_page_shows_what_is_under_way_before_any_result(folders: Folders) -> None:
    begin(folders, SINGLE, 5)
    assert "| `cifar10/single` | seed 0: epoch 5 of 200 |" in page(folders)


def test_a_run_with_other_settings_is_not_under_way(folders: Folders) -> None:
    assert epochs_done(folders.runs, SINGLE) is None
    begin(folders, SINGLE, 5)
    assert epochs_done(folders.runs, SINGLE) == 5
    path = folders.runs / SINGLE.place / "run.json"
    path.write_text(json.dumps({"experiment": to_dict(replace(SINGLE.experiment, epochs=20))}))
    assert epochs_done(folders.runs, SINGLE) is None


def test_the_page_has_every_row_and_where_results_come_from(folders: Folders) -> None:
    assert page(folders).count("##") == 1  # with nothing run, only the paper's schedule, without tables
    write_result(folders.results, SINGLE, results(SINGLE))
    text = page(folders)
    for row in select_rows("all"):
        assert text.count(f"`{row}`") == 1
    assert text.count("not run") == 35
    assert (
        "| [cifar10/single/paper-0](../results/cifar10/single/paper-0.json) | 10.0 | a machine | compiled, fast | "
        "0123456, 89abcde | 5,000 validation images | regenerated (seed 0, frost: photographs), "
        "10,000 images per cell |"
    ) in text
    assert "Schedule short" not in text


def test_the_terminal_shows_each_table_and_data_set(folders: Folders) -> None:
    write_result(folders.results, SINGLE, results(SINGLE))
    console = Console(width=80, record=True, file=io.StringIO())
    for table in terminal_tables(select_rows("table2"), PAPER, folders):
        console.print(table)
    shown = console.export_text().splitlines()
    assert [line.strip() for line in shown if line.startswith("Table")] == [
        "Table 2, CIFAR-10, schedule paper (the paper's epochs)",
        "Table 2, CIFAR-100, schedule paper (the paper's epochs)",
    ]
    at = next(number for number, line in enumerate(shown) if line.startswith("single"))
    ours, theirs = (" ".join(line.split()) for line in shown[at : at + 2])
    assert ours == "single n = 1, 10.0 min 4.21 2.10 1.05 21.05 10.53 5.26"
    assert theirs == "the paper 4.18 1.25 3.20 26.5 13.5 15.4"


def test_a_smoke_result_has_no_figure_of_the_paper_beside_it(folders: Folders) -> None:
    run = RowRun(SINGLE.row, find_schedule("smoke"), 0)
    write_result(folders.results, run, results(run))
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(*terminal_tables([run.row], run.schedule, folders))
    shown = console.export_text()
    assert "4.21" in shown
    assert "4.18" not in shown


def test_a_narrow_terminal_cuts_no_figure_short(folders: Folders) -> None:
    for seed, error in ((0, 0.04), (1, 0.05)):
        run = RowRun(SINGLE.row, PAPER, seed)
        write_result(folders.results, run, results(run, error))
    console = Console(width=60, record=True, file=io.StringIO())
    for table in terminal_tables(select_rows("table2"), PAPER, folders):
        console.print(table)
    assert "…" not in console.export_text()


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
