"""What one run's own figures say: how often it is right, whether its confidence fits, and what a temperature does."""

from collections.abc import Iterator, Sequence

from counterpoint.errors import listed
from counterpoint.records.figures import ClassFigures
from counterpoint.records.results import Results
from counterpoint.report.bins import wilson_interval
from counterpoint.report.numbers import percent_interval
from counterpoint.report.recalibrations.words import is_ensemble, quoted
from counterpoint.report.run import HEADLINE, ReportedRun, grouped
from counterpoint.report.verdicts.sentence import (
    CLEAN,
    Measured,
    Rank,
    Sentence,
    counted_images,
    measured,
    percents,
)

_SURE = {"over-confident": "surer", "under-confident": "less sure"}
_MUCH = 2  # noise floors
_FAR, _TIMES, _DEVIATIONS = 0.1, 2, 3  # how far, in three ways, a member's error must lie above the best one's


def run_sentences(run: ReportedRun) -> Iterator[Sentence]:
    """All that there is to say of a run by itself."""
    yield from guessing_sentences([run])
    yield from behind_sentences(run)
    sets = measured(run)
    right = [f"{percents(one.accuracy)[0]} of the {_counted(one, sets[0])}" for one in sets]
    yield Sentence(Rank.UNDER_SHIFT, f"{run.label} is right on {listed(right)}.")
    for one in sets:
        yield Sentence(Rank.CLEAN, confidence_in_words(run, one))
    yield from (Sentence(Rank.CONFIDENCE, text) for text in _noise(run, sets[0]))
    yield from recalibrated_sentences(run)
    yield from warning_sentences(run)


def guessing_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """Only of what the images do not show to be better than naming their most frequent class every time."""
    guessing = [run for run in runs if run.results.classes and _may_be_guessing(run.results)]
    for group in grouped(guessing, lambda run: (run.results.evaluated_on, _guess(run.results.classes).name)).values():
        guess, images = _guess(group[0].results.classes), group[0].results.evaluated_on.images
        names = [f"{run.label} ({percents(1 - run.clean.ensemble.error)[0]})" for run in group]
        text = (
            f"The {CLEAN} do not show that {listed(names)} {'is' if len(names) == 1 else 'are'} right more often than "
            f"always naming “{guess.name}”: that is right on {percents(guess.images / images)[0]}, the share of this "
            "class."
        )
        yield Sentence(Rank.MAY_BE_GUESSING, text)


def _guess(classes: Sequence[ClassFigures]) -> ClassFigures:
    return max(classes, key=lambda one: one.images)


def _may_be_guessing(results: Results) -> bool:
    """Whether the images on which either the network or the guess is right leave open which of them is better."""
    guess, on = _guess(results.classes), results.evaluated_on
    network_alone = sum(one.images - one.wrong for one in results.classes if one is not guess)
    either = network_alone + guess.wrong
    draws = either if on.groups is None else either * on.draws / on.images
    return not either or wilson_interval(network_alone / either, draws)[0] <= 0.5


def behind_sentences(run: ReportedRun) -> Iterator[Sentence]:
    """Only of members that learned far less than the best one: the mean of all members hides them."""
    errors = [member.error for member in run.clean.members]
    best = min(errors, default=0.0)
    behind = [
        number for number, error in enumerate(errors, 1) if _is_behind(error, best, run.results.evaluated_on.draws)
    ]
    if behind:
        wrong = listed([percents(errors[number - 1])[0] for number in behind])
        whose = f"member{'s' if len(behind) > 1 else ''} {listed([str(number) for number in behind])}"
        text = (
            f"In {run.label} {whose} learned far less: wrong on {wrong} of the {CLEAN}, and the best member on "
            f"{percents(best)[0]}. It can make the whole ensemble less sure than it should be."
        )
        if run.results.collapse and run.results.collapse.r:  # only a BatchEnsemble has r and s
            text += " Another seed, or r and s that start nearer to 1 (init_std), may avoid it."
        yield Sentence(Rank.MAY_BE_GUESSING, text)


def _is_behind(error: float, best: float, images: int) -> bool:
    deviation = ((error * (1 - error) + best * (1 - best)) / images) ** 0.5
    return error - best > max(_FAR, _DEVIATIONS * deviation) and error > _TIMES * best


