"""Evaluated runs with made-up logits, and how a test changes one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from scipy.special import softmax

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
from counterpoint.evaluation.comparison import clean_differences, corrupted_differences, severity_differences
from counterpoint.metrics import (
    ImageScores,
    Interval,
    aggregate,
    calibration_differences,
    collapse_verdict,
    factor_correlation,
    image_scores,
    independent_disagreement,
    intervals_over_cells,
    likely_start,
    lowest_threshold,
    mean_difference,
    ood_auroc,
    ood_auroc_interval,
    ood_fpr,
    paired_differences,
    score_set,
    summarise,
)
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.shift import aggregate_with_floors
from counterpoint.metrics.summary import class_figures, equal_bins, figures, reliability, risk_coverage_points
from counterpoint.metrics.threshold import verdict
from counterpoint.recalibration.apply import Labelled, apply, image_temperatures, member_signals
from counterpoint.recalibration.choose import NONE, HeldOut, choose, cross_fit, fit_held_out
from counterpoint.recalibration.families import Family, families
from counterpoint.records import compared
from counterpoint.records.compared import Comparison
from counterpoint.records.figures import ClassFigures, Intervals, Summary, WithInterval
from counterpoint.records.files import Evaluated
from counterpoint.records.images import Images, OutsideImages, Part, Shift, Source
from counterpoint.records.outside import ByConfidence, Outside, Separation
from counterpoint.records.recalibrated import (
    Choice,
    FittedOn,
    Moved,
    Recalibrated,
    Recalibration,
    Scaled,
    ScaledClean,
    ScaledCorrupted,
)
from counterpoint.records.results import (
    Aggregates,
    Between,
    Collapse,
    Evaluation,
    HealthAfter,
    HealthRecord,
    Results,
    Shifted,
    Trained,
)
from counterpoint.records.threshold import Checked, KeptOutside, Thresholded

Value = TypeVar("Value")
MakeEvaluated = Callable[..., Evaluated]
Grid = dict[str, list[np.ndarray]]
"""For each corruption, the members' logits at each severity."""

CLASSES, IMAGES, CELL_IMAGES = 5, 120, 40
EXTRA = "validation-extra"
OFFICIAL = Source("official")
_FITTED_SEVERITIES = (2, 4)
_TARGET = 0.2
_REGENERATED = Source("regenerated", 0, "0.1.0", "texture")


def changed(value: Value, path: str, new: Any) -> Value:
    """The same with another value at `path`, such as results.clean.members.0.error."""
    first, _, rest = path.partition(".")
    old: Any = value
    result: Any
    if isinstance(old, Mapping):
        result = {**old, first: changed(old[first], rest, new) if rest else new}
    elif isinstance(old, tuple):
        i = int(first)
        result = (*old[:i], changed(old[i], rest, new) if rest else new, *old[i + 1 :])
    else:
        result = replace(old, **{first: changed(getattr(old, first), rest, new) if rest else new})
    return result


def changed_all(value: Value, changes: Mapping[str, Any]) -> Value:
    for path, new in changes.items():
        value = changed(value, path, new)
    return value


def evaluated(
    name: str = "quickstart",
    members: int = 4,
    seed: int = 0,
    shifted: bool = False,
    more: bool = False,
    extra: bool = False,
) -> Evaluated:
    """What is known of a run whose logits of 120 images and 5 classes are made up.

    `shifted` adds the paper's suite, `extra` another one, and `more` the out-of-distribution, collapse, health,
    recalibrated and paired figures and a threshold; these take seconds to make, and are the same for every seed.
    """
    results = Results(
        counterpoint="0.1.0",
        experiment=name,
        config={"dataset": "digits", "num_members": members if members > 1 else None, "epochs": 17},
        run=Trained(
            seed=seed,
            command=f"counterpoint train {name} --out runs/{name}",
            started="2026-11-15T09:00:00Z",
            finished="2026-11-15T10:00:00Z",
            train_seconds=3725.0,
            device="cpu",
            commit=None,
            versions={"python": "3.11.2", "torch": "2.13.0+cpu"},
        ),
        evaluation=Evaluation(
            command=f"counterpoint evaluate runs/{name}",
            finished="2026-11-15T11:30:00Z",
            seconds=1.234,
            precision="float32",
            device="cpu",
            commit=None,
            versions={},
        ),
        evaluated_on=Images("digits", "test", IMAGES),
        clean=_clean(members, seed),
        corrupted=_shifted(members, CORRUPTIONS, "test") if shifted else None,
        shifts={EXTRA: _shifted(members, EXTRA_CORRUPTIONS, "validation")} if extra else {},
        classes=_classes(members, seed),
    )
    return _with_more(results, members) if more else Evaluated(results)


