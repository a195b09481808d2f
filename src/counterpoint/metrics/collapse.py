"""Whether the members of an ensemble have become the same network, judged by their factors r and s and by their
predictions.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, finite, fractions
from counterpoint.records.figures import Summary
from counterpoint.records.results import Between, Collapse, FactorCorrelation, Shifted

# Shares of the disagreement that members of the same error would show if their mistakes were independent.
NEARLY_IDENTICAL_BELOW = 0.05
DIFFER_CLEARLY_FROM = 0.25
NEARLY_IDENTICAL_KL_BELOW = 0.01  # in nats


def factor_correlation(factors_by_layer: Sequence[ArrayLike]) -> FactorCorrelation:
    """Correlations between the members' rows of r (or s), over the channels of all layers.

    `factors_by_layer` has one array (M, C) per layer, with M ≥ 2 members. Each layer is scaled to variance 1.

    Once the mean over members is removed, the M rows sum to 0. The mean over pairs of their covariance is then −1 / (M
    − 1) of the variance, whatever the members do. So only single pairs say something about the members. With two
    members there is one pair, which says nothing.

    >>> from counterpoint.metrics import factor_correlation
    >>> alike = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]  # members 0 and 1 are the same
    >>> round(factor_correlation([alike]).closest, 3)
    1.0
    """
    layers = [finite(layer, "a layer's factors", ndim=2) for layer in factors_by_layer]
    members = {len(layer) for layer in layers}
    if len(members) != 1 or members == {1}:
        raise InputError(f"the layers have {sorted(members)} members; all need the same number, 2 or more")
    values_MC = np.concatenate([_standardised(layer) for layer in layers], axis=1)
    pairs = tuple(zip(*combinations(range(len(values_MC)), 2), strict=True))
    return FactorCorrelation(
        plain=float(_cosines(values_MC)[pairs].mean()),
        closest=float(_cosines(values_MC - values_MC.mean(axis=0))[pairs].max()),
        independent=-1 / (len(values_MC) - 1),
    )


def independent_disagreement(error: float, num_classes: int) -> float:
    """The share of images on which two members of this error would disagree if their mistakes were independent.

    `error` is a fraction. The formula assumes that every wrong class is equally likely.

    >>> from counterpoint.metrics import independent_disagreement
    >>> round(independent_disagreement(0.1, num_classes=10), 3)
    0.189
    """
    fractions([error], "error", ndim=1)
    if num_classes < 2:
        raise InputError(f"num_classes is {num_classes}; it must be 2 or more")
    return 1 - (1 - error) ** 2 - error**2 / (num_classes - 1)


def collapse_verdict(disagreement: float, error: float, kl: float, num_classes: int) -> str:
    """A sentence that says whether the members are nearly identical, differ a little, or differ clearly.

    `error` is the members' mean error. `disagreement` and `kl` are means over pairs of members. The members differ
    clearly from a quarter of `independent_disagreement` on. They are nearly identical below a twentieth of it, if the
    KL divergence is also below 0.01 nats.

    >>> from counterpoint.metrics import collapse_verdict
    >>> "clearly" in collapse_verdict(disagreement=0.05, error=0.1, kl=0.2, num_classes=10)
    True
    """
    fractions([disagreement], "disagreement", ndim=1)
    if not 0 <= kl < np.inf:
        raise InputError(f"kl is {kl}; it must be a finite number, 0 or more")
    independent = independent_disagreement(error, num_classes)
    if independent <= 0:
        return f"No member is wrong on these images, so they cannot show whether the members differ (KL {kl:.2g} nats)."
    how_much = _how_much(disagreement / independent, kl)
    if not disagreement:
        how_much += " in their confidence" if how_much == "differ a little" else ""
        return (
            f"The members {how_much}: they predict the same class on every image, and the mean KL divergence between "
            f"two members is {kl:.2g} nats."
        )
    few = "less than 0.1" if disagreement < 0.0005 else f"{100 * disagreement:.1f}"
    return (
        f"The members {how_much}: two of them disagree on {few}\N{NO-BREAK SPACE}% of the images, where members of the "
        f"same error whose mistakes are independent would disagree on {100 * independent:.1f}\N{NO-BREAK SPACE}%; the "
        f"mean KL divergence between two members is {kl:.2g} nats."
    )


def collapse_record(
    factors: Mapping[str, Sequence[ArrayLike]], clean: Summary, corrupted: Shifted | None, num_classes: int
) -> Collapse | None:
    """How far an ensemble's factors and predictions differ, with a verdict, as results.json says it. None for a single
    network.

    `factors` has the layers of "r" and those of "s". A deep ensemble has none, and is judged by its predictions alone.
    """
    if clean.disagreement is None or clean.pairwise_kl is None:
        return None
    by_severity = zip(*corrupted.cells.values(), strict=True) if corrupted else ()
    return Collapse(
        **{kind: factor_correlation(layers) for kind, layers in factors.items() if layers},
        clean=_between([clean], num_classes),
        severities=tuple(_between(summaries, num_classes) for summaries in by_severity),
        verdict=collapse_verdict(clean.disagreement, _mean_error(clean), clean.pairwise_kl, num_classes),
    )


def _how_much(share: float, kl: float) -> str:
    if share >= DIFFER_CLEARLY_FROM:
        return "differ clearly"
    if share < NEARLY_IDENTICAL_BELOW and kl < NEARLY_IDENTICAL_KL_BELOW:
        return "are nearly identical"
    return "differ a little"


def _between(summaries: Sequence[Summary], num_classes: int) -> Between:
    """Means over sets of images."""
    return Between(
        disagreement=float(np.mean([summary.disagreement for summary in summaries])),
        pairwise_kl=float(np.mean([summary.pairwise_kl for summary in summaries])),
        independent_disagreement=float(
            np.mean([independent_disagreement(_mean_error(summary), num_classes) for summary in summaries])
        ),
    )


def _mean_error(summary: Summary) -> float:
    return float(np.mean([member.error for member in summary.members]))


def _standardised(layer_MC: Floats) -> Floats:
    centred = layer_MC - layer_MC.mean()
    scale = centred.std()
    return centred / scale if scale > 0 else centred


def _cosines(values_MC: Floats) -> Floats:
    """Cosines between the rows; 1 for a row in which nothing but rounding errors is left.

    The values had variance 1 before, which tells how small a rounding error is.
    """
    norms = np.linalg.norm(values_MC, axis=1)
    nothing = norms < 1e-6 * np.sqrt(values_MC.shape[1])
    units_MC = values_MC / np.where(nothing, 1.0, norms)[:, None]
    return np.where(nothing[:, None] | nothing[None, :], 1.0, units_MC @ units_MC.T)
