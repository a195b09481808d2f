"""Small records with every field filled, as values: what reads and writes them can be tested without an evaluation."""

from dataclasses import replace
from typing import Any

from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    Compared,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
)
from counterpoint.records.figures import (
    AggregateFigures,
    Bin,
    ClassFigures,
    Curve,
    Estimate,
    Estimates,
    Figures,
    Honest,
    Intervals,
    Reliability,
    Summary,
    WithInterval,
)
from counterpoint.records.images import Images, Source
from counterpoint.records.outside import ByConfidence, Outside, Separation
from counterpoint.records.recalibrated import (
    Candidate,
    Choice,
    FittedOn,
    Moved,
    Parameter,
    Recalibrated,
    Recalibration,
    Scaled,
    ScaledClean,
    ScaledCorrupted,
    Slope,
)
from counterpoint.records.results import (
    Aggregates,
    Between,
    Collapse,
    Evaluation,
    FactorCorrelation,
    HealthAfter,
    HealthRecord,
    Results,
    Segment,
    Shifted,
    Trained,
)
from counterpoint.records.threshold import Checked, KeptOutside, Promise, Thresholded, Tried

_NUMBERS: dict[str, Any] = {
    "error": 0.25,
    "nll": 0.7,
    "brier": 0.4,
    "ece_width15": 0.05,
    "ece_rms_width15": 0.06,
    "ece_mass15": 0.055,
    "ece_rms_mass15": 0.065,
    "mean_confidence": 0.8,
    "overconfidence": 0.05,
    "aurc": 0.1,
}
_FLOORS = {f"{name}_floor": 0.01 for name in _NUMBERS if name.startswith("ece")}
_FIGURES = Figures(**_NUMBERS)
_AGGREGATE = AggregateFigures(**_NUMBERS, **_FLOORS)
_ESTIMATE = Estimate(0.01, 0.04, 0.045, 0.02, 0.07)
_ESTIMATES: Estimates = {
    "ece_width15": _ESTIMATE,
    "ece_rms_width15": _ESTIMATE,
    "ece_mass15": _ESTIMATE,
    "ece_rms_mass15": _ESTIMATE,
}
_BINS = (Bin(0.4, 0.466, 3, 0.45, 0.5), Bin(0.933, 1.0, 7, 0.97, 0.9))
_CURVE = Curve((0.5, 1.0), (0.1, 0.25))
_DIFFERENCE = Difference(-0.02, -0.05, 0.01)
_MEANS = MeanDifferences(_DIFFERENCE, _DIFFERENCE, _DIFFERENCE)
_CALIBRATION = CalibrationDifferences(_DIFFERENCE, _DIFFERENCE, _DIFFERENCE, _DIFFERENCE)


def make_results() -> Results:
    """Two members, the paper's suite cut to two corruptions at two severities, and another suite."""
    between = Between(0.1, 0.2, 0.3)
    machine: dict[str, Any] = {"device": "a machine", "commit": "0123456", "versions": {"torch": "2"}}
    return Results(
        counterpoint="0.1.0",
        experiment="digits/quickstart",
        config={"epochs": 2},
        run=Trained(
            seed=3,
            segments=(Segment(0, "eager", "a machine", None),),
            command="counterpoint train",
            started="2026-01-01T00:00:00Z",
            finished="2026-01-01T00:01:00Z",
            train_seconds=60.0,
            **machine,
        ),
        evaluation=Evaluation(
            command="counterpoint evaluate",
            finished="2026-01-01T00:02:00Z",
            seconds=9.0,
            precision="fp32",
            weights="0123456789abcdef",
            **machine,
        ),
        evaluated_on=Images("digits", "validation", 10),
        clean=replace(
            _summary(honest_members=True), member_reliability=(Reliability(_BINS, _BINS),) * 2, risk_coverage=_CURVE
        ),
        corrupted=_shifted("fog", "snow"),
        shifts={"validation-extra": replace(_shifted("spatter"), part="validation")},
        classes=(
            ClassFigures(
                name="three",
                images=4,
                wrong=1,
                taken_for="eight",
                taken=1,
                predicted=5,
                predicted_right=3,
                predicted_confidence=0.8,
            ),
        ),
        outside={
            "letters": Outside(
                images=5,
                key="0123456789abcdef",
                ensemble=ByConfidence(auroc=0.9, auroc_low=0.7, auroc_high=0.97, fpr95=0.4, mean_confidence=0.6),
                members=(
                    ByConfidence(auroc=0.8, fpr95=0.6, mean_confidence=0.7),
                    ByConfidence(auroc=0.85, fpr95=0.2, mean_confidence=0.65),
                ),
                signals={
                    "entropy_of_mean": Separation(auroc=0.91, auroc_low=0.71, auroc_high=0.98, fpr95=0.2),
                    "mutual_information": Separation(auroc=0.7, auroc_low=0.5, auroc_high=0.85, fpr95=0.8),
                },
            )
        },
        collapse=Collapse(
            r=FactorCorrelation(0.1, 0.2, -1.0),
            s=FactorCorrelation(0.1, 0.2, -1.0),
            clean=between,
            severities=(between, between),
            verdict="The members differ clearly.",
        ),
        health=HealthRecord(40, (HealthAfter(1, 0, 2, 0.5, 0.4),), ("many are lost",)),
    )