def leaning_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """Only of what is over- or under-confident by more than its images leave open."""
    leaning = [(run, one) for run in runs for one in measured(run) if one.leaning]
    for group in grouped(leaning, lambda found: (found[1].on, found[1].leaning)).values():
        text, alike = confidence_in_words(*group[0]), group[0][1]
        if len(group) > 1:
            names = listed([f"{run.label} ({_confidence_and_accuracy(one)})" for run, one in group])
            text = f"On {alike.on} {names} are {_SURE[alike.leaning]} than they should be ({alike.leaning})."
        yield Sentence(Rank.CONFIDENCE, text)


def _confidence_and_accuracy(one: Measured) -> str:
    confidence, accuracy = percents(one.figures.mean_confidence, one.accuracy)
    return f"{confidence} confidence, {accuracy} right"


def confidence_in_words(run: ReportedRun, one: Measured) -> str:
    figures = _confidence_and_accuracy(one)
    if one.leaning:
        return f"On {one.on} {run.label} is {_SURE[one.leaning]} than it should be ({one.leaning}): {figures}."
    not_shown = (
        f"The {one.on.removeprefix('the ')} do not show that the mean confidence of {run.label} is too high or too "
        f"low: {figures}."
    )
    return " ".join((not_shown, *_hidden(one)))


def _hidden(one: Measured) -> Iterator[str]:
    """What a mean that fits hides, if there are gaps that are much more than noise."""
    if one.floor is None or one.figures.ece_width15 <= _MUCH * one.floor:
        return
    ece, floor = percents(one.figures.ece_width15, one.floor)
    # Gaps of one sign add up to the gap of the mean. Only what the ECE has beyond it must be gaps of both signs.
    beyond = one.figures.ece_width15 - abs(one.figures.mean_confidence - one.accuracy)
    signs = "" if beyond <= one.floor else ": some predictions are over-confident, and others are under-confident"
    yield f"But the ECE there is {ece}, and the noise floor is {floor}{signs}."


def recalibrated_sentences(run: ReportedRun) -> Iterator[Sentence]:
    """What a temperature from validation images makes of the ECE."""
    found, eces = run.evaluated.recalibrated, recalibrated_eces(run)
    moves = [f"from {before} to {after} on {on}" for on, (before, after) in eces.items()]
    if found and moves:
        name = quoted(found.best, is_ensemble(found))
        text = f"A temperature from validation images ({name}) changes the ECE of {run.label} {listed(moves)}."
        yield Sentence(Rank.RECALIBRATED, text)


def recalibrated_eces(run: ReportedRun) -> dict[str, tuple[str, str]]:
    """On each set of images the ECE without recalibration, and with the one that `predict` uses."""
    found = run.evaluated.recalibrated
    scaled = found.ways.get(found.best) if found else None
    if scaled is None:
        return {}
    eces = {}
    for one in measured(run):
        shifted = scaled.on(one.suite)
        if shifted or not one.suite:
            after = shifted.ensemble[HEADLINE] if shifted else scaled.clean.ensemble
            before, then = percents(one.figures.ece_width15, after.ece_width15)
            eces[one.on] = before, then
    return eces


def warning_sentences(run: ReportedRun) -> Iterator[Sentence]:
    if run.results.health and run.results.health.warnings:
        text = f"{run.label} lost many channels in training: the section “Is the whole network at work?” counts them."
        yield Sentence(Rank.CONFIDENCE, text)


def _counted(one: Measured, clean: Measured) -> str:
    """The images, and how many they are where that is not said yet: of a few, a share can mislead."""
    is_said = one is not clean and one.images == clean.images
    return one.on.removeprefix("the ") if is_said else counted_images(one.images, one.on)


def _noise(run: ReportedRun, one: Measured) -> Iterator[str]:
    """Whether the ECE is more than noise; nothing where it is not known."""
    if one.floor is None or one.debiased is None:
        return
    ece, floor = percents(one.figures.ece_width15, one.floor)
    start = f"On {one.on} the ECE of {run.label} is {ece}, and its noise floor is {floor}"
    debiased, low, high = one.debiased
    if low > 0:
        interval = percent_interval(low, high, digits=1)
        yield f"{start}: noise explains only a part (debiased ECE {percents(debiased)[0]}, interval {interval})."
    elif not one.leaning:  # whose sentence says already what the images show
        yield f"{start}: these images do not show that it is miscalibrated."
