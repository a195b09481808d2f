"""Committed results: which count for a row, and how they stand beside the paper's."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.config import from_dict, to_dict
from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS, config_hash, is_row
from counterpoint.experiments.schedules import find_schedule
from counterpoint.records.codec import decode, encode
from counterpoint.records.compared import Compared
from counterpoint.records.files import read_record
from counterpoint.records.over_seeds import ComparedExperiments
from counterpoint.records.results import HealthAfter, HealthRecord, Results
from counterpoint.reproduction.rows import (
    Folders,
    RowRun,
    epochs_done,
    keep_small,
    parse_seeds,
    read_result,
    select_rows,
    write_result,
)
from counterpoint.runs.folder import MOST_SEED
from counterpoint.storage.files import read_json
from tests.made_results import make_results
from tests.made_rows import begin_row, row_results

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
    with pytest.raises(InputError, match="no row of table1 fits 'cifar10/single' or 'be") as elsewhere:
        select_rows("table1", ["cifar10/single", "be+sd"])
    assert str(elsewhere.value).endswith(
        "other tables have cifar10/single (table2), cifar10/be+sd (table2), cifar10/be+sd-not-diverse (table2), "
        "cifar100/be+sd (table2), cifar100/be+sd-not-diverse (table2)"
    )
    with pytest.raises(InputError, match="`counterpoint experiments` lists the names"):
        select_rows("table1", ["digits"])
    with pytest.raises(InputError, match="unknown word in an experiment's name 'imagenet'"):
        select_rows("all", ["imagenet"])


def test_seeds() -> None:
    assert parse_seeds("0") == [0]
    assert parse_seeds("2, 0,2") == [2, 0]
    assert parse_seeds(str(MOST_SEED)) == [MOST_SEED]
    for wrong in ("", "a", "1,", "-1", "1 2", "0,1 2", "0.5", "²", str(MOST_SEED + 1), "9" * 5000):
        with pytest.raises(InputError, match="they must be whole numbers separated by commas"):
            parse_seeds(wrong)


def rounded(results: Results) -> Results:
    return decode(Results, encode(results, lambda number: round(number, 6)))


def whole_results() -> Results:
    """A row's results with everything that an evaluation can add."""
    made = make_results()
    return replace(
        row_results(SINGLE), shifts=made.shifts, collapse=made.collapse, health=made.health, outside=made.outside
    )


def test_a_result_comes_back_without_bins_and_curves(folders: Folders) -> None:
    results = replace(whole_results(), collapse=None)  # it is of two severities, and the row has five
    path = write_result(folders.results, SINGLE, results)
    assert path == folders.results / "cifar10" / "single" / "paper-0.json"
    assert read_result(folders.results, SINGLE) == rounded(keep_small(results))
    assert path.stat().st_size < 100_000


def test_a_small_result_keeps_every_figure_and_no_list_of_them() -> None:
    results = whole_results()
    kept = keep_small(results)
    assert kept.clean == replace(results.clean, reliability=None, member_reliability=(), risk_coverage=None)
    for name, suite in kept.suites.items():
        whole = results.suites[name]
        assert suite == replace(whole, cells=suite.cells, risk_coverage=(), member_bins=())
        assert suite.cells.keys() == whole.cells.keys()
        for cell, of_whole in zip(suite.all_cells(), whole.all_cells(), strict=True):
            assert cell == replace(of_whole, members=(), honest=None, reliability=None, risk_coverage=None)
    assert list(kept.suites) == ["corrupted", "validation-extra"]
    assert kept == replace(results, clean=kept.clean, corrupted=kept.corrupted, shifts=kept.shifts)
    assert keep_small(kept) == kept
    assert keep_small(replace(results, corrupted=None)).corrupted is None


def test_the_file_has_what_others_rely_on(folders: Folders) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    values = json.loads(path.read_text())
    assert list(values)[:3] == ["schema", "schedule", "hash"]
    assert (values["schema"], values["schedule"], values["experiment"]) == (2, "paper", "cifar10/single")
    assert values["hash"] == config_hash(SINGLE.experiment)
    assert values["config"] == to_dict(SINGLE.experiment)
    assert values["clean"]["ensemble"]["error"] == 0.0421
    assert values["corrupted"]["aggregates"]["ensemble"]["by-corruption"]["error"] == 0.2105
    assert len(values["corrupted"]["cells"]) == 15


def test_figures_are_rounded_to_six_digits(folders: Folders) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE, error=1 / 7))
    kept = read_result(folders.results, SINGLE)
    assert kept is not None
    assert kept.clean.ensemble.error == 0.142857
    assert "0.1428571" not in path.read_text()


