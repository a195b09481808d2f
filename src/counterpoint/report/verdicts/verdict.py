"""The verdict of a report, chosen by its figures and their intervals."""

from collections.abc import Iterator, Sequence

from counterpoint.records.files import Evaluated
from counterpoint.report.pairs import ComparedPair, compared_pairs
from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.verdicts.of_pair import pair_sentences
from counterpoint.report.verdicts.of_run import (
    leaning_sentences,
    recalibrated_eces,
    recalibrated_sentences,
    run_sentences,
    warning_sentences,
)
from counterpoint.report.verdicts.of_several import overview_sentences, several_sentences
from counterpoint.report.verdicts.sentence import CLEAN, Rank, Sentence, in_order, measured

_MOST = 5


def verdict(evaluated: Sequence[Evaluated]) -> list[str]:
    """What a report of these runs says first: two to five sentences, the most important one first.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, verdict
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> len(verdict(load_runs([Path("runs/theirs")]))) >= 1
    True
    """
    return verdict_of(label_runs(evaluated))


def verdict_of(runs: Sequence[ReportedRun]) -> list[str]:
    return in_order(list(_sentences(runs)), _MOST)


def _sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    pairs = _chosen(compared_pairs(runs))
    if not pairs and len(runs) == 1:
        yield from run_sentences(runs[0])
        return
    for pair in pairs:
        yield from pair_sentences(pair)
        yield from _both_recalibrated(pair)
    yield from overview_sentences(runs) if pairs else several_sentences(runs)
    for run in runs:
        yield from warning_sentences(run)
    yield from leaning_sentences(runs)
    for run in runs:
        yield from recalibrated_sentences(run)


def _both_recalibrated(pair: ComparedPair) -> Iterator[Sentence]:
    """The ECE of both with corrected confidence, on the harder of the images that both have; there is no interval for
    that.
    """
    ours, theirs = recalibrated_eces(pair.run), recalibrated_eces(pair.other_run) if pair.other_run else {}
    same = [one.on for one in measured(pair.run) if (pair.other.on(one.suite) if one.suite else pair.other.clean)]
    shared = [on for on in same if on in ours and on in theirs]
    if shared:
        on = next((on for on in shared if on != CLEAN), CLEAN)
        text = (
            f"With a temperature from validation images, the ECE on {on} is {ours[on][1]} for {pair.run.label} and "
            f"{theirs[on][1]} for {pair.name}."
        )
        yield Sentence(Rank.BOTH_RECALIBRATED, text)


def _chosen(pairs: Iterator[ComparedPair]) -> list[ComparedPair]:
    """Two runs that were compared in both directions count once; pairs that are both on the page come alone."""
    found: dict[frozenset[str], ComparedPair] = {}
    for pair in pairs:
        found.setdefault(frozenset((pair.run.label, pair.name)), pair)
    both_here = [pair for pair in found.values() if pair.other_run]
    return both_here or list(found.values())
