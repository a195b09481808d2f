"""What a results.json holds.

In a shape a dict names the keys that must be there (one that ends in "?" may be missing or null). A list is a list of
at least one value of its first item's shape; where it has a second item, as many as there are of what that names.
Anything else is a type.
"""

from types import NoneType

from counterpoint.report.run import AGGREGATES, CALIBRATION, CORRUPTIONS, TEMPERATURES

_NUMBER = (int, float)
_OPTIONAL_NUMBER = (*_NUMBER, NoneType)


def _numbers(*keys: str) -> dict[str, tuple[type, ...]]:
    return dict.fromkeys(keys, _NUMBER)


_SCORES = _numbers("error", "nll", "brier", *CALIBRATION, "mean_confidence", "overconfidence?", "aurc?")
_BINS = [{"low": _NUMBER, "high": _NUMBER, "count": int, "confidence": _NUMBER, "accuracy": _NUMBER}]
_HONEST = dict.fromkeys(CALIBRATION, _numbers("floor", "excess", "debiased", "low", "high"))
_CURVE = {"coverage": [_NUMBER], "risk": [_NUMBER]}
_SUMMARY = {
    "ensemble": _SCORES,
    "members": [_SCORES, "members"],
    "disagreement": _OPTIONAL_NUMBER,
    "pairwise_kl?": _NUMBER,
    "reliability": {"width15": _BINS, "mass15": _BINS},
    "honest?": {"ensemble": _HONEST, "members": list},
}
_AGGREGATE = _SCORES | _numbers(*(f"{key}_floor?" for key in CALIBRATION))
_BETWEEN_MEMBERS = _numbers("disagreement", "pairwise_kl", "independent_disagreement")
_FACTORS = _numbers("plain", "closest", "independent")
_DIFFERENCE = _numbers("difference", "low", "high")
_MEAN_DIFFERENCES = dict.fromkeys(("error", "nll", "brier"), _DIFFERENCE)
_CALIBRATION_DIFFERENCES = {f"{key}_debiased?": _DIFFERENCE for key in CALIBRATION}
_DIFFERENCES = _MEAN_DIFFERENCES | _CALIBRATION_DIFFERENCES
_SCALED = {
    "temperature": (*_NUMBER, list),
    "clean": {"ensemble": _SCORES, "members": [_SCORES, "members"]},
    "corrupted?": {
        "ensemble": dict.fromkeys(AGGREGATES, _SCORES),
        "members": [dict.fromkeys(AGGREGATES, _SCORES), "members"],
    },
}

RESULTS = {
    "schema": int,
    "counterpoint": str,
    "experiment": str,
    "config": dict,
    "run": {
        "seed": int,
        "command": str,
        "commit": (str, NoneType),
        "device": str,
        "versions": dict,
        "train_seconds": _NUMBER,
        "finished": str,
    },
    "evaluation": {"command": str, "finished": str, "precision": str, "seconds": _NUMBER},
    "evaluated_on": {"dataset": str, "part": str, "images": int},
    "clean": _SUMMARY | {"risk_coverage?": _CURVE, "honest?": {"ensemble": _HONEST, "members": [_HONEST, "members"]}},
    "ood?": {"dataset": str, "images": int, "auroc": {"ensemble": _NUMBER, "members": [_NUMBER, "members"]}},
    "collapse?": {
        "r?": _FACTORS,
        "s?": _FACTORS,
        "clean": _BETWEEN_MEMBERS,
        "severities?": [_BETWEEN_MEMBERS, "severities"],
        "verdict": str,
    },
    "health?": {
        "channels": int,
        "epochs": [{"epoch": int, "below_eps": int, "dead_scales": int} | _numbers("spread_r?", "spread_s?")],
        "warnings": list,
    },
    "recalibrated?": {
        "fitted_on": {"dataset": str, "part": str, "images": int, "run": str},
        "clean_how": str,
        "corrupted_how?": str,
        "ways": dict.fromkeys(TEMPERATURES, _SCALED),
    },
    "against?": [
        {
            "experiment": str,
            "seed": int,
            "run": str,
            "clean?": _DIFFERENCES,
            "corrupted?": {
                "mean": _MEAN_DIFFERENCES,
                "severities": [_MEAN_DIFFERENCES, "severities"],
                "by_corruption?": _CALIBRATION_DIFFERENCES,
            },
        }
    ],
}
CORRUPTED = {
    "source": {"kind": str},
    "images": int,
    "aggregates": {
        "ensemble": dict.fromkeys(AGGREGATES, _AGGREGATE),
        "members": [dict.fromkeys(AGGREGATES, _AGGREGATE), "members"],
        "pairwise_kl?": _NUMBER,
    },
    "cells": {name: [_SUMMARY, "severities"] for name in CORRUPTIONS},
    "risk_coverage?": [_CURVE, "severities"],
}
SOURCES: dict[str, dict[str, type]] = {
    "official": {},
    "regenerated": {"seed": int, "version": str, "frost": str},
}
