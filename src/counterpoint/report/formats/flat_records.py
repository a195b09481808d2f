"""The figures of a run as flat records: one for each set of images and model, all with the same keys."""

import json
from collections.abc import Iterator, Mapping

from counterpoint.records.codec import encode
from counterpoint.records.compared import CorruptedDifferences, Difference
from counterpoint.records.figures import Summary
from counterpoint.records.outside import ByConfidence, Separation
from counterpoint.records.threshold import Checked, Thresholded
from counterpoint.report.metrics import METRICS
from counterpoint.report.pairs import known_differences
from counterpoint.report.run import (
    AGGREGATES,
    CALIBRATION,
    ReportedRun,
    Scores,
    aggregate_summary,
    clean_summary,
    models,
)
from counterpoint.report.suites import ShiftedRun, papers_suite, suites_of

_PLACE = (
    *("dataset", "part", "images", "source", "aggregate", "corruption", "severity", "recalibration"),
    *("threshold", "promised_error", "promise", "against", "scored_by"),
)
_FIGURES = (
    *(metric.key for metric in METRICS),
    *(f"{key}_{part}" for key in CALIBRATION for part in ("floor", "excess", "debiased")),
    *(f"{key}_{end}" for key in ("error", "nll", "brier", *CALIBRATION) for end in ("low", "high")),
    *("ood_auroc", "ood_auroc_low", "ood_auroc_high", "ood_fpr95"),
    "coverage",
)

Place = dict[str, str | int | float]
Record = dict[str, str | int | float | None]
Differences = Mapping[str, Difference]


def names(run: ReportedRun) -> Record:
    return {"run": run.label, "experiment": run.results.experiment, "seed": run.results.seed}


def records(run: ReportedRun) -> Iterator[Record]:
    """The clean set, of each suite its aggregates and cells, recalibrated, outside images, a threshold, differences.

    Outside images have the part "outside", and `scored_by` names the number that tells them from the clean images.

    Where `recalibration` names one, the figures are of the recalibrated model. Where `threshold` is a confidence, they
    are of the images kept from it on, and `promise` says what became of `promised_error` there. Where `against` names
    another run, they are differences from it. `_low` and `_high` are 95 % intervals over images.
    """
    for place, summary in (*_plain_sets(run), *_recalibrated_sets(run)):
        for model, scores in models(summary):
            yield _record({**place, "model": model}, scores)
    yield from _outside(run)
    yield from _kept(run)
    yield from _differences(run)


def _record(place: Place, figures: Mapping[str, float | None]) -> Record:
    return {key: place.get(key) for key in (*_PLACE, "model")} | {key: figures.get(key) for key in _FIGURES}


def _clean_place(run: ReportedRun) -> Place:
    on = run.results.evaluated_on
    return {"dataset": on.dataset, "part": on.part, "images": on.images}


def _shifted_place(shifted: ShiftedRun) -> Place:
    return {
        "dataset": shifted.dataset,
        "part": shifted.figures.part,
        "images": shifted.figures.images,
        "source": json.dumps(encode(shifted.figures.source)),
    }


def _plain_sets(run: ReportedRun) -> Iterator[tuple[Place, Summary]]:
    yield _clean_place(run), run.clean
    for shifted in suites_of(run):
        place = _shifted_place(shifted)
        for aggregate in AGGREGATES:
            yield {**place, "aggregate": aggregate}, shifted.aggregate(aggregate)
        for name, row in shifted.figures.cells.items():
            for severity, cell in zip(_severities(shifted), row, strict=True):
                yield {**place, "corruption": name, **severity}, cell


def _severities(shifted: ShiftedRun) -> list[Place]:
    """Where each cell of a row is; a shift without severities has no severity 1."""
    if not shifted.has_severities:
        return [{}]
    return [{"severity": number} for number in shifted.figures.severities]


def _recalibrated_sets(run: ReportedRun) -> Iterator[tuple[Place, Summary]]:
    found = run.evaluated.recalibrated
    for name, scaled in found.ways.items() if found else ():
        yield {**_clean_place(run), "recalibration": name}, clean_summary(scaled)
        for shifted in suites_of(run):
            if (figures := scaled.on(shifted.suite)) is not None:
                for aggregate in AGGREGATES:
                    place: Place = {**_shifted_place(shifted), "aggregate": aggregate, "recalibration": name}
                    yield place, aggregate_summary(figures, aggregate)


