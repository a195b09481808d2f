"""A run's figures with recalibrations: on clean images, over all cells, at each severity and of each corruption."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import clean_differences, corrupted_differences, severity_differences
from counterpoint.evaluation.logits import map_cells
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import ImageScores, aggregate, image_scores
from counterpoint.metrics.groups import are_enough
from counterpoint.metrics.scores import Grid, grids_of, groups_of_cells, join_scores
from counterpoint.metrics.summary import figures
from counterpoint.recalibration.apply import Labelled, apply, image_temperatures
from counterpoint.recalibration.choose import NONE, HeldOut, cross_fit, fit_held_out
from counterpoint.recalibration.families import Family
from counterpoint.records.figures import Aggregate, AggregateFigures, Figures
from counterpoint.records.images import Shift
from counterpoint.records.recalibrated import Care, Choice, Moved, Recalibration, Scaled, ScaledClean, ScaledCorrupted
from counterpoint.records.results import Results
from counterpoint.runs.imported import AnyRun

_PLAIN = "none"

FiguresOf = TypeVar("FiguresOf")

_Movement = tuple[float, float, float]
"""The mean temperature of a set of images, and the means of the entropy and the disagreement that it may follow."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """The scores of the ensemble and then of each scaled member, and where the ensemble predicts another class."""

    scores: list[ImageScores]
    changed_N: NDArray[np.bool_]

    @staticmethod
    def of(recalibration: Recalibration, images: Labelled) -> "Predicted":
        probs = apply(recalibration, images.logits_MNK, images.signals)
        members = () if probs.members_MNK is None else tuple(probs.members_MNK)
        every = (probs.ensemble_NK, *members)
        scores = [image_scores(probs_NK, images.labels_N, images.groups_N) for probs_NK in every]
        return Predicted(scores, probs.ensemble_NK.argmax(axis=1) != images.predicted_N)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A family's recalibration, what becomes of the clean images with it, and its NLL on validation images."""

    family: Family
    recalibration: Recalibration
    clean: Predicted
    validation_nll: float | None
    """Cross-fitted on the clean validation images. None where half of them determine no such recalibration."""


def fit_family(family: Family, held_out: HeldOut, care: Care, clean: Labelled, *, own: bool) -> Fitted:
    """Fit to the held-out images. If the run's `clean` images are its `own` held-out ones, they are cross-fitted."""
    recalibration = fit_held_out(family, held_out, care)
    try:
        cross_fitted = _cross_fitted(family, held_out, care)
    except InputError:  # the family itself was fitted, to all of the images
        if own:
            raise
        return Fitted(family, recalibration, Predicted.of(recalibration, clean), None)
    predicted = cross_fitted if own else Predicted.of(recalibration, clean)
    return Fitted(family, recalibration, predicted, float(cross_fitted.scores[0].nll.mean()))


def _cross_fitted(family: Family, held_out: HeldOut, care: Care) -> Predicted:
    """What becomes of the clean validation images, each half with the recalibration of the other."""
    halves = [
        (images, Predicted.of(one, held_out.clean.select(images))) for images, one in cross_fit(family, held_out, care)
    ]
    order = np.argsort(np.concatenate([images for images, _ in halves]))
    scores = [join_scores(both).select(order) for both in zip(*(half.scores for _, half in halves), strict=True)]
    return Predicted(scores, np.concatenate([half.changed_N for _, half in halves])[order])


def unscaled_nll(images: Labelled) -> float:
    return float(Predicted.of(NONE, images).scores[0].nll.mean())


def scaled_figures(
    run: AnyRun, plain: Results, ways: Mapping[str, Fitted], clean: Labelled, choice: Choice | None
) -> dict[str, Scaled]:
    """The run's figures with each recalibration. The chosen one and "before" are compared with none."""
    recalibrations = {name: way.recalibration for name, way in ways.items()}
    suites = {suite: shifted for suite, shifted in plain.suites.items() if shifted.part == "test"}
    cells = {suite: _read_cells(run, suite, shifted.shift, recalibrations) for suite, shifted in suites.items()}
    compared = {"before", choice.chosen} if choice else {"before"}
    plain_clean = Predicted.of(NONE, clean).scores[0]
    scaled = {}
    for name, way in ways.items():
        is_compared = name in compared
        shifts = {
            suite: _corrupted(
                found[name], suites[suite].aggregates.members, found[_PLAIN].grids[0] if is_compared else None
            )
            for suite, found in cells.items()
        }
        movement = _movement(way.recalibration, clean)
        moves = [] if movement is None else [Moved("clean", *movement)]
        if CORRUPTED.name in cells:
            moves += cells[CORRUPTED.name][name].moves
        scaled[name] = Scaled(
            way.recalibration,
            _on_clean(way.clean, plain.clean.members, plain_clean if is_compared else None),
            shifts.pop(CORRUPTED.name, None),
            tuple(moves),
            shifts,
            way.validation_nll,
        )
    return scaled


