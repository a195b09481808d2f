"""A run's figures, computed from the logits in its folder: results.json, and scores.npz with each image's scores."""

import io
from dataclasses import asdict
from typing import Any

import numpy as np

import counterpoint
from counterpoint import config
from counterpoint.corrupt import CORRUPTIONS, SEVERITIES
from counterpoint.environment import command_line, now
from counterpoint.files import write_atomically, write_json
from counterpoint.logits import read_about, read_logits
from counterpoint.metrics import ImageScores, aggregate, image_scores, summarise
from counterpoint.runs import Run

SCHEMA = 1


def write_results(run: Run, *, environment: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Compute every figure and write results.json and scores.npz; `environment` and `seconds` are the evaluation's."""
    about = read_about(run)
    clean_MNK, labels_N = softmax(read_logits(run, "clean")), read_logits(run, "labels")
    clean_scores = image_scores(clean_MNK.mean(axis=0), labels_N)
    corrupted, cell_scores = _corrupted(run)
    _write_scores(run, {"clean": clean_scores} | cell_scores)
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
        "clean": summarise(clean_MNK, labels_N),
        "corrupted": about["corrupted"] | corrupted,
    }
    write_json(run.folder / "results.json", results)
    return results


def _corrupted(run: Run) -> tuple[dict[str, Any], dict[str, ImageScores]]:
    """The figures of each cell and over all cells, and the ensemble's scores of each cell's images."""
    labels_N = read_logits(run, "cell-labels")
    cells: dict[str, list[dict[str, Any]]] = {name: [] for name in CORRUPTIONS}
    ensemble: dict[str, list[ImageScores]] = {name: [] for name in CORRUPTIONS}
    members: list[dict[str, list[ImageScores]]] = []
    for name in CORRUPTIONS:
        for severity in SEVERITIES:
            probs_MNK = softmax(read_logits(run, f"{name}-{severity}"))
            cells[name].append(summarise(probs_MNK, labels_N))
            ensemble[name].append(image_scores(probs_MNK.mean(axis=0), labels_N))
            members = members or [{name: [] for name in CORRUPTIONS} for _ in probs_MNK]
            for grid, probs_NK in zip(members, probs_MNK, strict=True):
                grid[name].append(image_scores(probs_NK, labels_N))
    aggregates = {"ensemble": aggregate(ensemble), "members": [aggregate(grid) for grid in members]}
    scores = {f"{name}-{i}": one for name, severities in ensemble.items() for i, one in enumerate(severities, 1)}
    return {"aggregates": aggregates, "cells": cells}, scores


def softmax(logits_MNK: np.ndarray) -> np.ndarray:
    """Probabilities in float64."""
    logits = logits_MNK.astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _write_scores(run: Run, scores: dict[str, ImageScores]) -> None:
    """Each image's confidence, correctness, NLL and Brier score: for CIFAR about 10 MB, which can travel."""
    arrays = {
        f"{cell}/{name}": values if values.dtype == bool else values.astype(np.float32)
        for cell, one in scores.items()
        for name, values in asdict(one).items()
    }
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    write_atomically(run.folder / "scores.npz", content.getvalue())


def _describe_run(run: Run) -> dict[str, Any]:
    last = [record for record in run.read_log() if record["event"] == "epoch"][-1]
    return {
        "seed": run.seed,
        "command": run.record["command"],
        "started": run.record["started"],
        "finished": last["time"],
        "train_seconds": last["seconds"],
        **{key: run.record["environment"][key] for key in ("device", "commit", "versions")},
    }
