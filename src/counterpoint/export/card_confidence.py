"""What a model card says about error and confidence: the figures, the recalibration, and the threshold's promise."""

from collections.abc import Iterator, Sequence

from counterpoint.errors import listed
from counterpoint.export.card_facts import CardFacts, Measured
from counterpoint.recalibration.choose import NONE
from counterpoint.report.metrics import BY_KEY
from counterpoint.report.numbers import or_dash
from counterpoint.report.recalibrations.words import WITHOUT, fitted_in_words, parameters_in_words, quoted
from counterpoint.report.run import HEADLINE, ReportedRun, whole_scores
from counterpoint.report.section import Part
from counterpoint.report.sections.headlines import headline_table, suites_in_words
from counterpoint.report.sections.honesty import honesty
from counterpoint.report.sections.threshold import checks_table, threshold_in_words
from counterpoint.report.tables import Column, Entry, Row, Table
from counterpoint.report.verdicts.of_run import confidence_in_words
from counterpoint.report.verdicts.sentence import measured as sets_of

_SHOWN = [BY_KEY[key] for key in "error nll brier ece_width15 ece_rms_width15 mean_confidence overconfidence".split()]


def measured(facts: CardFacts) -> Iterator[Part]:
    """Error and calibration, of the file's own confidences first."""
    run = facts.reported
    if run is None:
        yield (
            "Not known: neither the error nor the calibration of these weights was measured, on "
            "clean images or under shift. Run counterpoint evaluate RUN and export again to add both."
        )
        return
    yield f"Measured on {run.images}, with {run.results.evaluation.precision}."
    yield from suites_in_words(run) or ("Under shift it was not measured.",)
    if rows := facts.measured():
        yield _own_table(rows)
    else:
        yield (
            "Neither was measured with the recalibration that is in this file. What is known about "
            "its threshold is further below."
        )
    if facts.correction.recalibration != NONE:
        yield f"With {WITHOUT}:"
    yield from _without(run)


def _own_table(rows: Sequence[Measured]) -> Table:
    suites = f" ({listed([one.called for one in rows[1:]])} {HEADLINE})" if len(rows) > 1 else ""
    scores = [whole_scores(one.summary) for one in rows]
    return Table(
        f"this file’s own probabilities{suites}",
        (Column("Images"), *(metric.column for metric in _SHOWN)),
        tuple(
            Row(one.called, tuple(Entry(or_dash(metric.show, of_one[metric.key])) for metric in _SHOWN))
            for one, of_one in zip(rows, scores, strict=True)
        ),
    )


def _without(run: ReportedRun) -> Iterator[Part]:
    """The headline figures without recalibration, with members, noise floors and, on clean images, an interval."""
    yield headline_table(run)
    yield from (confidence_in_words(run, one) for one in sets_of(run))
    if (honest := honesty([run])) is not None:
        yield from honest.errors[0].tables
        yield from honest.too_low


def confidence(facts: CardFacts) -> Iterator[Part]:
    """Which recalibration is in the file, and what it was fitted on."""
    recalibration, recalibrated = facts.correction.recalibration, facts.recalibrated
    if recalibration == NONE:
        yield f"The probabilities are the network’s own: there is {WITHOUT} in this file."
        if recalibrated and recalibrated.choice and recalibrated.choice.chosen == facts.correction.name:
            yield "On held-out images, none of the recalibrations was better than no recalibration."
        return
    name = quoted(facts.correction.name, facts.members > 1)
    yield f"Recalibrated, {name}: {parameters_in_words(recalibration)}. It is part of the graph."
    if recalibrated is not None and facts.way is not None:
        yield from fitted_in_words(recalibrated, any(way.corrupted for way in recalibrated.ways.values()))


def promise(facts: CardFacts) -> Iterator[Part]:
    """The confidence from which on predictions can be kept, if it is known for the confidences in this file."""
    found, sure_from = facts.thresholded, facts.correction.sure_from
    if found is not None and facts.is_promised:
        yield from threshold_in_words(found, facts.members > 1)
        if (table := checks_table(found)) is not None:
            yield "There is no promise for other images. This is what was measured on them:"
            yield table
        sure_from = None if sure_from == found.promise.chosen.threshold else sure_from
    elif found is not None:
        yield (
            "Not known for this file: a threshold was found, but for another recalibration than the "
            "one in this file. counterpoint export RUN --not-sure-below threshold writes a file with "
            "that recalibration."
        )
    else:
        yield "Not known: no threshold with a promise was found (counterpoint threshold RUN --error TARGET finds one)."
    if sure_from is not None:
        yield (
            "The person who exported the file chose to call predictions “not sure” below a "
            f"confidence of {sure_from}. No error is promised for that."
        )
