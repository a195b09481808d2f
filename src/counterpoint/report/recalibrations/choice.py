"""Which recalibration was chosen, why, and among which."""

from collections.abc import Sequence
from statistics import mean

from counterpoint.records.recalibrated import Candidate, Care, Choice
from counterpoint.report.metrics import BY_KEY, difference_text
from counterpoint.report.numbers import decimal, or_dash
from counterpoint.report.recalibrations.words import NONE, quoted, way_name
from counterpoint.report.suites import corruption_label
from counterpoint.report.tables import Column, Table, plain_row

_SCORES: dict[Care, str] = {
    "clean": "the NLL of clean images",
    "both": "the mean of two numbers: the NLL of clean images, and the mean NLL under the left-out corruptions",
    "shift": "the mean NLL under the left-out corruptions",
}
_SAME = 1e-6  # nats; a slope of nearly 0 makes two candidates the same but for rounding


def choice_in_words(choice: Choice, several: bool) -> tuple[str, ...]:
    """What was chosen and why, what the score is, and what was refused."""
    refused = (f"Refused: {quoted(name, several)}, because {reason}." for name, reason in choice.refused.items())
    return (
        f"Chosen: {quoted(choice.chosen, several)}. {_why(choice, several)}",
        "No candidate was judged on images that it was fitted on. One of the extra corruptions at a time was left out "
        "of the fit, and the fit was judged on it. The clean images were divided into two halves, and each half was "
        f"judged with the fit on the other half. The score is {_SCORES[choice.care]} (care: {choice.care}).",
        *refused,
    )


def _why(choice: Choice, several: bool) -> str:
    best = min(choice.candidates, key=lambda one: one.score, default=None)
    images = f"{choice.images:,} held-out images"
    if best is None or best.name == choice.chosen:
        simpler = "" if choice.chosen == NONE else ", and every simpler candidate is worse by more than chance"
        return f"It has the best score on {images}{simpler}."
    return (
        f"On {images} {quoted(best.name, several)} has the best score. The chosen one is the simplest candidate whose "
        "score these images do not tell from the best."
    )


def candidates_table(choice: Choice, several: bool, caption: str = "candidates") -> Table:
    """Every candidate with its NLL on clean images and under each left-out corruption."""
    corruptions = list(dict.fromkeys(name for one in choice.candidates for name in one.shifted))
    left_out = (Column(corruption_label(name), "left out, NLL") for name in corruptions)
    return _table(
        f"{caption} on {choice.images:,} held-out images, with 95 % intervals",
        (Column("Parameters"), Column("Clean", "NLL"), *left_out, Column("Score", "NLL")),
        choice,
        several,
        [
            (
                str(one.parameters),
                decimal(one.clean),
                *(or_dash(decimal, one.shifted.get(name)) for name in corruptions),
                decimal(one.score),
            )
            for one in choice.candidates
        ],
    )


def short_candidates_table(choice: Choice, several: bool) -> Table:
    """As much of it as 80 columns hold."""
    left_out = [mean(one.shifted.values()) if one.shifted else None for one in choice.candidates]
    return _table(
        f"candidates: NLL on {choice.images:,} held-out images, clean and under corruptions that were left out of the "
        "fit; above the best by score, with 95 % intervals",
        (Column("Clean"), Column("Left out")),
        choice,
        several,
        [(decimal(one.clean), or_dash(decimal, nll)) for one, nll in zip(choice.candidates, left_out, strict=True)],
    )


def _table(
    caption: str, columns: Sequence[Column], choice: Choice, several: bool, values: Sequence[Sequence[str]]
) -> Table:
    rows = [
        plain_row(
            way_name(one.name, several) + (" (chosen)" if one.name == choice.chosen else ""),
            *texts,
            _above(one),
            kind="run" if one.name == choice.chosen else "",
        )
        for one, texts in zip(choice.candidates, values, strict=True)
    ]
    return Table(caption, (Column("Temperature"), *columns, Column("Above the best")), tuple(rows))


def _above(one: Candidate) -> str:
    found = one.above_best
    if (found.difference, found.low, found.high) == (0, 0, 0):
        return "the best"
    if max(abs(found.low), abs(found.high)) < _SAME:
        return "the same"
    return difference_text(found, BY_KEY["nll"])
