"""The paper's rows made small: results as a run would leave them, and rows that train in seconds."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import counterpoint.data
from counterpoint.config import to_dict
from counterpoint.corrupt import CORRUPTIONS
from counterpoint.data.sets import DataSet
from counterpoint.evaluation.corrupted_set import make_corrupted_set
from counterpoint.experiments import EXPERIMENTS, schedules
from counterpoint.reproduction.rows import Folders, RowRun
from tests.small import noise_data


def row_figures(error: float) -> dict[str, float]:
    return {"error": error, "ece_width15": error / 2, "ece_rms_width15": error / 4}


def row_results(run: RowRun, error: float = 0.0421) -> dict[str, Any]:
    """What results.json holds, as far as a row's result takes it."""
    bins = {"width15": [1, 2]}
    cell = {"ensemble": row_figures(0.3), "members": [row_figures(0.3)], "reliability": bins, "honest": {}}
    aggregates = {"by-corruption": row_figures(5 * error), "by-cell": row_figures(0.9), "pooled": row_figures(0.9)}
    made = {"device": "a machine", "commit": "0123456789abcdef", "versions": {}}
    # The first segment is one of commit 98b0d55 or before, where engines were paths.
    segments = [{"step": 0, "path": "compiled", **made}, {"step": 9, "engine": "fast", **made, "commit": "89abcdef"}]
    return {
        "schema": 7,
        "experiment": run.row,
        "config": to_dict(run.experiment),
        "run": {"seed": run.seed, "command": "counterpoint train", "train_seconds": 500.0, "segments": segments},
        "evaluation": {"seconds": 100.0, **made},
        "evaluated_on": {"dataset": "cifar10", "part": "validation", "images": 5000},
        "clean": {"ensemble": row_figures(error), "members": [row_figures(error)], "reliability": bins},
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


def begin_row(folders: Folders, run: RowRun, epoch: int) -> None:
    """Leave what a training leaves that was stopped in its log's next line."""
    folder = folders.runs / run.place
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"experiment": to_dict(run.experiment)}))
    lines = [{"event": "started", "step": 0}, *({"event": "epoch", "epoch": i} for i in range(1, epoch + 1))]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"event": "ep')


def row_data(name: str) -> DataSet:
    return noise_data(60, 4, size=32, name=name, test=12)


def _load(name: str, _: Path) -> DataSet:
    return row_data(name)


@pytest.fixture(scope="session")
def rows_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the corrupted sets of `row_data`."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("cifar10", "cifar100"):
        make_corrupted_set(row_data(name), folder, workers=1)
    return folder


@pytest.fixture
def tiny_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row with a network of width 2 on tiny images, and a smoke schedule of five steps, not of a whole epoch."""
    for name, row in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(row, model="resnet", width=2, batch_size=9))
    for dataset in ("cifar10", "cifar100"):
        monkeypatch.setitem(counterpoint.data.DATASETS, dataset, partial(_load, dataset))
    monkeypatch.setattr(schedules, "SMOKE_STEPS", 5)
    # There is no public way to forget what was loaded, and what a name loads has just changed.
    counterpoint.data._load_once.cache_clear()
    yield
    counterpoint.data._load_once.cache_clear()