def make_recalibrated() -> Recalibrated:
    """Two of the ways, of which one was chosen."""
    results = make_results()
    aggregates = {"by-corruption": _AGGREGATE, "by-cell": _AGGREGATE, "pooled": _AGGREGATE}
    both = (_FIGURES, _FIGURES)
    corrupted = ScaledCorrupted(
        ensemble=aggregates,  # type: ignore[arg-type]
        members=(aggregates, aggregates),  # type: ignore[arg-type]
        severities=both,
        corruptions={"fog": _FIGURES, "snow": _FIGURES},
        differences=CorruptedDifferences(_MEANS, (_MEANS, _MEANS), _CALIBRATION),
        calibration_differences=(_CALIBRATION, _CALIBRATION),
        changed_predictions=0.02,
    )
    differences = CleanDifferences(*(_DIFFERENCE for _ in range(7)))
    clean = ScaledClean(_FIGURES, both, changed_predictions=0.01, differences=differences)
    by_both = Recalibration(
        "before",
        "shifted",
        (Parameter(-0.1, 0.03),),
        (Slope("entropy", Parameter(0.7, 0.2)), Slope("disagreement", Parameter(2.5, 0.4))),
    )
    moves = (Moved("clean", 1.2, 0.2, 0.05), Moved("severity 1", 1.4, 0.3, 0.08), Moved("severity 2", 1.9, 0.4, 0.15))
    candidates = (
        Candidate("none", 0, 0.7, {"spatter": 1.2}, 0.95, Difference(0.1, 0.07, 0.13)),
        Candidate("before", 1, 0.66, {"spatter": 1.15}, 0.905, Difference(0.055, 0.03, 0.08)),
        Candidate("by both", 3, 0.65, {"spatter": 1.05}, 0.85, Difference(0.0, 0.0, 0.0)),
    )
    return Recalibrated(
        made_from=results.made_from,
        command="counterpoint recalibrate",
        finished="2026-01-01T00:03:00Z",
        fitted_on=FittedOn(
            Images("digits", "validation", 10),
            results.shifts["validation-extra"].shift,
            "this run",
            "0123456789abcdef",
        ),
        care="both",
        clean_how="cross-fitted",
        corrupted_how="parameters of all",
        ways={
            "per-member": Scaled(Recalibration("per-member", "clean", (Parameter(0.4, 0.02),) * 2), clean),
            "by both": Scaled(by_both, clean, corrupted, moves),
        },
        choice=Choice("by both", "both", 10, candidates, {"by entropy": "these 10 images do not determine it"}),
    )


def make_compared() -> Compared:
    results = make_results()
    comparison = Comparison(
        experiment="digits/single",
        seed=7,
        run="single",
        made_from=results.made_from,
        clean=CleanDifferences(*(_DIFFERENCE for _ in range(7))),
        corrupted=CorruptedDifferences(_MEANS, (_MEANS, _MEANS), _CALIBRATION),
    )
    return Compared("digits/quickstart", 3, results.made_from, "counterpoint compare", "now", (comparison,))


def make_thresholded() -> Thresholded:
    """The promise breaks under fog and holds in snow."""
    return Thresholded(
        made_from=make_results().made_from,
        command="counterpoint threshold",
        finished="2026-01-01T00:04:00Z",
        promise=Promise(
            target=0.1,
            images=60,
            grid=163,
            start=Tried(0.9, 40, 0, 0.072),
            chosen=Tried(0.75, 50, 1, 0.091),
            refused=Tried(0.74, 52, 2, 0.116),
            coverage_low=0.6,
            coverage_high=0.94,
        ),
        recalibration=Recalibration("before", "clean", (Parameter(0.3, 0.04),)),
        recalibration_name="before",
        fitted_images=20,
        test=Checked(40, 30, 1, "holds"),
        cells={
            "fog": (Checked(4, 3, 1, "unclear"), Checked(4, 4, 3, "breaks")),
            "snow": (Checked(4, 3, 0, "holds"), Checked(4, 0, 0, "holds")),
        },
        outside={"letters": KeptOutside(images=5, key="0123456789abcdef", kept=2)},
    )


def _summary(*, honest_members: bool) -> Summary:
    return Summary(
        ensemble=_FIGURES,
        members=(_FIGURES, _FIGURES),
        disagreement=0.1,
        pairwise_kl=0.2,
        honest=Honest(_ESTIMATES, (_ESTIMATES, _ESTIMATES) if honest_members else ()),
        reliability=Reliability(_BINS, _BINS),
    )


_INTERVALS = Intervals(
    error=WithInterval(0.25, 0.2, 0.3),
    nll=WithInterval(0.7, 0.6, 0.8),
    brier=WithInterval(0.35, 0.3, 0.4),
    **dict.fromkeys(
        ("ece_width15_debiased", "ece_rms_width15_debiased", "ece_mass15_debiased", "ece_rms_mass15_debiased"),
        WithInterval(0.04, 0.02, 0.06),
    ),
)


def _shifted(*corruptions: str) -> Shifted:
    aggregates = {"by-corruption": _AGGREGATE, "by-cell": _AGGREGATE, "pooled": _AGGREGATE}
    cell = _summary(honest_members=False)
    return Shifted(
        source=Source("regenerated", 0, "1", "texture"),
        images=4,
        part="test",
        corruptions=corruptions,
        severities=(1, 2),
        aggregates=Aggregates(aggregates, (aggregates, aggregates), 0.1, 0.2, _INTERVALS),  # type: ignore[arg-type]
        cells=dict.fromkeys(corruptions, (cell, cell)),
        risk_coverage=(_CURVE, _CURVE),
        member_bins=((_BINS, _BINS), (_BINS, _BINS)),
    )
