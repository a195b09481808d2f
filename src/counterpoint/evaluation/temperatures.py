"""Temperature scaling of a finished run, from its saved logits, and what it does to the run's figures.

The temperatures are fitted on validation images only. A run on the split has its own. A run on all images takes those
of its twin, which is the same experiment trained on the split.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, get_args

import numpy as np

from counterpoint import config
from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import CELLS
from counterpoint.evaluation.logits import read_about, read_logits
from counterpoint.metrics import ImageScores, aggregate, apply_temperature, fit_temperature, image_scores
from counterpoint.metrics.recalibrate import Kind, cross_fit
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.summary import figures
from counterpoint.runs.folder import Run
from counterpoint.storage.files import write_json

SCHEMA = 1
_FILE = "temperatures.json"
_KINDS: tuple[Kind, ...] = get_args(Kind)

Figures = TypeVar("Figures")


def validation_run(run: Run, twin: Run | None) -> Run:
    """The run whose validation images the temperatures are fitted on: this one or its twin, which is checked."""
    if run.experiment.train_on == "split":
        if twin is not None:
            raise InputError(f"{run.folder} has validation images of its own; leave --temperatures-from out")
        return run
    if twin is None:
        raise InputError(
            f"{run.folder} was trained on all images, so none are left to fit a temperature on; train its twin with "
            f"`counterpoint train {run.experiment.name} --set train_on=split --out TWIN` (and what else was set), "
            f"evaluate it, and add --temperatures-from TWIN"
        )
    _check_twin(run, twin)
    return twin


def recalibrated_results(run: Run, source: Run, plain: dict[str, Any]) -> dict[str, Any]:
    """The run's figures with temperatures that are fitted on the validation images of `source`.

    `plain` holds the figures without temperatures, "clean" and "corrupted".
    """
    logits_MNK, labels_N = read_logits(source, "clean"), read_logits(source, "labels")
    temperatures = {kind: fit_temperature(logits_MNK, labels_N, kind) for kind in _KINDS}
    on_this_run = source is run
    of_twin = f"temperature of the twin run {_name(source)}"
    return {
        "fitted_on": {**read_about(source)["clean"], "run": "this run" if on_this_run else _name(source)},
        "clean_how": "cross-fitted on two seeded halves of the validation images" if on_this_run else of_twin,
        "corrupted_how": f"temperature of all {len(labels_N):,} validation images" if on_this_run else of_twin,
        "ways": {
            kind: _scaled_figures(run, values, kind, plain, cross_fit=on_this_run)
            for kind, values in temperatures.items()
        },
    }


def forget_temperatures(run: Run) -> None:
    """Remove temperatures.json, before the results.json that it belongs to is replaced."""
    (run.folder / _FILE).unlink(missing_ok=True)


def keep_temperatures(run: Run, recalibrated: dict[str, Any]) -> None:
    """Write temperatures.json from what results.json already holds, so that the two never contradict each other."""
    values = {kind: scaled["temperature"] for kind, scaled in recalibrated["ways"].items()}
    write_json(run.folder / _FILE, {"schema": SCHEMA, "fitted_on": recalibrated["fitted_on"], "temperatures": values})


def _check_twin(run: Run, twin: Run) -> None:
    """Raise unless `twin` is the same experiment, trained on the split, with its validation logits saved."""
    if twin.experiment.train_on != "split":
        raise InputError(f"{twin.folder} was trained on all images too; the twin must have train_on=split")
    # A warm-up of one epoch has more steps on all images than on the split.
    may_differ = ("name", "train_on", "warmup_steps")
    same = {key: getattr(run.experiment, key) for key in may_differ}
    differing = config.differences(config.to_dict(run.experiment), config.to_dict(twin.experiment) | same)
    if differing:
        raise InputError(
            f"{twin.folder} is not the twin of {run.folder} ({'; '.join(differing)}); "
            f"they may differ in {', '.join(may_differ)} only"
        )
    read_logits(twin, "clean")


def _name(run: Run) -> str:
    return f"{run.experiment.name}, seed {run.seed}"


def _json(temperatures: tuple[float, ...], kind: Kind) -> float | list[float]:
    return list(temperatures) if kind == "per-member" else temperatures[0]


def _scaled_figures(
    run: Run, temperatures: tuple[float, ...], kind: Kind, plain: dict[str, Any], *, cross_fit: bool
) -> dict[str, Any]:
    logits_MNK, labels_N = read_logits(run, "clean"), read_logits(run, "labels")
    if cross_fit:
        clean = _cross_fitted_scores(logits_MNK, labels_N, kind)
    else:
        clean = _scaled_scores(logits_MNK, labels_N, temperatures, kind)
    corrupted = _corrupted_scores(run, temperatures, kind)
    return {
        "temperature": _json(temperatures, kind),
        "clean": _by_predictor([figures(scores) for scores in clean], plain["clean"]["members"]),
        "corrupted": _by_predictor(
            [aggregate(grid) for grid in corrupted], plain["corrupted"]["aggregates"]["members"]
        ),
    }


def _scaled_scores(
    logits_MNK: np.ndarray, labels_N: np.ndarray, temperatures: tuple[float, ...], kind: Kind
) -> list[ImageScores]:
    """The scores of the ensemble, and then of each member unless the kind is "after", which scales no member."""
    if kind == "after":
        return [image_scores(apply_temperature(logits_MNK, temperatures, kind), labels_N)]
    temperature_M = temperatures if kind == "per-member" else temperatures * len(logits_MNK)
    members_MNK = np.stack(
        [
            apply_temperature(logits_NK[None], (temperature,), "before")
            for logits_NK, temperature in zip(logits_MNK, temperature_M, strict=True)
        ]
    )
    return [image_scores(probs_NK, labels_N) for probs_NK in (members_MNK.mean(axis=0), *members_MNK)]


def _cross_fitted_scores(logits_MNK: np.ndarray, labels_N: np.ndarray, kind: Kind) -> list[ImageScores]:
    """Like `_scaled_scores`, each random half of the images scaled with the temperatures of the other."""
    halves = [
        _scaled_scores(logits_MNK[:, images], labels_N[images], temperatures, kind)
        for images, temperatures in cross_fit(logits_MNK, labels_N, kind)
    ]
    return [join_scores(both) for both in zip(*halves, strict=True)]


def _corrupted_scores(run: Run, temperatures: tuple[float, ...], kind: Kind) -> list[dict[str, list[ImageScores]]]:
    """The scores of every cell, for the ensemble and for each scaled member."""
    labels_N = read_logits(run, "cell-labels")
    grids: list[dict[str, list[ImageScores]]] = []
    for name, severity in CELLS:
        cell_scores = _scaled_scores(read_logits(run, f"{name}-{severity}"), labels_N, temperatures, kind)
        grids = grids or [{name: [] for name in CORRUPTIONS} for _ in cell_scores]
        for grid, scores in zip(grids, cell_scores, strict=True):
            grid[name].append(scores)
    return grids


def _by_predictor(scaled: Sequence[Figures], unscaled_members: Sequence[Figures]) -> dict[str, Any]:
    """The ensemble's figures and the members'. Members that were not scaled keep their figures."""
    ensemble, *members = scaled
    return {"ensemble": ensemble, "members": members or list(unscaled_members)}
