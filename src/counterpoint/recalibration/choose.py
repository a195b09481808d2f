"""Choose a recalibration on held-out images: one corruption is left out at a time, and the simplest within noise wins.

A family is fitted without one of the extra corruptions and judged on it, and so on for each of them. On clean images it
is judged by cross-fitting, each random half with the parameters of the other. An image's score is its NLL, clean and
under the corruptions, weighted by what the user cares for. The family of the least mean score is the best. Chosen is
the simplest one that the images cannot tell from the best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterpoint.errors import InputError
from counterpoint.metrics import mean_difference
from counterpoint.metrics.checks import Floats, Integers
from counterpoint.recalibration.apply import Labelled, recalibrated_scores
from counterpoint.recalibration.families import Family, families
from counterpoint.recalibration.fit import FitSet, fit
from counterpoint.records.compared import Difference
from counterpoint.records.recalibrated import Candidate, Care, Choice, Parameter, Recalibration

NONE = Recalibration("before", "clean", (Parameter(0.0),))
"""No recalibration: a temperature of 1."""

_SHARE_OF_SHIFT: Mapping[Care, float] = {"clean": 0.0, "both": 0.5, "shift": 1.0}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Validation images: clean, and under each extra corruption at each severity. Row i is always the same image."""

    clean: Labelled
    shifted: Mapping[str, Sequence[Labelled]]

    def select(self, images: Integers) -> "HeldOut":
        """Some of the clean images, and these same images of the other sets. A set that has fewer gives what it has."""
        images = np.sort(images)
        shifted = {name: [one.select(images[images < len(one)]) for one in sets] for name, sets in self.shifted.items()}
        return HeldOut(self.clean.select(images), shifted)

    def without(self, name: str) -> "HeldOut":
        return HeldOut(self.clean, {other: sets for other, sets in self.shifted.items() if other != name})

    @property
    def common_images(self) -> int:
        """How many images every set has."""
        return min(len(one) for sets in ([self.clean], *self.shifted.values()) for one in sets)


@dataclass(frozen=True, eq=False)
class _Judged:
    """A candidate's NLL of each image."""

    family: Family | None  # None for no recalibration
    clean_N: Floats
    shifted_N: Mapping[str, Floats]

    def scores(self, care: Care) -> Floats:
        share = _SHARE_OF_SHIFT[care]
        if not share:
            return self.clean_N
        return (1 - share) * self.clean_N + share * np.mean(list(self.shifted_N.values()), axis=0)


def fit_held_out(family: Family, held_out: HeldOut, care: Care) -> Recalibration:
    """The family fitted to the images it is for: the clean ones, or clean and shifted ones as much as each counts."""
    share = _SHARE_OF_SHIFT[care] if family.images == "shifted" else 0.0
    cells = [one for sets in held_out.shifted.values() for one in sets]
    sets = [FitSet(held_out.clean, 1 - share), *(FitSet(one, share / len(cells)) for one in cells)]
    return fit(family, sets)


def cross_fit(family: Family, held_out: HeldOut, care: Care) -> Iterator[tuple[Integers, Recalibration]]:
    """For each of two random halves of the clean images: their numbers, and the recalibration of the other half.

    The other half is fitted on with all its sets. A set that has fewer images counts with those it has.
    """
    draws = held_out.clean.draws
    if draws < 2:
        one = "one validation image" if held_out.clean.groups_N is None else "one group of validation images"
        raise InputError(f"there is {one}; cross-fitting needs at least two")
    first, second = held_out.clean.in_two_parts((draws + 1) // 2)
    for fitted, applied in ((first, second), (second, first)):
        yield applied, fit_held_out(family, held_out.select(fitted), care)


def families_of(held_out: HeldOut, care: Care) -> list[Family]:
    """Those that can be fitted to these images.

    With no weight on shifted images, fitting under shift would be fitting on clean ones once more.
    """
    return families(len(held_out.clean.logits_MNK), shifted=bool(held_out.shifted) and care != "clean")


def choose(known: Sequence[Family], held_out: HeldOut, care: Care) -> Choice:
    """Which of the known families to take, or none, with the table that the choice was made by.

    Clean images are enough for one who cares for clean images only.
    """
    if not held_out.shifted and care != "clean":
        raise InputError("there are no images under shift to choose on")
    members = len(held_out.clean.logits_MNK)
    judged = {"none": _judge_none(held_out)}
    refused = {}
    for family in known:
        try:
            judged[family.name] = _judge(family, held_out, care)
        except InputError as reason:
            refused[family.name] = str(reason)
    best = min(judged.values(), key=lambda one: float(one.scores(care).mean()))
    groups_N = held_out.clean.select(slice(held_out.common_images)).groups_N
    candidates = tuple(_candidate(name, one, best, care, members, groups_N) for name, one in judged.items())
    within_noise = [one for one in candidates if one.above_best.low <= 0]
    chosen = min(within_noise, key=lambda one: (one.parameters, one.score))
    return Choice(chosen.name, care, held_out.common_images, candidates, refused)


def _judge(family: Family, held_out: HeldOut, care: Care) -> _Judged:
    """Fitted on all images, and judged on those that every set has."""
    count = held_out.common_images
    clean_N = np.empty(len(held_out.clean))
    for images, recalibration in cross_fit(family, held_out, care):
        clean_N[images] = _nll(recalibration, held_out.clean.select(images))
    shifted_N = {}
    for name, sets in held_out.shifted.items():
        recalibration = fit_held_out(family, held_out.without(name), care)
        shifted_N[name] = _mean_nll(recalibration, sets, count)
    return _Judged(family, clean_N[:count], shifted_N)


def _judge_none(held_out: HeldOut) -> _Judged:
    count = held_out.common_images
    shifted_N = {name: _mean_nll(NONE, sets, count) for name, sets in held_out.shifted.items()}
    return _Judged(None, _nll(NONE, held_out.clean)[:count], shifted_N)


def _mean_nll(recalibration: Recalibration, sets: Sequence[Labelled], count: int) -> Floats:
    """Each image's mean over the sets, of the first `count` images."""
    return np.asarray(np.mean([_nll(recalibration, one.select(slice(count))) for one in sets], axis=0))


def _nll(recalibration: Recalibration, images: Labelled) -> Floats:
    return recalibrated_scores(recalibration, images).nll


def _candidate(
    name: str, one: _Judged, best: _Judged, care: Care, members: int, groups_N: Integers | None
) -> Candidate:
    score_N = one.scores(care)
    above = mean_difference(score_N, best.scores(care), groups_N)
    return Candidate(
        name=name,
        parameters=one.family.parameters(members) if one.family else 0,
        clean=float(one.clean_N.mean()),
        shifted={corruption: float(nll_N.mean()) for corruption, nll_N in one.shifted_N.items()},
        score=float(score_N.mean()),
        above_best=Difference(above.value, above.low, above.high),
    )