def _classes(members: int, seed: int) -> tuple[ClassFigures, ...]:
    logits_MNK, labels_N = _clean_logits(members, seed)
    return tuple(class_figures(_mean_probs(logits_MNK), labels_N, [f"class {k}" for k in range(CLASSES)]))


def _with_more(results: Results, members: int) -> Evaluated:
    has_cells = results.corrupted is not None
    collapse = _collapse(members) if members > 1 else None
    if collapse and not has_cells:
        collapse = replace(collapse, severities=())
    results = replace(results, outside={"letters": _outside(members)}, collapse=collapse, health=_health(members))
    made_from = results.made_from
    other = replace(_comparison(members), made_from=made_from)
    others = (other if has_cells else replace(other, corrupted=None),)
    return Evaluated(
        results,
        replace(_recalibrated(members, has_cells), made_from=made_from),
        compared.Compared(results.experiment, results.seed, made_from, "counterpoint compare", "then", others),
        replace(_thresholded(members, has_cells), made_from=made_from),
    )


def _logits(labels: np.ndarray, members: int, signal: float, seed: list[int]) -> np.ndarray:
    """Members that share most of what they see, and are twice as sure as they should be."""
    rng = np.random.default_rng(seed)
    shared, apart = rng.normal(size=(len(labels), CLASSES)), rng.normal(size=(members, len(labels), CLASSES))
    return 2 * (0.8 * shared + 0.6 * apart + signal * np.eye(CLASSES)[labels])