def test_a_result_keeps_the_networks_health(folders: Folders) -> None:
    epochs = tuple(HealthAfter(i, 12, 407, 0.1234567, None) for i in range(1, 12))
    without = write_result(folders.results, SINGLE, row_results(SINGLE)).stat().st_size
    results = replace(row_results(SINGLE), health=HealthRecord(12608, epochs, ()))
    path = write_result(folders.results, SINGLE, results)
    kept = read_result(folders.results, SINGLE)
    assert kept is not None
    assert kept.health is not None
    assert kept.health.epochs[-1] == HealthAfter(11, 12, 407, 0.123457, None)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "is damaged or is not JSON"),
        (lambda text: text.replace('"schema": 2', '"schema": 1'), "has schema 1, of an earlier counterpoint"),
        (lambda text: text.replace('"error": 0.0421', '"error": "low"'), "clean.ensemble.error is 'low'"),
        (lambda text: text.replace('"train_seconds"', '"train_secs"'), "run.train_seconds is missing"),
    ],
    ids=["cut", "schema", "figure", "missing"],
)
def test_a_damaged_result_is_named(folders: Folders, change: Callable[[str], str], message: str) -> None:
    path = write_result(folders.results, SINGLE, row_results(SINGLE))
    path.write_text(change(path.read_text()))
    with pytest.raises(
        InputError, match=rf"paper-0\.json .*{re.escape(message)}.*; restore it, or move it away and run"
    ):
        read_result(folders.results, SINGLE)


def test_a_run_with_other_settings_is_not_under_way(folders: Folders) -> None:
    assert epochs_done(folders.runs, SINGLE) is None
    begin_row(folders, SINGLE, 5)
    assert epochs_done(folders.runs, SINGLE) == 5
    path = folders.runs / SINGLE.place / "run.json"
    path.write_text(json.dumps({"experiment": to_dict(replace(SINGLE.experiment, epochs=20))}))
    assert epochs_done(folders.runs, SINGLE) is None


RESULTS = Path(__file__).parents[2] / "results"
ROWS = sorted(
    path.relative_to(RESULTS) for name in ("cifar10", "cifar100") for path in RESULTS.glob(f"{name}/**/*-[0-9].json")
)
WITHOUT_WARMUP = sorted((RESULTS / "without-warmup").rglob("*.json"))
RECORDS = [
    *(path for name in ("figures.json", "results.json") for path in sorted(RESULTS.rglob(name))),
    *(RESULTS / path for path in ROWS),
    *sorted(RESULTS.glob("*__*/*-[0-9].json")),
    *WITHOUT_WARMUP,
    *sorted((RESULTS / "comparisons").glob("*.json")),
]
PLAIN_FIGURES = [RESULTS / name / "figures.json" for name in ("cifar10-batch-ensemble-short-decay", "linear-layer-cpu")]
"""A few numbers of several runs: no records."""


COMMANDS = r"(counterpoint (train|evaluate|reproduce)|python benchmarks/row_in_one_go\.py)"
"""What trains or evaluates a row."""


def shown(path: Path) -> str:
    return path.relative_to(RESULTS).as_posix()


def kind_of(path: Path) -> type[Results | Compared | ComparedExperiments]:
    if path.parent.name != "comparisons":
        return Results
    return ComparedExperiments if path.stem.endswith("-over-seeds") else Compared


@pytest.mark.parametrize("path", [path for path in RECORDS if path not in PLAIN_FIGURES], ids=shown)
def test_every_committed_record_can_be_read(path: Path) -> None:
    record = read_record(path, kind_of(path), "")
    experiment = record.ours.experiment if isinstance(record, ComparedExperiments) else record.experiment
    assert experiment in {*EXPERIMENTS, path.parent.name}, "a row with other settings has its folder's name"
    found, kept = encode(record), read_json(path)
    if "ood" in kept:  # of earlier versions, read as outside images: tests/records/test_files.py
        del found["outside"]
    assert found.items() <= kept.items(), "every value of it is in the file"


@pytest.mark.parametrize("path", ROWS, ids=str)
def test_a_committed_result_counts_and_says_how_it_was_made(path: Path) -> None:
    schedule, seed = path.stem.split("-")
    result = read_result(RESULTS, RowRun(path.parent.as_posix(), find_schedule(schedule), int(seed)))
    assert result is not None
    values = read_json(RESULTS / path)
    assert (values["schedule"], values["hash"]) == (schedule, config_hash(from_dict(result.config)))
    for made in (result.trained, result.evaluation):
        assert re.fullmatch(rf"{COMMANDS} [^/][^ ]*( (?!/)[^ ]+)*", made.command)
        assert re.match(r"[0-9a-f]{7}", made.commit or "")
        assert {"python", "torch", "numpy"} <= set(made.versions)
        assert made.device
    assert result.trained.train_seconds > 0
    assert result.evaluation.seconds > 0
    assert result.corrupted is not None
    assert result.corrupted.source.frost in (None, "photographs")


@pytest.mark.parametrize("path", WITHOUT_WARMUP, ids=shown)
def test_a_result_without_a_warm_up_counts_for_no_row(path: Path) -> None:
    config = read_record(path, Results, "").config
    assert config["name"] in EXPERIMENTS
    assert not is_row(config)
    warmed_up = EXPERIMENTS[config["name"]].warmup_steps
    assert is_row({**config, "warmup_steps": warmed_up}), "nothing else is missing"
