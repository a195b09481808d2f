"""Temperature scaling of an evaluated run, from its saved logits, and what it does to the run's figures.

The temperatures are fitted on validation images only. A run on the split has its own. A run on all images takes those
of its twin, which is the same experiment trained on the split.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar, get_args

import numpy as np

from counterpoint import config
from counterpoint.errors import InputError
from counterpoint.evaluation.image_groups import labels_file
from counterpoint.evaluation.logits import LogitsAbout, read_about, read_cells, read_logits
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import ImageScores, aggregate, apply_temperature, fit_temperature, image_scores
from counterpoint.metrics.recalibrate import Kind, cross_fit
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.summary import figures
from counterpoint.records.files import RECALIBRATED, RESULTS, read_results, write_record
from counterpoint.records.recalibrated import FittedOn, Recalibrated, Scaled, ScaledClean, ScaledCorrupted
from counterpoint.records.results import Results
from counterpoint.runs.folder import Run
from counterpoint.storage.provenance import command_line, now

_KINDS: tuple[Kind, ...] = get_args(Kind)

Temperatures = Mapping[Kind, tuple[float, ...]]
Grids = list[dict[str, list[ImageScores]]]
"""For the ensemble and each scaled member: for each corruption, the scores at each severity."""
Figures = TypeVar("Figures")


def recalibrate_run(run: Run, twin: Run | None = None) -> Recalibrated:
    """Fit the temperatures, compute the run's figures with them, and write recalibrated.json.

    A run trained on all images takes its temperatures from its `twin`.
    """
    source = _validation_run(run, twin)
    about, plain = _evaluated(run)
    logits_MNK, labels_N = read_logits(source, "clean"), read_logits(source, "labels")
    temperatures = {kind: fit_temperature(logits_MNK, labels_N, kind) for kind in _KINDS}
    own = source is run
    of_twin = f"temperature of the twin run {_name(source)}"
    source_about = read_about(source)
    recalibrated = Recalibrated(
        made_from=about.made_from,
        command=command_line(),
        finished=now(),
        fitted_on=FittedOn(source_about.clean, "this run" if own else _name(source), source_about.weights),
        clean_how="cross-fitted on two seeded halves of the validation images" if own else of_twin,
        corrupted_how=f"temperature of all {len(labels_N):,} validation images" if own else of_twin,
        ways=_scaled_figures(run, about, temperatures, plain, cross_fitted=own),
    )
    write_record(run.folder / RECALIBRATED, recalibrated)
    return recalibrated


def _validation_run(run: Run, twin: Run | None) -> Run:
    """The run whose validation images the temperatures are fitted on: this one or its twin, which is checked."""
    if run.experiment.train_on == "split":
        if twin is not None:
            raise InputError(f"{run.folder} has validation images of its own; leave --twin out")
        return run
    if twin is None:
        raise InputError(
            f"{run.folder} was trained on all images, so none are left to fit a temperature on; train its twin with "
            f"`counterpoint train {run.experiment.name} --set train_on=split --out TWIN` (and what else was set), "
            f"evaluate it, and add --twin TWIN"
        )
    _check_twin(run, twin)
    return twin


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


def _evaluated(run: Run) -> tuple[LogitsAbout, Results]:
    """The run's logits and results, which must belong together: members that are not scaled keep their figures."""
    if not (run.folder / RESULTS).exists():
        raise InputError(f"{run.folder} has no results.json; `counterpoint evaluate {run.folder}` makes it")
    about, results = read_about(run), read_results(run.folder / RESULTS)
    if results.made_from != about.made_from:
        raise InputError(
            f"{run.folder / RESULTS} was made from other logits than those in the folder; "
            f"`counterpoint evaluate {run.folder} --recompute` makes it again"
        )
    return about, results


def _name(run: Run) -> str:
    return f"{run.experiment.name}, seed {run.seed}"


def _scaled_figures(
    run: Run, about: LogitsAbout, temperatures: Temperatures, plain: Results, *, cross_fitted: bool
) -> dict[Kind, Scaled]:
    logits_MNK, labels_N = read_logits(run, "clean"), read_logits(run, "labels")
    grids = _corrupted_scores(run, about, temperatures)
    scaled = {}
    for kind, values in temperatures.items():
        if cross_fitted:
            clean = _cross_fitted_scores(logits_MNK, labels_N, kind)
        else:
            clean = _scaled_scores(logits_MNK, labels_N, values, kind)
        ensemble, members = _by_predictor([figures(scores) for scores in clean], plain.clean.members)
        scaled[kind] = Scaled(values, ScaledClean(ensemble, members), _scaled_corrupted(grids[kind], plain))
    return scaled


def _scaled_corrupted(grids: Grids, plain: Results) -> ScaledCorrupted | None:
    if plain.corrupted is None:
        return None
    unscaled = plain.corrupted.aggregates.members
    return ScaledCorrupted(*_by_predictor([aggregate(grid) for grid in grids], unscaled))


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


def _corrupted_scores(run: Run, about: LogitsAbout, temperatures: Temperatures) -> dict[Kind, Grids]:
    """The scores of every cell with each kind of temperature. A cell is read once for all of them."""
    grids: dict[Kind, Grids] = {kind: [] for kind in temperatures}
    shift = about.suites.get(CORRUPTED.name)
    if shift is None:
        return grids
    labels_N = read_logits(run, labels_file(CORRUPTED.name))
    for name, logits_MNK in read_cells(run, CORRUPTED.name, shift):
        for kind, values in temperatures.items():
            cell_scores = _scaled_scores(logits_MNK, labels_N, values, kind)
            grids[kind].extend({} for _ in cell_scores[len(grids[kind]) :])
            for grid, scores in zip(grids[kind], cell_scores, strict=True):
                grid.setdefault(name, []).append(scores)
    return grids


def _by_predictor(scaled: Sequence[Figures], unscaled: Sequence[Figures]) -> tuple[Figures, tuple[Figures, ...]]:
    """The ensemble's figures and the members'. Members that were not scaled keep their figures."""
    ensemble, *members = scaled
    return ensemble, tuple(members or unscaled)
