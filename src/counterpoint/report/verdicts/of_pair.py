"""What the differences between two compared runs say."""

from collections.abc import Iterator
from dataclasses import dataclass

from counterpoint.records.compared import Difference
from counterpoint.report.metrics import with_ends
from counterpoint.report.pairs import ComparedPair
from counterpoint.report.suites import suites_of
from counterpoint.report.verdicts.sentence import CLEAN, Rank, Sentence, counted_images, suite_in_words


@dataclass(frozen=True)
class _Differences:
    """One run less the other on the images that both have."""

    on: str
    images: int
    error: Difference
    nll: Difference
    ece: Difference | None  # debiased


def pair_sentences(pair: ComparedPair) -> Iterator[Sentence]:
    """Shifted images come first: what happens there is the harder question."""
    for found in _differences(pair):
        rank = Rank.CLEAN if found.on == CLEAN else Rank.UNDER_SHIFT
        if found.ece and not _told(found.error) and not _told(found.ece):
            text = (
                f"{counted_images(found.images, found.on)} do not tell {pair.run.label} and {pair.name} apart in error "
                f"and calibration: the difference in error is {_signed(found.error)}, and the difference in debiased "
                f"ECE is {_signed(found.ece)}.{_nll(pair, found.nll)}"
            )
            yield Sentence(_unclear_rank(pair, rank), text)
            continue
        yield Sentence(rank if _told(found.error) or rank != Rank.CLEAN else Rank.LITTLE_NEWS, _error(pair, found))
        if found.ece:
            yield Sentence(_calibration_rank(pair, found.ece, rank), _calibration(pair, found, found.ece))


def _differences(pair: ComparedPair) -> Iterator[_Differences]:
    for shifted in suites_of(pair.run):
        if found := pair.other.on(shifted.suite):
            ece = found.by_corruption.ece_width15_debiased
            yield _Differences(suite_in_words(shifted), shifted.figures.images, found.mean.error, found.mean.nll, ece)
    if clean := pair.other.clean:
        images = pair.run.results.evaluated_on.images
        yield _Differences(CLEAN, images, clean.error, clean.nll, clean.ece_width15_debiased)


def _told(found: Difference) -> bool:
    """Whether the images tell the two runs apart."""
    return found.low > 0 or found.high < 0


def _calibration_rank(pair: ComparedPair, found: Difference, rank: Rank) -> Rank:
    """An ensemble that is worse calibrated than a single network comes first, in whichever order they were compared."""
    if not _told(found):
        return _unclear_rank(pair, rank)
    other_is_the_ensemble = pair.other_run and pair.other_run.results.is_ensemble and not pair.run.results.is_ensemble
    worse = found.low < 0 if other_is_the_ensemble else found.low > 0
    return Rank.WORSE_CALIBRATED if worse else rank


def _unclear_rank(pair: ComparedPair, rank: Rank) -> Rank:
    """An ensemble that is not better calibrated than a single network under shift comes before its better error."""
    is_against_single = pair.other_run and pair.run.results.is_ensemble != pair.other_run.results.is_ensemble
    return Rank.NOT_TOLD_APART if is_against_single and rank == Rank.UNDER_SHIFT else rank


def _error(pair: ComparedPair, found: _Differences) -> str:
    if not _told(found.error):
        return (
            f"{counted_images(found.images, found.on)} do not tell the errors of {pair.run.label} and {pair.name} "
            f"apart: the difference is {_signed(found.error)}."
        )
    often = "right" if found.error.high < 0 else "wrong"
    points, interval = _unsigned(found.error, digits=1, scale=100)
    return f"On {found.on} {pair.run.label} is {often} {points} points more often than {pair.name} {interval}."


def _calibration(pair: ComparedPair, found: _Differences, ece: Difference) -> str:
    if not _told(ece):
        return (
            f"{counted_images(found.images, found.on)} do not tell the calibration of {pair.run.label} and {pair.name} "
            f"apart: the difference in debiased ECE is {_signed(ece)}."
        )
    better, lower = ("better", "lower") if ece.high < 0 else ("worse", "higher")
    points, interval = _unsigned(ece, digits=1, scale=100)
    return (
        f"On {found.on} {pair.run.label} is {better} calibrated than {pair.name}: its debiased ECE is {points} points "
        f"{lower} {interval}."
    )


def _nll(pair: ComparedPair, found: Difference) -> str:
    """A sentence where the NLL tells the two apart, although error and calibration do not."""
    if not _told(found):
        return ""
    which = "higher" if found.low > 0 else "lower"
    value, interval = _unsigned(found, digits=3)
    return f" But the NLL of {pair.run.label} is {which}, by {value} nats {interval}."


def _signed(found: Difference) -> str:
    value, low, high = with_ends(found, digits=1, scale=100)
    return f"{value} points (interval {low} to {high})"


def _unsigned(found: Difference, digits: int, scale: float = 1.0) -> tuple[str, str]:
    """The value and the interval without signs: both ends lie on one side of 0, which the sentence names."""
    value, *ends = (text.lstrip("+−") for text in with_ends(found, digits, scale))
    return value, f"(interval {' to '.join(ends if found.low > 0 else reversed(ends))})"
