from dataclasses import replace

import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import RECALIBRATED, THRESHOLD, read_evaluated, write_record
from counterpoint.records.recalibrated import Choice, Recalibrated
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction, find_correction, find_promised, parse_confidence


def recalibrated_of(run: Run) -> Recalibrated:
    found = read_evaluated(run.folder).recalibrated
    assert found is not None
    return found


def test_a_run_without_results_is_not_corrected(bare_run: Run) -> None:
    assert find_correction(bare_run.folder) == Correction(NONE, "none")
    assert find_correction(bare_run.folder, "0.5").sure_from == 0.5


def test_without_a_choice_the_best_on_validation_images_is_taken(run: Run) -> None:
    recalibrated = recalibrated_of(run)
    nll = {name: way.clean.ensemble.nll for name, way in recalibrated.ways.items()}
    correction = find_correction(run.folder)
    assert nll[correction.name] == min(nll.values())
    assert correction.recalibration == recalibrated.ways[correction.name].recalibration
    assert correction.weights == recalibrated.made_from.weights


def test_test_images_choose_nothing(run: Run) -> None:
    """The clean figures of a run on one's own images are of test images."""
    recalibrated = recalibrated_of(run)
    tested = replace(recalibrated.made_from, clean=replace(recalibrated.made_from.clean, part="test"))
    by_test = sorted(recalibrated.ways, key=lambda name: recalibrated.ways[name].clean.ensemble.nll)
    for best in by_test:
        ways = {
            name: replace(way, validation_nll=0.1 if name == best else None if name == "before" else 0.2)
            for name, way in recalibrated.ways.items()
        }
        assert replace(recalibrated, made_from=tested, ways=ways).best == best
    earlier = {name: replace(way, validation_nll=None) for name, way in recalibrated.ways.items()}
    of_earlier = replace(recalibrated, ways=earlier, unscaled_validation_nll=None)
    assert replace(of_earlier, made_from=tested).best == "before"
    assert of_earlier.best == by_test[0], "here these are the validation images"


def test_a_recalibration_that_makes_validation_images_worse_is_not_taken(run: Run) -> None:
    recalibrated = recalibrated_of(run)
    lowest = min(way.clean.ensemble.nll for way in recalibrated.ways.values())
    assert replace(recalibrated, unscaled_validation_nll=lowest).best != "none"
    write_record(run.folder / RECALIBRATED, replace(recalibrated, unscaled_validation_nll=0.9 * lowest))
    correction = find_correction(run.folder)
    assert (correction.name, correction.recalibration) == ("none", NONE)


@pytest.mark.parametrize("chosen", ["after", "none"])
def test_a_choice_counts_also_if_it_is_for_none(run: Run, chosen: str) -> None:
    recalibrated = recalibrated_of(run)
    changed = replace(recalibrated, choice=Choice(chosen, "both", 10, ()))
    assert changed.best == chosen
    way = recalibrated.ways.get(chosen)
    write_record(run.folder / RECALIBRATED, changed)
    assert find_correction(run.folder).recalibration == (NONE if way is None else way.recalibration)


def test_the_word_threshold_needs_one(run: Run) -> None:
    with pytest.raises(
        InputError, match=r"has no threshold for its present figures; `counterpoint threshold .* --error 1%` finds"
    ):
        find_correction(run.folder, "threshold")


def test_a_threshold_that_counts_is_taken_where_nobody_names_one(bare_run: Run, run: Run) -> None:
    assert find_promised(bare_run.folder) == find_correction(bare_run.folder)
    assert find_promised(run.folder) == find_correction(run.folder)
    found = threshold_run(run, 0.5)
    assert find_promised(run.folder) == find_correction(run.folder, "threshold")
    assert find_promised(run.folder).recalibration == found.recalibration
    stale = replace(found, made_from=replace(found.made_from, weights="others"))
    write_record(run.folder / THRESHOLD, stale)
    assert find_promised(run.folder) == find_correction(run.folder)
    (note,) = find_promised(run.folder).notes
    assert note.startswith(f"left out: {run.folder / THRESHOLD} was made from other logits than results.json; ")
    assert not find_correction(run.folder).notes, "nobody asked for a threshold"


def test_a_recalibration_that_does_not_count_any_more_is_not_passed_over_in_silence(run: Run) -> None:
    assert not find_correction(run.folder).notes
    recalibrated = recalibrated_of(run)
    stale = replace(recalibrated, made_from=replace(recalibrated.made_from, precision="another"))
    write_record(run.folder / RECALIBRATED, stale)
    found = find_correction(run.folder)
    assert found == Correction(NONE, "none")
    (note,) = found.notes
    assert note.startswith(f"left out: {run.folder / RECALIBRATED} was made from other logits than results.json; ")


@pytest.mark.parametrize(("text", "value"), [("0.9", 0.9), ("90%", 0.9), ("0", 0.0), ("100%", 1.0), ("99.9%", 0.999)])
def test_confidences_are_read_as_people_write_them(text: str, value: float) -> None:
    assert parse_confidence(text) == value


@pytest.mark.parametrize("text", ["7", "-1", "nan", "high", "101%", ""])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=rf"not_sure_below \(--not-sure-below\) is {text}; it must be a confidence such as 0.9 or 90%"
    ):
        parse_confidence(text)


def test_a_percentage_without_its_sign_is_guessed_in_the_message() -> None:
    with pytest.raises(InputError, match=r"for 70 percent write 70%$"):
        parse_confidence("70")
    with pytest.raises(InputError, match=r"or the word threshold$"):
        parse_confidence("700")
