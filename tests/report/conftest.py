import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from scipy.special import softmax

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.metrics import (
    ImageScores,
    Interval,
    aggregate,
    apply_temperature,
    calibration_differences,
    collapse_verdict,
    cross_fitted_probabilities,
    factor_correlation,
    fit_temperature,
    image_scores,
    independent_disagreement,
    mean_difference,
    ood_auroc,
    paired_differences,
    summarise,
)
from counterpoint.metrics.recalibrate import Kind
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.shift import aggregate_floors
from counterpoint.metrics.summary import figures, risk_coverage_points
from counterpoint.report import load_results

Grid = dict[str, list[np.ndarray]]
"""For each corruption, the members' logits at each severity."""


def _logits(labels: np.ndarray, members: int, signal: float, seed: list[int]) -> np.ndarray:
    """Members that share most of what they see, and are twice as sure as they should be."""
    rng = np.random.default_rng(seed)
    shared, apart = rng.normal(size=(len(labels), 5)), rng.normal(size=(members, len(labels), 5))
    return 2 * (0.8 * shared + 0.6 * apart + signal * np.eye(5)[labels])


@cache
def _clean_logits(members: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.random.default_rng(seed).integers(5, size=120)
    return _logits(labels, members, 2, [seed, members]), labels


@cache
def _grid(members: int, seed: int) -> tuple[Grid, np.ndarray]:
    """75 cells, 40 images each, whose signal fades with the severity."""
    labels = np.random.default_rng(seed).integers(5, size=40)
    grid = {
        name: [_logits(labels, members, 2 - 0.3 * severity, [seed, i, severity]) for severity in range(1, 6)]
        for i, name in enumerate(CORRUPTIONS)
    }
    return grid, labels


def _scores(grid: Grid, labels: np.ndarray, pick: Callable[[np.ndarray], np.ndarray]) -> dict[str, list[ImageScores]]:
    return {name: [image_scores(pick(logits), labels) for logits in row] for name, row in grid.items()}


def _mean_probs(logits_MNK: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(logits_MNK, axis=2).mean(axis=0))


def _member_probs(i: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda logits_MNK: np.asarray(softmax(logits_MNK[i], axis=1))


@cache
def _clean(members: int, seed: int) -> dict[str, Any]:
    logits, labels = _clean_logits(members, seed)
    curve = risk_coverage_points(image_scores(_mean_probs(logits), labels))
    return summarise(softmax(logits, axis=2), labels) | {"risk_coverage": curve}


@cache
def _corrupted(members: int, seed: int) -> dict[str, Any]:
    grid, labels = _grid(members, seed)
    ensemble = _scores(grid, labels, _mean_probs)
    plain, floors = aggregate(ensemble), aggregate_floors(ensemble)
    cells = {
        name: [summarise(softmax(logits, axis=2), labels, honest_members=False) for logits in row]
        for name, row in grid.items()
    }
    return {
        "source": {"kind": "regenerated", "seed": 0, "version": "0.1.0", "frost": "texture"},
        "images": len(labels),
        "aggregates": {
            "ensemble": {name: plain[name] | floors[name] for name in plain},
            "members": [aggregate(_scores(grid, labels, _member_probs(i))) for i in range(members)],
            **{key: _mean_of_cells(cells, key) for key in ("disagreement", "pairwise_kl")},
        },
        "cells": cells,
        "risk_coverage": [
            risk_coverage_points(join_scores([row[severity] for row in ensemble.values()])) for severity in range(5)
        ],
    }


def _mean_of_cells(cells: dict[str, list[dict[str, Any]]], key: str) -> float | None:
    values = [cell[key] for row in cells.values() for cell in row]
    return None if None in values else float(np.mean(values))


@cache
def _more(members: int, seed: int) -> dict[str, Any]:
    """Everything that belongs to the run as a whole: ood, collapse, health, recalibrated, against."""
    outside = _logits(np.zeros(60, dtype=int), members, 0, [seed, 99])
    inside, _ = _clean_logits(members, seed)
    of_predictors = [_mean_probs, *(_member_probs(i) for i in range(members))]
    aurocs = [ood_auroc(probs(inside).max(axis=1), probs(outside).max(axis=1)) for probs in of_predictors]
    return {
        "ood": {"dataset": "letters", "images": 60, "auroc": {"ensemble": aurocs[0], "members": aurocs[1:]}},
        "collapse": _collapse(members, seed) if members > 1 else None,
        "health": _health(members),
        "recalibrated": _recalibrated(members, seed),
        "against": [_against(members, seed)],
    }


def _collapse(members: int, seed: int) -> dict[str, Any]:
    clean, cells = _clean(members, seed), _corrupted(members, seed)["cells"]

    def between(summary: dict[str, Any]) -> dict[str, float]:
        error = float(np.mean([member["error"] for member in summary["members"]]))
        values = {key: summary[key] for key in ("disagreement", "pairwise_kl")}
        return values | {"independent_disagreement": independent_disagreement(error, 5)}

    severities = [[between(row[severity]) for row in cells.values()] for severity in range(5)]
    factors = np.random.default_rng(seed).normal(1, 0.5, size=(2, members, 300))
    error = float(np.mean([member["error"] for member in clean["members"]]))
    return {
        "r": asdict(factor_correlation([factors[0]])),
        "s": asdict(factor_correlation([factors[1]])),
        "clean": between(clean),
        "severities": [{key: float(np.mean([one[key] for one in row])) for key in row[0]} for row in severities],
        "verdict": collapse_verdict(clean["disagreement"], error, clean["pairwise_kl"], 5),
    }


def _health(members: int) -> dict[str, Any]:
    """More and more dead scales, and a spread that shrinks."""
    epochs = [
        {
            "epoch": 4 * i + 1,
            "below_eps": 0,
            "dead_scales": 4 * i,
            "spread_r": 0.5 - 0.1 * i if members > 1 else None,
            "spread_s": 0.4 - 0.1 * i if members > 1 else None,
        }
        for i in range(5)
    ]
    return {"channels": 400, "epochs": epochs, "warnings": []}


def _recalibrated(members: int, seed: int) -> dict[str, Any]:
    logits, labels = _clean_logits(members, seed)
    kinds: tuple[Kind, ...] = get_args(Kind)
    return {
        "fitted_on": {"dataset": "digits", "part": "validation", "images": 120, "run": "this run"},
        "clean_how": "cross-fitted on two seeded halves of the validation images",
        "corrupted_how": "the temperature of all 120 validation images",
        "ways": {kind: _scaled(members, seed, kind, fit_temperature(logits, labels, kind)) for kind in kinds},
    }


def _scaled(members: int, seed: int, kind: Kind, temperatures: tuple[float, ...]) -> dict[str, Any]:
    logits, labels = _clean_logits(members, seed)
    grid, cell_labels = _grid(members, seed)
    crossed = image_scores(cross_fitted_probabilities(logits, labels, kind), labels)

    def scale(logits_MNK: np.ndarray) -> np.ndarray:
        return apply_temperature(logits_MNK, temperatures, kind)

    return {
        "temperature": list(temperatures) if kind == "per-member" else temperatures[0],
        "clean": {"ensemble": figures(crossed), "members": _clean(members, seed)["members"]},
        "corrupted": {
            "ensemble": aggregate(_scores(grid, cell_labels, scale)),
            "members": _corrupted(members, seed)["aggregates"]["members"],
        },
    }


def _against(members: int, seed: int) -> dict[str, Any]:
    """The differences from a single network whose logits are the first member's with more noise."""
    (logits, labels), (grid, cell_labels) = _clean_logits(members, seed), _grid(members, seed)
    rng = np.random.default_rng(seed)

    def worse(logits_MNK: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(logits_MNK[0] + 3 * rng.normal(size=logits_MNK[0].shape), axis=1))

    ours, other = image_scores(_mean_probs(logits), labels), image_scores(worse(logits), labels)
    cells = _scores(grid, cell_labels, _mean_probs), _scores(grid, cell_labels, worse)

    def over_cells(severities: range) -> dict[str, Any]:
        some = [[row[severity] for row in one.values() for severity in severities] for one in cells]
        means = [
            {
                "error": np.mean([~cell.correct for cell in one], axis=0),
                "nll": np.mean([cell.nll for cell in one], axis=0),
                "brier": np.mean([cell.brier for cell in one], axis=0),
            }
            for one in some
        ]
        return {key: _difference(mean_difference(means[0][key], means[1][key])) for key in means[0]}

    return {
        "experiment": "digits/single",
        "seed": 7,
        "run": "digits-single",
        "clean": {key: _difference(one) for key, one in paired_differences(ours, other).items()},
        "corrupted": {
            "mean": over_cells(range(5)),
            "severities": [over_cells(range(severity, severity + 1)) for severity in range(5)],
            "by_corruption": {key: _difference(one) for key, one in calibration_differences(*cells).items()},
        },
    }


def _difference(interval: Interval) -> dict[str, float]:
    return {"difference": interval.value, "low": interval.low, "high": interval.high}


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    """As read from a file: nothing in it is shared."""
    copy: dict[str, Any] = json.loads(json.dumps(value))
    return copy


def _results(
    name: str = "quickstart", members: int = 4, seed: int = 0, shifted: bool = False, more: bool = False
) -> dict[str, Any]:
    """What `counterpoint evaluate` writes, for made-up logits of 120 images and 5 classes.

    `shifted` adds the corrupted section, and `more` the out-of-distribution, collapse, health, recalibrated and paired
    figures; these take seconds to make, and are the same for every seed.
    """
    return {
        "schema": 1,
        "counterpoint": "0.1.0",
        "experiment": name,
        "config": {"dataset": "digits", "num_members": members if members > 1 else None, "epochs": 17},
        "run": {
            "seed": seed,
            "command": f"counterpoint train {name} --out runs/{name}",
            "commit": None,
            "device": "cpu",
            "versions": {"python": "3.11.2", "torch": "2.13.0+cpu"},
            "train_seconds": 3725.0,
            "finished": "2026-11-15T10:00:00Z",
        },
        "evaluation": {
            "command": f"counterpoint evaluate runs/{name}",
            "finished": "2026-11-15T11:30:00Z",
            "precision": "float32",
            "seconds": 1.234,
        },
        "evaluated_on": {"dataset": "digits", "part": "test", "images": 120},
        "clean": _copy(_clean(members, seed)),
        **({"corrupted": _copy(_corrupted(members, seed=0))} if shifted else {}),
        **(_copy(_more(members, seed=0)) if more else {}),
    }


@pytest.fixture(scope="session")
def real_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the evaluation of a real, short run wrote: recalibrated, and compared with a real single network."""
    import torch

    from counterpoint.data.digits import load_digits
    from counterpoint.evaluation.pipeline import evaluate_run
    from counterpoint.experiments.quickstart import QUICKSTART
    from counterpoint.runs.folder import load_run
    from counterpoint.training.loop import Options, train

    folder, data = tmp_path_factory.mktemp("real"), load_digits()
    few = replace(data, train=data.train.select(torch.arange(300)), test=data.test.select(torch.arange(20)))
    folders: list[Path] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoint.evaluation.pipeline.load", lambda *_: few)
        for experiment in reversed(QUICKSTART):
            short = replace(experiment, train_on="split", epochs=1, batch_size=128, width=2)
            target = folder / short.name.replace("/", "-")
            assert train(short, target, few, options=Options(device="cpu"))
            evaluate_run(load_run(target), folder, device="cpu", recalibrate=True, against=folders)
            folders = [target]
    return load_results(folders[0])


@pytest.fixture
def make_results() -> Callable[..., dict[str, Any]]:
    return _results