@cache
def _clean_logits(members: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    labels = np.random.default_rng(seed).integers(CLASSES, size=IMAGES)
    return _logits(labels, members, 2, [seed, members]), labels


@cache
def _grid(members: int, names: tuple[str, ...] = CORRUPTIONS) -> tuple[Grid, np.ndarray]:
    """40 images in each cell, whose signal fades with the severity."""
    labels = np.random.default_rng(0).integers(CLASSES, size=CELL_IMAGES)
    grid = {
        name: [_logits(labels, members, 2 - 0.3 * severity, [0, i, severity]) for severity in range(1, 6)]
        for i, name in enumerate(names)
    }
    return grid, labels


def _scores(grid: Grid, labels: np.ndarray, pick: Callable[[np.ndarray], np.ndarray]) -> dict[str, list[ImageScores]]:
    return {name: [image_scores(pick(logits), labels) for logits in row] for name, row in grid.items()}


def _mean_probs(logits_MNK: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(logits_MNK, axis=2).mean(axis=0))


def _member_probs(i: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda logits_MNK: np.asarray(softmax(logits_MNK[i], axis=1))


@cache
def _clean(members: int, seed: int) -> Summary:
    logits, labels = _clean_logits(members, seed)
    scores = score_set(softmax(logits, axis=2), labels)
    return replace(
        summarise(scores),
        member_reliability=tuple(map(reliability, scores.members)) if members > 1 else (),
        risk_coverage=risk_coverage_points(scores.ensemble),
    )


@cache
def _shifted(members: int, names: tuple[str, ...], part: Part) -> Shifted:
    grid, labels = _grid(members, names)
    ensemble = _scores(grid, labels, _mean_probs)
    of_members = [_scores(grid, labels, _member_probs(i)) for i in range(members)]
    cells = {
        name: tuple(summarise(score_set(softmax(one, axis=2), labels), honest_members=False) for one in row)
        for name, row in grid.items()
    }
    all_cells = [cell for row in cells.values() for cell in row]
    return Shifted(
        source=_REGENERATED,
        images=len(labels),
        part=part,
        corruptions=tuple(cells),
        severities=tuple(range(1, 1 + len(next(iter(cells.values()))))),
        aggregates=Aggregates(
            aggregate_with_floors(ensemble),
            tuple(map(aggregate, of_members)),
            _mean([cell.disagreement for cell in all_cells]),
            _mean([cell.pairwise_kl for cell in all_cells]),
            Intervals(
                **{name: WithInterval(*vars(one).values()) for name, one in intervals_over_cells(ensemble).items()}
            ),
            floors_over="images",
        ),
        cells=cells,
        risk_coverage=tuple(map(risk_coverage_points, _by_severity(ensemble))),
        member_bins=tuple(
            tuple(equal_bins(scores, "width") for scores in at_severity)
            for at_severity in zip(*map(_by_severity, of_members), strict=True)
        )
        if members > 1
        else (),
    )


def _intervals(scores: dict[str, list[ImageScores]]) -> Intervals:
    found = intervals_over_cells(scores)
    return Intervals(**{name: WithInterval(one.value, one.low, one.high) for name, one in found.items()})


def _by_severity(scores: dict[str, list[ImageScores]]) -> list[ImageScores]:
    return [join_scores(row) for row in zip(*scores.values(), strict=True)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


@cache
def _outside(members: int) -> Outside:
    outside = _logits(np.zeros(60, dtype=int), members, 0, [0, 99])
    inside, _ = _clean_logits(members, 0)
    of_predictors = [_mean_probs, *(_member_probs(i) for i in range(members))]
    scores = [(probs(inside).max(axis=1), probs(outside).max(axis=1)) for probs in of_predictors]
    whole, *each = [
        ByConfidence(auroc=ood_auroc(*pair), fpr95=ood_fpr(*pair), mean_confidence=float(pair[1].mean()))
        for pair in scores
    ]
    interval = ood_auroc_interval(*scores[0])
    return Outside(
        images=60,
        key="0123456789abcdef",
        ensemble=replace(whole, auroc_low=interval.low, auroc_high=interval.high),
        members=tuple(each),
        signals={
            "entropy_of_mean": Separation(auroc=0.9, auroc_low=0.8, auroc_high=0.95, fpr95=0.3),
            "mutual_information": Separation(auroc=0.7, auroc_low=0.6, auroc_high=0.8, fpr95=0.75),
        }
        if members > 1
        else None,
    )


@cache
def _collapse(members: int) -> Collapse:
    clean, cells = _clean(members, 0), _shifted(members, CORRUPTIONS, "test").cells
    factors = np.random.default_rng(0).normal(1, 0.5, size=(2, members, 300))
    assert clean.disagreement is not None
    assert clean.pairwise_kl is not None
    return Collapse(
        r=factor_correlation([factors[0]]),
        s=factor_correlation([factors[1]]),
        clean=_between([clean]),
        severities=tuple(_between(row) for row in zip(*cells.values(), strict=True)),
        verdict=collapse_verdict(clean.disagreement, _mean_error(clean), clean.pairwise_kl, CLASSES),
    )


def _between(summaries: Sequence[Summary]) -> Between:
    disagreement, kl = (_mean([getattr(one, key) for one in summaries]) for key in ("disagreement", "pairwise_kl"))
    independent = _mean([independent_disagreement(_mean_error(one), CLASSES) for one in summaries])
    assert disagreement is not None
    assert kl is not None
    assert independent is not None
    return Between(disagreement, kl, independent)


def _mean_error(summary: Summary) -> float:
    return float(np.mean([member.error for member in summary.members]))


def _health(members: int) -> HealthRecord:
    """More and more dead scales, and a spread that shrinks."""
    spreads = [(0.5 - 0.1 * i, 0.4 - 0.1 * i) if members > 1 else (None, None) for i in range(5)]
    return HealthRecord(400, tuple(HealthAfter(4 * i + 1, 0, 4 * i, *spreads[i]) for i in range(5)), ())


@cache
def _held_out(members: int) -> HeldOut:
    """The images that are fitted on: the clean ones, and two severities of the other suite, where members are surer."""
    logits, labels = _clean_logits(members, 0)
    grid, cell_labels = _grid(members, EXTRA_CORRUPTIONS)
    shifted = {
        name: [Labelled(1.5 * row[i - 1], cell_labels) for i in _FITTED_SEVERITIES] for name, row in grid.items()
    }
    return HeldOut(Labelled(logits, labels), shifted)


@cache
def _fitted(members: int) -> dict[str, tuple[Family, Recalibration]]:
    known = families(members, shifted=True)
    return {family.name: (family, fit_held_out(family, _held_out(members), "both")) for family in known}


@cache
def _choice(members: int) -> Choice:
    return choose(families(members, shifted=True), _held_out(members), "both")


@cache
def _recalibrated(members: int, has_cells: bool) -> Recalibrated:
    choice = _choice(members)
    return Recalibrated(
        made_from=evaluated(members=members).results.made_from,
        command="counterpoint recalibrate",
        finished="then",
        fitted_on=FittedOn(
            Images("digits", "validation", IMAGES),
            Shift(_REGENERATED, CELL_IMAGES, "validation", EXTRA_CORRUPTIONS, _FITTED_SEVERITIES),
            "this run",
            None,
        ),
        care="both",
        clean_how="cross-fitted on two seeded halves of the validation images",
        corrupted_how="parameters of all validation images",
        ways={name: _scaled(members, name, has_cells, {"before", choice.chosen}) for name in _fitted(members)},
        choice=choice,
        unscaled_validation_nll=evaluated(members=members).results.clean.ensemble.nll,
    )


def _scaled(members: int, name: str, has_cells: bool, differing: set[str]) -> Scaled:
    family, recalibration = _fitted(members)[name]
    held_out = _held_out(members)
    halves = list(cross_fit(family, held_out, "both"))
    scores = []
    for images, one in halves:
        half = held_out.clean.select(images)
        scores.append(image_scores(apply(one, half.logits_MNK).ensemble_NK, half.labels_N))
    crossed = join_scores(scores).select(np.argsort(np.concatenate([images for images, _ in halves])))
    plain = image_scores(_mean_probs(held_out.clean.logits_MNK), held_out.clean.labels_N)
    differences = clean_differences(crossed, plain) if name in differing else None
    clean = ScaledClean(figures(crossed), _clean(members, 0).members, 0.01, differences)
    if not has_cells:
        return Scaled(recalibration, clean, moves=_moves(members, recalibration)[:1], validation_nll=clean.ensemble.nll)
    return Scaled(
        recalibration,
        clean,
        _scaled_cells(members, recalibration, name in differing),
        _moves(members, recalibration),
        validation_nll=clean.ensemble.nll,
    )


def _scaled_cells(members: int, recalibration: Recalibration, with_differences: bool) -> ScaledCorrupted:
    grid, labels = _grid(members)
    plain = _scores(grid, labels, _mean_probs)
    scaled = _scores(grid, labels, lambda logits_MNK: apply(recalibration, logits_MNK).ensemble_NK)
    return ScaledCorrupted(
        aggregate(scaled),
        _shifted(members, CORRUPTIONS, "test").aggregates.members,
        tuple(figures(join_scores(cells)) for cells in zip(*scaled.values(), strict=True)),
        {name: figures(join_scores(cells)) for name, cells in scaled.items()},
        0.02,
        corrupted_differences(scaled, plain) if with_differences else None,
        tuple(severity_differences(scaled, plain)) if with_differences else (),
    )


def _moves(members: int, recalibration: Recalibration) -> tuple[Moved, ...]:
    if not recalibration.slopes:
        return ()
    grid, _ = _grid(members)
    by_severity = zip(*grid.values(), strict=True)
    sets = {"clean": [_clean_logits(members, 0)[0]]} | {f"severity {i}": [*one] for i, one in enumerate(by_severity, 1)}
    return tuple(_moved(name, recalibration, np.concatenate(cells, axis=1)) for name, cells in sets.items())


def _moved(name: str, recalibration: Recalibration, logits_MNK: np.ndarray) -> Moved:
    signals = member_signals(logits_MNK)
    return Moved(
        name,
        float(image_temperatures(recalibration, logits_MNK).mean()),
        float(signals["entropy"].mean()),
        float(signals["disagreement"].mean()),
    )


@cache
def _thresholded(members: int, has_cells: bool) -> Thresholded:
    """A promise that the clean images of another seed may break, and the cells do."""
    (logits, labels), (grid, cell_labels) = _clean_logits(members, 0), _grid(members)
    scores = image_scores(_mean_probs(logits), labels)
    start = likely_start(scores.confidence, scores.correct, _TARGET, IMAGES)
    promise = lowest_threshold(scores.confidence, scores.correct, _TARGET, start)

    def checked(logits_MNK: np.ndarray, labels_N: np.ndarray) -> Checked:
        found = image_scores(_mean_probs(logits_MNK), labels_N)
        right = found.correct[found.confidence >= promise.chosen.threshold]
        kept, wrong = len(right), int((1 - right).sum())
        return Checked(len(labels_N), kept, wrong, verdict(kept, wrong, _TARGET))

    return Thresholded(
        made_from=evaluated(members=members).results.made_from,
        command="counterpoint threshold",
        finished="then",
        promise=promise,
        recalibration=NONE,
        recalibration_name="none",
        fitted_images=40,
        test=checked(*_clean_logits(members, 1)),
        cells={name: tuple(checked(one, cell_labels) for one in row) for name, row in grid.items()}
        if has_cells
        else {},
        outside={"letters": KeptOutside(images=60, key="0123456789abcdef", kept=21)},
    )


@cache
def _comparison(members: int) -> Comparison:
    """The differences from a single network whose logits are the first member's with more noise."""
    (logits, labels), (grid, cell_labels) = _clean_logits(members, 0), _grid(members)
    rng = np.random.default_rng(0)

    def worse(logits_MNK: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(logits_MNK[0] + 3 * rng.normal(size=logits_MNK[0].shape), axis=1))

    ours, other = image_scores(_mean_probs(logits), labels), image_scores(worse(logits), labels)
    cells = _scores(grid, cell_labels, _mean_probs), _scores(grid, cell_labels, worse)

    def over_cells(severities: range) -> compared.MeanDifferences:
        some = [[row[severity] for row in one.values() for severity in severities] for one in cells]
        means = [
            {
                "error": np.mean([~cell.correct for cell in one], axis=0),
                "nll": np.mean([cell.nll for cell in one], axis=0),
                "brier": np.mean([cell.brier for cell in one], axis=0),
            }
            for one in some
        ]
        return compared.MeanDifferences(
            **{key: _difference(mean_difference(means[0][key], means[1][key])) for key in means[0]}
        )

    of_cells = {key: _difference(one) for key, one in calibration_differences(*cells).items()}
    return Comparison(
        experiment="digits/single",
        seed=7,
        run="digits-single",
        made_from=evaluated(members=members).results.made_from,
        clean=compared.CleanDifferences(
            **{key: _difference(one) for key, one in paired_differences(ours, other).items()}
        ),
        corrupted=compared.CorruptedDifferences(
            mean=over_cells(range(5)),
            severities=tuple(over_cells(range(severity, severity + 1)) for severity in range(5)),
            by_corruption=compared.CalibrationDifferences(**of_cells),
        ),
        outside={
            "letters": compared.OutsideDifference(
                OutsideImages(60, "0123456789abcdef"), compared.Difference(0.03, -0.01, 0.07)
            )
        },
    )


def _difference(interval: Interval) -> compared.Difference:
    return compared.Difference(interval.value, interval.low, interval.high)
