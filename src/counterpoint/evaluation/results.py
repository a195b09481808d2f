"""A run's figures, computed from the logits in its folder: results.json, and scores.npz with each image's scores."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

import counterpoint
from counterpoint import config
from counterpoint.corrupt import CORRUPTIONS, SEVERITIES
from counterpoint.evaluation.earlier import still_valid
from counterpoint.evaluation.logits import read_about, read_logits, read_probs
from counterpoint.evaluation.member_differences import collapse_results
from counterpoint.evaluation.ood import ood_results
from counterpoint.evaluation.scores import RunScores, write_scores
from counterpoint.evaluation.temperatures import recalibrated_results
from counterpoint.metrics import ImageScores, aggregate, image_scores, summarise
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.shift import aggregate_floors
from counterpoint.metrics.summary import risk_coverage_points
from counterpoint.runs.folder import Run
from counterpoint.storage.files import write_json
from counterpoint.storage.provenance import command_line, now
from counterpoint.training.health import health_results

SCHEMA = 1

Scores = dict[str, list[ImageScores]]
"""For each corruption, the scores at each severity."""


def write_results(
    run: Run,
    *,
    environment: dict[str, Any],
    seconds: float,
    temperatures_from: Run | None = None,
    earlier: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Compute every figure, and write results.json and scores.npz.

    `environment` and `seconds` are those of the evaluation. `temperatures_from` is the run whose validation images give
    the temperatures of the recalibrated figures. Temperatures and comparisons of the `earlier` results are kept where
    they still hold.
    """
    about = read_about(run)
    clean_MNK, labels_N = read_probs(run, "clean"), read_logits(run, "labels")
    clean_scores = image_scores(clean_MNK.mean(axis=0), labels_N)
    clean = summarise(clean_MNK, labels_N) | {"risk_coverage": risk_coverage_points(clean_scores)}
    corrupted, grid = _corrupted(run)
    results = {
        "schema": SCHEMA,
        "counterpoint": counterpoint.__version__,
        "experiment": run.experiment.name,
        "config": config.to_dict(run.experiment),
        "run": _describe_run(run),
        "evaluation": {
            "command": command_line(),
            "finished": now(),
            "seconds": round(seconds, 3),
            "precision": about["precision"],
            **{key: environment[key] for key in ("device", "commit", "versions")},
        },
        "evaluated_on": about["clean"],
        "clean": clean,
        "corrupted": about["corrupted"] | corrupted,
        "ood": ood_results(run, clean_MNK),
        "collapse": collapse_results(run, clean, corrupted["cells"], clean_MNK.shape[2]),
        "health": health_results(run),
    }
    if temperatures_from is not None:
        results["recalibrated"] = recalibrated_results(run, temperatures_from, results)
    results |= still_valid(earlier, results)
    write_scores(run.folder, RunScores(clean_scores, grid))
    write_json(run.folder / "results.json", results)
    return results


def _corrupted(run: Run) -> tuple[dict[str, Any], Scores]:
    """The figures of each cell and over all cells, and the ensemble's scores of each cell's images."""
    labels_N = read_logits(run, "cell-labels")
    cells: dict[str, list[dict[str, Any]]] = {name: [] for name in CORRUPTIONS}
    ensemble: Scores = {name: [] for name in CORRUPTIONS}
    members: list[Scores] = []
    for name in CORRUPTIONS:
        for severity in SEVERITIES:
            probs_MNK = read_probs(run, f"{name}-{severity}")
            cells[name].append(summarise(probs_MNK, labels_N, honest_members=False))
            ensemble[name].append(image_scores(probs_MNK.mean(axis=0), labels_N))
            members = members or [{name: [] for name in CORRUPTIONS} for _ in probs_MNK]
            for grid, probs_NK in zip(members, probs_MNK, strict=True):
                grid[name].append(image_scores(probs_NK, labels_N))
    floors = aggregate_floors(ensemble)
    aggregates = {
        "ensemble": {name: figures | floors[name] for name, figures in aggregate(ensemble).items()},
        "members": [aggregate(grid) for grid in members],
        "disagreement": _mean_over_cells(cells, "disagreement"),
        "pairwise_kl": _mean_over_cells(cells, "pairwise_kl"),
    }
    by_severity = [join_scores(scores) for scores in zip(*ensemble.values(), strict=True)]
    curves = [risk_coverage_points(scores) for scores in by_severity]
    return {"aggregates": aggregates, "cells": cells, "risk_coverage": curves}, ensemble


def _mean_over_cells(cells: dict[str, list[dict[str, Any]]], key: str) -> float | None:
    """The mean of `key` over all cells. None for a single network, whose cells have none."""
    values = [cell[key] for severities in cells.values() for cell in severities]
    return None if None in values else float(np.mean(values))


def _describe_run(run: Run) -> dict[str, Any]:
    log = run.read_log()
    last = [record for record in log if record["event"] == "epoch"][-1]
    return {
        "seed": run.seed,
        "segments": [_describe_segment(record) for record in log if record["event"] == "started"],
        "command": run.record["command"],
        "started": run.record["started"],
        "finished": last["time"],
        "train_seconds": last["seconds"],
        **{key: run.record["environment"][key] for key in ("device", "commit", "versions")},
    }


def _describe_segment(started: dict[str, Any]) -> dict[str, Any]:
    """One uninterrupted part of a run: its first step, engine, device and commit."""
    environment = started["environment"]
    return {
        "step": started["step"],
        "engine": started.get("engine") or started.get("path"),  # "path" in earlier logs; the first logs had neither
        "device": environment["device"],
        "commit": environment["commit"],
    }