def _outside(run: ReportedRun) -> Iterator[Record]:
    (whole, _), *members = models(run.clean)
    for name, found in run.results.outside.items():
        place: Place = {"dataset": name, "part": "outside", "images": found.images}
        scored: list[tuple[str, str, Separation]] = [(whole, "confidence", found.ensemble)]
        scored += [(whole, signal, of_signal) for signal, of_signal in (found.signals or {}).items()]
        of_members = zip(members, found.members, strict=True) if members else ()
        scored += [(model, "confidence", of_member) for (model, _), of_member in of_members]
        for model, by, separation in scored:
            figures = {f"ood_{key}": value for key, value in vars(separation).items() if key != "mean_confidence"}
            confidence = {"mean_confidence": separation.mean_confidence} if isinstance(separation, ByConfidence) else {}
            yield _record({**place, "model": model, "scored_by": by}, figures | confidence)


def _kept(run: ReportedRun) -> Iterator[Record]:
    """What a threshold keeps: of the validation images that it was chosen on, and of all that it was checked on."""
    found = run.evaluated.thresholded
    if found is None:
        return
    model, _ = next(models(run.clean))
    promise, chosen = found.promise, found.promise.chosen
    promised: Place = {
        "model": model,
        "recalibration": found.recalibration_name,
        "threshold": chosen.threshold,
        "promised_error": promise.target,
    }
    dataset: Place = {"dataset": found.made_from.clean.dataset}
    place = promised | dataset | {"part": "validation", "images": promise.images, "promise": "made"}
    yield _record(place, {"error": chosen.wrong / chosen.kept, "coverage": promise.coverage})
    for place, one in _checked(run, found):
        checked = promised | dataset | place | {"images": one.images, "promise": one.verdict}
        yield _record(checked, {"error": one.error, "coverage": one.coverage})
    for name, outside in found.outside.items():
        place = promised | {"dataset": name, "part": "outside", "images": outside.images}
        yield _record(place, {"coverage": outside.share})


def _checked(run: ReportedRun, found: Thresholded) -> Iterator[tuple[Place, Checked]]:
    if found.test:
        yield {"part": "test"}, found.test
    if papers := papers_suite(run):
        place = _shifted_place(papers)
        for name, cells in found.cells.items():
            for severity, cell in zip(papers.figures.severities, cells, strict=True):
                yield {**place, "corruption": name, "severity": severity}, cell
    for shifted in suites_of(run):
        if (checked := found.shifts.get(shifted.suite)) is not None:
            for at, cell in zip(_severities(shifted), checked.cells, strict=True):
                yield {**_shifted_place(shifted), "corruption": shifted.suite, **at}, cell


def _differences(run: ReportedRun) -> Iterator[Record]:
    """Over cells an image counts once: with its mean over them, or for calibration errors with all of them."""
    model, _ = next(models(run.clean))
    for other in run.evaluated.compared.against if run.evaluated.compared else ():
        sets: list[tuple[Place, Differences]] = [(_clean_place(run), known_differences(other.clean))]
        for shifted in suites_of(run):
            if (found := other.on(shifted.suite)) is not None:
                sets += _shift_differences(shifted, found)
        for where, differences in sets:
            if differences:
                yield _record({**where, "model": model, "against": other.called}, _flat(differences))


def _shift_differences(shifted: ShiftedRun, found: CorruptedDifferences) -> Iterator[tuple[Place, Differences]]:
    place: Place = {**_shifted_place(shifted), "aggregate": "by-cell"}
    yield place, known_differences(found.mean)
    if shifted.has_severities:
        for at, one in zip(_severities(shifted), found.severities, strict=True):
            yield {**place, **at}, known_differences(one)
    yield {**place, "aggregate": "by-corruption"}, known_differences(found.by_corruption)


def _flat(differences: Differences) -> Scores:
    flat: Scores = {}
    for key, found in differences.items():
        name = key.removesuffix("_debiased")
        flat |= {key: found.difference, f"{name}_low": found.low, f"{name}_high": found.high}
    return flat
