"""The figures of a run as flat records: one for each set of images and model, all with the same keys."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from counterpoint.report.run import AGGREGATES, CALIBRATION, CORRUPTIONS, SEVERITIES, ReportedRun, Summary, models
from counterpoint.report.tables import METRICS

_PLACE = ("dataset", "part", "images", "source", "aggregate", "corruption", "severity", "temperature", "against")
_FIGURES = (
    *(metric.key for metric in METRICS),
    *(f"{key}_{part}" for key in CALIBRATION for part in ("floor", "excess", "debiased")),
    *(f"{key}_{end}" for key in ("error", "nll", "brier", *CALIBRATION) for end in ("low", "high")),
    "ood_auroc",
)

Record = dict[str, Any]


def names(run: ReportedRun) -> Record:
    return {"run": run.label, "experiment": run.results["experiment"], "seed": run.results["run"]["seed"]}


def records(run: ReportedRun) -> Iterator[Record]:
    """The clean set, the aggregates over -C, each cell, what temperatures make of them, other images, and differences.

    Where `temperature` names a kind of temperature, the figures are of the recalibrated model. Where `against` names
    another run, they are differences from it. `_low` and `_high` are 95 % intervals over images.
    """
    for place, summary in (*_plain_sets(run), *_recalibrated_sets(run)):
        for model, scores in models(summary):
            yield _record({**place, "model": model}, scores)
    yield from _outside(run)
    yield from _differences(run)


def _record(place: Record, figures: Mapping[str, float | None]) -> Record:
    return {key: place.get(key) for key in (*_PLACE, "model")} | {key: figures.get(key) for key in _FIGURES}


def _clean_place(run: ReportedRun) -> Record:
    return {key: run.results["evaluated_on"][key] for key in ("dataset", "part", "images")}


def _shifted_place(run: ReportedRun) -> Record:
    return {
        "dataset": f"{run.results['evaluated_on']['dataset']}-C",
        "part": "test",
        "images": run.corrupted["images"],
        "source": json.dumps(run.corrupted["source"]),
    }


def _plain_sets(run: ReportedRun) -> Iterator[tuple[Record, Summary]]:
    yield _clean_place(run), run.clean
    if not run.is_corrupted:
        return
    place = _shifted_place(run)
    for aggregate in AGGREGATES:
        yield {**place, "aggregate": aggregate}, run.aggregate(aggregate)
    for name in CORRUPTIONS:
        for severity, cell in zip(SEVERITIES, run.corrupted["cells"][name], strict=True):
            yield {**place, "corruption": name, "severity": severity}, cell


def _recalibrated_sets(run: ReportedRun) -> Iterator[tuple[Record, Summary]]:
    for kind, scaled in (run.results.get("recalibrated") or {"ways": {}})["ways"].items():
        yield {**_clean_place(run), "temperature": kind}, scaled["clean"]
        shifted = scaled.get("corrupted")
        for aggregate in AGGREGATES if shifted and run.is_corrupted else ():
            members = [member[aggregate] for member in shifted["members"]]
            summary = {"ensemble": shifted["ensemble"][aggregate], "members": members}
            yield {**_shifted_place(run), "aggregate": aggregate, "temperature": kind}, summary


def _outside(run: ReportedRun) -> Iterator[Record]:
    ood = run.results.get("ood")
    if not ood:
        return
    place = {"dataset": ood["dataset"], "part": "test", "images": ood["images"]}
    aurocs = (ood["auroc"]["ensemble"], *ood["auroc"]["members"])
    for (model, _), auroc in zip(models(run.clean), aurocs, strict=False):
        yield _record({**place, "model": model}, {"ood_auroc": auroc})


def _differences(run: ReportedRun) -> Iterator[Record]:
    """Over cells an image counts once: with its mean over them, or for calibration errors with all of them."""
    model, _ = next(models(run.clean))
    for other in run.results.get("against") or []:
        sets = [(_clean_place(run), other.get("clean"))]
        if (corrupted := other.get("corrupted")) and run.is_corrupted:
            place = {**_shifted_place(run), "aggregate": "by-cell"}
            by_severity = zip(SEVERITIES, corrupted["severities"], strict=True)
            sets += [(place, corrupted["mean"]), *(({**place, "severity": i}, one) for i, one in by_severity)]
            sets.append(({**place, "aggregate": "by-corruption"}, corrupted.get("by_corruption")))
        against = f"{other['experiment']}, seed {other['seed']}"
        for place, found in sets:
            if found:
                yield _record({**place, "model": model, "against": against}, _flat(found))


def _flat(differences: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    values = {key: found["difference"] for key, found in differences.items()}
    ends = {
        f"{key.removesuffix('_debiased')}_{end}": found[end]
        for key, found in differences.items()
        for end in ("low", "high")
    }
    return values | ends
