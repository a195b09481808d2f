"""A run's figures with recalibrations: on clean images, over all cells, at each severity and of each corruption."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import clean_differences, corrupted_differences, severity_differences
from counterpoint.evaluation.image_groups import labels_file
from counterpoint.evaluation.logits import LogitsAbout, read_cells, read_labels
from counterpoint.evaluation.scores import Grid, add_cell
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import ImageScores, aggregate, image_scores
from counterpoint.metrics.checks import Integers
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.summary import figures
from counterpoint.recalibration.apply import apply, image_temperatures
from counterpoint.recalibration.choose import NONE, HeldOut, cross_fit, fit_held_out
from counterpoint.recalibration.families import Family
from counterpoint.recalibration.fit import Labelled
from counterpoint.recalibration.signals import Signals, member_signals
from counterpoint.records.figures import Aggregate, AggregateFigures, Figures
from counterpoint.records.recalibrated import (
    Care,
    Choice,
    Moved,
    Recalibration,
    Scaled,
    ScaledClean,
    ScaledCorrupted,
)
from counterpoint.records.results import Results, Shift
from counterpoint.runs.imported import AnyRun

_PLAIN = "none"

FiguresOf = TypeVar("FiguresOf")


@dataclass(frozen=True, eq=False)
class _Seen:
    """Images with what every recalibration needs of them, computed once: their signals and their predicted classes."""

    images: Labelled
    signals: Signals
    classes_N: Integers

    @staticmethod
    def of(images: Labelled) -> "_Seen":
        classes_N = softmax(images.logits_MNK, axis=2).mean(axis=0).argmax(axis=1)
        return _Seen(images, member_signals(images.logits_MNK), classes_N)


@dataclass(frozen=True, eq=False)
class Predicted:
    """The scores of the ensemble and then of each scaled member, and where the ensemble predicts another class."""

    scores: list[ImageScores]
    changed_N: NDArray[np.bool_]

    @staticmethod
    def of(recalibration: Recalibration, seen: _Seen) -> "Predicted":
        probs = apply(recalibration, seen.images.logits_MNK, seen.signals)
        members = () if probs.members_MNK is None else tuple(probs.members_MNK)
        scores = [image_scores(probs_NK, seen.images.labels_N) for probs_NK in (probs.ensemble_NK, *members)]
        return Predicted(scores, probs.ensemble_NK.argmax(axis=1) != seen.classes_N)


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
    if own:
        cross_fitted = _cross_fitted(family, held_out, care)
        return Fitted(family, recalibration, cross_fitted, _mean_nll(cross_fitted))
    predicted = Predicted.of(recalibration, _Seen.of(clean))
    try:
        return Fitted(family, recalibration, predicted, _mean_nll(_cross_fitted(family, held_out, care)))
    except InputError:  # the family itself was fitted, to all of the images
        return Fitted(family, recalibration, predicted, None)


def _cross_fitted(family: Family, held_out: HeldOut, care: Care) -> Predicted:
    """What becomes of the clean validation images, each half with the recalibration of the other."""
    halves = [
        (images, Predicted.of(one, _Seen.of(held_out.clean.select(images))))
        for images, one in cross_fit(family, held_out, care)
    ]
    order = np.argsort(np.concatenate([images for images, _ in halves]))
    scores = [join_scores(both).select(order) for both in zip(*(half.scores for _, half in halves), strict=True)]
    return Predicted(scores, np.concatenate([half.changed_N for _, half in halves])[order])


def _mean_nll(predicted: Predicted) -> float:
    return float(predicted.scores[0].nll.mean())


def scaled_figures(
    run: AnyRun, about: LogitsAbout, plain: Results, ways: Mapping[str, Fitted], clean: Labelled, choice: Choice | None
) -> dict[str, Scaled]:
    """The run's figures with each recalibration. The chosen one and "before" are compared with none."""
    recalibrations = {name: way.recalibration for name, way in ways.items()}
    cells = _read_cells(run, about, recalibrations, clean)
    others = {suite: _shift_cells(run, suite, shift, recalibrations) for suite, shift in plain.checked_shifts.items()}
    compared = {"before", choice.chosen} if choice else {"before"}
    plain_clean = Predicted.of(NONE, _Seen.of(clean)).scores[0]
    scaled = {}
    for name, way in ways.items():
        corrupted = None
        if plain.corrupted is not None:
            unscaled = cells[_PLAIN].grids[0] if name in compared else None
            corrupted = _corrupted(cells[name], plain.corrupted.aggregates.members, unscaled)
        on_clean = _on_clean(way.clean, plain.clean.members, plain_clean if name in compared else None)
        shifts = {
            suite: _corrupted(
                found[name],
                plain.shifts[suite].aggregates.members,
                found[_PLAIN].grids[0] if name in compared else None,
            )
            for suite, found in others.items()
        }
        scaled[name] = Scaled(way.recalibration, on_clean, corrupted, cells[name].moves(), shifts, way.validation_nll)
    return scaled


