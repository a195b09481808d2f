"""What the report says first, in words: the sentences that figures and their intervals rank highest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.files import Evaluated
from counterpoint.report.pairs import ComparedPair, compared_pairs
from counterpoint.report.run import ReportedRun, grouped, label_runs
from counterpoint.report.section import Block, Content
from counterpoint.report.verdicts.of_pair import pair_sentences
from counterpoint.report.verdicts.of_run import (
    behind_sentences,
    guessing_sentences,
    leaning_sentences,
    recalibrated_eces,
    recalibrated_sentences,
    run_sentences,
    warning_sentences,
)
from counterpoint.report.verdicts.sentence import CLEAN, Measured, Rank, Sentence, measured, percents

TITLE = "Verdict"
_MOST = 5
_NOT_COMPARED = (
    "No interval says whether these runs differ by more than chance: “counterpoint compare” computes intervals."
)
_OTHER_IMAGES = "These runs were evaluated on different images, so that their figures cannot be compared."

Found = Sequence[tuple[ReportedRun, Measured]]
"""All runs on one set of images."""


@dataclass(frozen=True)
class Verdict(Content):
    sentences: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, self.sentences)


def verdict(evaluated: Sequence[Evaluated]) -> list[str]:
    """What a report of these runs says first: two to five sentences, the most important one first.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, verdict
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> len(verdict(load_runs(["runs/theirs"]))) >= 1
    True
    """
    return list(verdict_of(label_runs(evaluated)).sentences)


def verdict_of(runs: Sequence[ReportedRun]) -> Verdict:
    """The first sentences by rank; those of one rank stay in their order."""
    ranked = sorted(_sentences(runs), key=lambda one: one.rank)
    return Verdict(tuple(sentence.text for sentence in ranked[:_MOST]))


def _sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    pairs = _chosen(compared_pairs(runs))
    if not pairs and len(runs) == 1:
        yield from run_sentences(runs[0])
        return
    yield from guessing_sentences(runs)
    for run in runs:
        yield from behind_sentences(run)
    for pair in pairs:
        yield from pair_sentences(pair)
        yield from _both_recalibrated(pair)
    yield from _overview_sentences(runs) if pairs else _several_sentences(runs)
    for run in runs:
        yield from warning_sentences(run)
    yield from leaning_sentences(runs)
    for run in runs:
        yield from recalibrated_sentences(run)


def _chosen(pairs: list[ComparedPair]) -> list[ComparedPair]:
    """Pairs of which both runs are on the page come alone."""
    return [pair for pair in pairs if pair.other_run] or pairs


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


def _several_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """Of runs that were not compared: the lowest error and ECE on each set of images that all have."""
    shared = _shared(runs)
    for found in shared:
        yield Sentence(Rank.CLEAN if found[0][1].on == CLEAN else Rank.UNDER_SHIFT, _lowest(found))
    yield Sentence(Rank.CLEAN, _NOT_COMPARED if shared else _OTHER_IMAGES)


def _overview_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """Of three or more runs, some of which were compared: the lowest figures, on shifted images if all have some."""
    shared = _shared(runs) if len(runs) > 2 else []
    if shared:
        yield Sentence(Rank.OF_ALL, _lowest(next((found for found in shared if found[0][1].on != CLEAN), shared[0])))


def _shared(runs: Sequence[ReportedRun]) -> list[Found]:
    """The sets of images that all runs have."""
    by_set = grouped([(run, one) for run in runs for one in measured(run)], lambda pair: pair[1].key)
    return [found for found in by_set.values() if len(found) == len(runs)]


def _lowest(found: Found) -> str:
    on = found[0][1].on
    error, of_error = _winner(found, [one.figures.error for _, one in found])
    ece, of_ece = _winner(found, [one.figures.ece_width15 for _, one in found])
    if of_error == of_ece and len(of_error) == 1:
        return f"On {on} {of_error[0]} has the lowest error ({error}) and the lowest ECE ({ece})."
    return f"On {on} the lowest error is {error} ({listed(of_error)}), and the lowest ECE is {ece} ({listed(of_ece)})."


def _winner(found: Found, values: Sequence[float]) -> tuple[str, list[str]]:
    """The lowest value, and which runs have it."""
    lowest, *_ = percents(min(values))
    return lowest, [run.label for (run, _), value in zip(found, values, strict=True) if percents(value)[0] == lowest]