def _on_clean(predicted: Predicted, unscaled_members: Sequence[Figures], without: ImageScores | None) -> ScaledClean:
    ensemble, members = _by_predictor([figures(scores) for scores in predicted.scores], unscaled_members)
    differences = clean_differences(predicted.scores[0], without) if without and are_enough(without.groups) else None
    return ScaledClean(ensemble, members, float(predicted.changed_N.mean()), differences)


@dataclass(frozen=True, eq=False)
class _Cells:
    """All cells with one recalibration."""

    grids: Sequence[Grid]
    """The ensemble's, and then each member's where members were scaled."""
    changed: float
    moves: Sequence[Moved]
    """At each severity, where the temperature depends on the image."""

    @staticmethod
    def of(cells: Mapping[str, Sequence[tuple[Predicted, _Movement | None]]], severities: Sequence[int]) -> "_Cells":
        """From what was found in each cell. Cells have equally many images, so a mean over cells is one over images."""
        every = [predicted for of_corruption in cells.values() for predicted, _ in of_corruption]
        moves = []
        for severity, at_severity in zip(severities, zip(*cells.values(), strict=True), strict=True):
            if movements := [movement for _, movement in at_severity if movement is not None]:
                means = (float(np.mean(column)) for column in zip(*movements, strict=True))
                moves.append(Moved(f"severity {severity}", *means))
        return _Cells(
            grids_of({name: [predicted.scores for predicted, _ in found] for name, found in cells.items()}),
            float(np.mean([predicted.changed_N.mean() for predicted in every])),
            moves,
        )


def _movement(recalibration: Recalibration, images: Labelled) -> _Movement | None:
    """Where the temperature depends on the image: its mean over the images, and the means of what it follows."""
    if not recalibration.slopes:
        return None
    temperatures_TN = image_temperatures(recalibration, images.logits_MNK, images.signals)
    entropy, disagreement = (float(images.signals[signal].mean()) for signal in ("entropy", "disagreement"))
    return float(temperatures_TN.mean()), entropy, disagreement


def _read_cells(
    run: AnyRun, suite: str, shift: Shift, recalibrations: Mapping[str, Recalibration]
) -> dict[str, _Cells]:
    """Every cell with each recalibration and with none. A cell is read once for all of them."""
    every = {_PLAIN: NONE, **recalibrations}

    def predict(images: Labelled) -> dict[str, tuple[Predicted, _Movement | None]]:
        return {name: (Predicted.of(one, images), _movement(one, images)) for name, one in every.items()}

    found: dict[str, dict[str, list[tuple[Predicted, _Movement | None]]]]
    found = {name: {corruption: [] for corruption in shift.corruptions} for name in every}
    for corruption, _, predicted in map_cells(predict, run, suite, shift):
        for name, one in predicted.items():
            found[name][corruption].append(one)
    return {name: _Cells.of(cells, shift.severities) for name, cells in found.items()}


def _corrupted(
    cells: _Cells, unscaled_members: Sequence[Mapping[Aggregate, AggregateFigures]], unscaled: Grid | None
) -> ScaledCorrupted:
    """The figures over all cells, with the differences from the `unscaled` ensemble where they are asked for."""
    grid = cells.grids[0]
    if not are_enough(groups_of_cells(grid)):
        unscaled = None
    ensemble, members = _by_predictor([aggregate(one) for one in cells.grids], unscaled_members)
    return ScaledCorrupted(
        ensemble=ensemble,
        members=members,
        severities=tuple(figures(join_scores(at_severity)) for at_severity in zip(*grid.values(), strict=True)),
        corruptions={name: figures(join_scores(of_corruption)) for name, of_corruption in grid.items()},
        differences=corrupted_differences(grid, unscaled) if unscaled else None,
        calibration_differences=tuple(severity_differences(grid, unscaled)) if unscaled else (),
        changed_predictions=cells.changed,
    )


def _by_predictor(
    scaled: Sequence[FiguresOf], unscaled: Sequence[FiguresOf]
) -> tuple[FiguresOf, tuple[FiguresOf, ...]]:
    """The ensemble's figures and the members'. Members that were not scaled keep their figures."""
    ensemble, *members = scaled
    return ensemble, tuple(members or unscaled)