def _on_clean(predicted: Predicted, unscaled_members: Sequence[Figures], without: ImageScores | None) -> ScaledClean:
    ensemble, members = _by_predictor([figures(scores) for scores in predicted.scores], unscaled_members)
    differences = clean_differences(predicted.scores[0], without) if without else None
    return ScaledClean(ensemble, members, float(predicted.changed_N.mean()), differences)


@dataclass(frozen=True, eq=False)
class _Cells:
    """All cells with one recalibration, as they are read."""

    recalibration: Recalibration
    grids: list[Grid] = field(default_factory=list)
    """The ensemble's, and then each member's where members were scaled."""
    changed: list[float] = field(default_factory=list)
    moved: dict[str, list[Moved]] = field(default_factory=dict)

    def add(self, corruption: str, seen: _Seen) -> None:
        predicted = Predicted.of(self.recalibration, seen)
        self.changed.append(float(predicted.changed_N.mean()))
        add_cell(self.grids, corruption, predicted.scores)

    def note_temperature(self, name: str, seen: _Seen) -> None:
        """For a temperature that depends on the image."""
        if self.recalibration.slopes:
            temperatures_TN = image_temperatures(self.recalibration, seen.images.logits_MNK, seen.signals)
            temperature = float(temperatures_TN.mean())
            entropy, disagreement = (float(seen.signals[signal].mean()) for signal in ("entropy", "disagreement"))
            self.moved.setdefault(name, []).append(Moved(name, temperature, entropy, disagreement))

    def moves(self) -> tuple[Moved, ...]:
        """Cells have equally many images, so that a mean over cells is one over images."""
        return tuple(
            Moved(
                name,
                float(np.mean([cell.temperature for cell in cells])),
                float(np.mean([cell.entropy for cell in cells])),
                float(np.mean([cell.disagreement for cell in cells])),
            )
            for name, cells in self.moved.items()
        )


def _read_cells(
    run: AnyRun, about: LogitsAbout, recalibrations: Mapping[str, Recalibration], clean: Labelled
) -> dict[str, _Cells]:
    """Every cell with each recalibration and with none. A cell is read once for all of them."""
    found = {name: _Cells(one) for name, one in {_PLAIN: NONE, **recalibrations}.items()}
    seen = _Seen.of(clean)
    for cells in found.values():
        cells.note_temperature("clean", seen)
    shift = about.suites.get(CORRUPTED.name)
    if shift is not None:
        severities = cycle(shift.severities)
        for corruption, seen in _seen_cells(run, CORRUPTED.name, shift):
            severity = next(severities)
            for cells in found.values():
                cells.add(corruption, seen)
                cells.note_temperature(f"severity {severity}", seen)
    return found


def _shift_cells(
    run: AnyRun, suite: str, shift: Shift, recalibrations: Mapping[str, Recalibration]
) -> dict[str, _Cells]:
    """The same for another set of shifted images, which need not grow worse from clean images on."""
    found = {name: _Cells(one) for name, one in {_PLAIN: NONE, **recalibrations}.items()}
    for corruption, seen in _seen_cells(run, suite, shift):
        for cells in found.values():
            cells.add(corruption, seen)
    return found


def _seen_cells(run: AnyRun, suite: str, shift: Shift) -> Iterator[tuple[str, _Seen]]:
    labels_N = read_labels(run, labels_file(suite), shift.images)
    for corruption, logits_MNK in read_cells(run, suite, shift):
        yield corruption, _Seen.of(Labelled(logits_MNK.astype(np.float64), labels_N))


def _corrupted(
    cells: _Cells, unscaled_members: Sequence[Mapping[Aggregate, AggregateFigures]], unscaled: Grid | None
) -> ScaledCorrupted:
    """The figures over all cells, with the differences from the `unscaled` ensemble where they are asked for."""
    grid = cells.grids[0]
    ensemble, members = _by_predictor([aggregate(one) for one in cells.grids], unscaled_members)
    return ScaledCorrupted(
        ensemble=ensemble,
        members=members,
        severities=tuple(figures(join_scores(at_severity)) for at_severity in zip(*grid.values(), strict=True)),
        corruptions={name: figures(join_scores(of_corruption)) for name, of_corruption in grid.items()},
        differences=corrupted_differences(grid, unscaled) if unscaled else None,
        calibration_differences=tuple(severity_differences(grid, unscaled)) if unscaled else (),
        changed_predictions=float(np.mean(cells.changed)),
    )


def _by_predictor(
    scaled: Sequence[FiguresOf], unscaled: Sequence[FiguresOf]
) -> tuple[FiguresOf, tuple[FiguresOf, ...]]:
    """The ensemble's figures and the members'. Members that were not scaled keep their figures."""
    ensemble, *members = scaled
    return ensemble, tuple(members or unscaled)
