"""How well a run tells its clean images from outside images, computed from the saved logits of both.

The clean images are the known ones, and they are the positives.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import softmax

from counterpoint.evaluation.logits import LogitsAbout, read_outside_logits
from counterpoint.evaluation.scores import OutsideScores
from counterpoint.metrics import entropy_of_mean, mutual_information, ood_auroc, ood_auroc_interval, ood_fpr
from counterpoint.metrics.checks import Floats, Integers
from counterpoint.metrics.groups import are_enough, groups_of
from counterpoint.records.outside import ByConfidence, Outside, Separation, Signal
from counterpoint.runs.imported import AnyRun


def outside_figures(
    run: AnyRun, about: LogitsAbout, clean_MNK: Floats, group_N: Integers | None = None
) -> tuple[dict[str, Outside], OutsideScores | None]:
    """The figures on each set of outside images, and what another run can be compared by; None where there are none.

    `clean_MNK` are the members' probabilities of the known images, and `group_N` says which of these belong together.
    """
    figures, sets = {}, {}
    for name, images in about.outside.items():
        outside_MNK = np.asarray(softmax(read_outside_logits(run, about, name), axis=2))
        figures[name] = _figures(clean_MNK, outside_MNK, images.key, group_N)
        sets[name] = images, _confidence(outside_MNK)
    return figures, OutsideScores(_confidence(clean_MNK), sets) if sets else None


def _confidence(probs_MNK: Floats) -> Floats:
    return np.asarray(probs_MNK.mean(axis=0).max(axis=1), np.float64)


def _figures(known_MNK: Floats, outside_MNK: Floats, key: str | None, group_N: Integers | None) -> Outside:
    known_N, outside_N = _confidence(known_MNK), _confidence(outside_MNK)
    separation = partial(_separation, group_N)
    signals: dict[Signal, Callable[[Floats], Floats]] = {}
    if len(known_MNK) > 1:
        signals = {"entropy_of_mean": entropy_of_mean, "mutual_information": mutual_information}
    return Outside(
        images=outside_MNK.shape[1],
        key=key,
        ensemble=ByConfidence(**vars(separation(known_N, outside_N)), mean_confidence=float(outside_N.mean())),
        members=tuple(map(_member, known_MNK.max(axis=2), outside_MNK.max(axis=2))),
        signals={name: separation(-of(known_MNK), -of(outside_MNK)) for name, of in signals.items()} or None,
    )


def _separation(group_N: Integers | None, known_N: Floats, outside_N: Floats) -> Separation:
    """By a number that is higher for known images. Of too few groups there is no interval."""
    if not are_enough(groups_of(group_N, len(known_N))):
        return Separation(auroc=ood_auroc(known_N, outside_N), fpr95=ood_fpr(known_N, outside_N))
    auroc = ood_auroc_interval(known_N, outside_N, group_N)
    return Separation(auroc=auroc.value, auroc_low=auroc.low, auroc_high=auroc.high, fpr95=ood_fpr(known_N, outside_N))


def _member(known_N: np.ndarray, outside_N: np.ndarray) -> ByConfidence:
    return ByConfidence(
        auroc=ood_auroc(known_N, outside_N),
        fpr95=ood_fpr(known_N, outside_N),
        mean_confidence=float(outside_N.mean()),
    )
