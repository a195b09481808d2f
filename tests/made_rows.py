"""The paper's rows made small: results as a run would leave them, and rows that train in seconds."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import counterpoint.data
from counterpoint.config import to_dict
from counterpoint.corrupt import CORRUPTIONS, SEVERITIES
from counterpoint.data.sets import DataSet
from counterpoint.evaluation.suites import make_corrupted_set
from counterpoint.experiments import EXPERIMENTS, schedules
from counterpoint.records.figures import Aggregate, AggregateFigures, Figures
from counterpoint.records.images import Images, Source
from counterpoint.records.results import Results, Segment
from counterpoint.reproduction.rows import Folders, RowRun
from tests.made_results import make_results
from tests.small import noise_data


def row_figures(error: float) -> Figures:
    """An ECE of half the error, and an ECE-rms of a quarter of it."""
    return replace(make_results().clean.ensemble, error=error, ece_width15=error / 2, ece_rms_width15=error / 4)


def row_aggregates(error: float) -> dict[Aggregate, AggregateFigures]:
    """The headline has this error; the others have 90 %."""

    def figures(error: float) -> AggregateFigures:
        return AggregateFigures(**vars(row_figures(error)))

    return {"by-corruption": figures(error), "by-cell": figures(0.9), "pooled": figures(0.9)}


def row_results(run: RowRun, error: float = 0.0421) -> Results:
    """What an evaluation of the row gives: this error on clean images, and five times as much on -C."""
    results = make_results()
    assert results.corrupted is not None
    (cell, _), aggregates = results.corrupted.cells["fog"], row_aggregates(5 * error)
    cell = replace(cell, ensemble=row_figures(0.3), members=(row_figures(0.3),) * 2)
    return replace(
        results,
        experiment=run.row,
        config=to_dict(run.experiment),
        run=replace(
            results.trained,
            seed=run.seed,
            train_seconds=500.0,
            segments=(
                Segment(0, "compiled", "a machine", "0123456789abcdef"),
                Segment(9, "fast", "a machine", "89abcdef"),
            ),
        ),
        evaluation=replace(results.evaluation, seconds=100.0),
        evaluated_on=Images("cifar10", "validation", 5000),
        clean=replace(results.clean, ensemble=row_figures(error), members=(row_figures(error),) * 2),
        corrupted=replace(
            results.corrupted,
            source=Source("regenerated", 0, "1", "photographs"),
            images=10000,
            corruptions=CORRUPTIONS,
            severities=SEVERITIES,
            aggregates=replace(results.corrupted.aggregates, ensemble=aggregates, members=(aggregates,) * 2),
            cells=dict.fromkeys(CORRUPTIONS, (cell,) * 5),
            risk_coverage=(results.corrupted.risk_coverage[0],) * 5,
        ),
        shifts={},
        collapse=None,
        health=None,
    )


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "runs", tmp_path / "results")


def begin_row(folders: Folders, run: RowRun, epoch: int) -> None:
    """Leave what a training leaves that was stopped in its log's next line."""
    folder = folders.runs / run.place
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "experiment": to_dict(run.experiment), "seed": run.seed}))
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
    make_rows_tiny(monkeypatch, steps=5)
    yield
    counterpoint.data._load_once.cache_clear()


def make_rows_tiny(monkeypatch: pytest.MonkeyPatch, *, steps: int) -> None:
    """Every row with a network of width 2 on tiny images, and a smoke schedule of so many steps."""
    for name, row in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(row, model="resnet", width=2, batch_size=9))
    for dataset in ("cifar10", "cifar100"):
        monkeypatch.setitem(counterpoint.data.DATASETS, dataset, partial(_load, dataset))
    monkeypatch.setattr(schedules, "SMOKE_STEPS", steps)
    # There is no public way to forget what was loaded, and what a name loads has just changed.
    counterpoint.data._load_once.cache_clear()
