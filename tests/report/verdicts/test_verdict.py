"""The verdict's sentences, for each case that figures and intervals can make."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    Compared,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
    ShiftDifferences,
)
from counterpoint.records.figures import ClassFigures
from counterpoint.records.files import Evaluated
from counterpoint.records.images import Source
from counterpoint.report import verdict
from counterpoint.report.pairs import compared_pairs
from counterpoint.report.recalibrations.words import quoted
from counterpoint.report.run import label_runs
from tests.report.made import MakeEvaluated, changed, changed_all

LOWER, HIGHER, UNCLEAR = (
    Difference(*ends) for ends in ((-0.02, -0.03, -0.01), (0.02, 0.01, 0.03), (0.01, -0.01, 0.03))
)
SMALL = Difference(0.005, 0.0001, 0.01)
NOISE = Difference(0.0, -0.1, 0.1)


def clean(error: Difference, ece: Difference | None) -> CleanDifferences:
    return CleanDifferences(error, NOISE, NOISE, ece)


def corrupted(error: Difference, ece: Difference | None) -> CorruptedDifferences:
    means = MeanDifferences(error, NOISE, NOISE)
    return CorruptedDifferences(means, 5 * (means,), CalibrationDifferences(ece))


def plain(run: Evaluated, **figures: float) -> Evaluated:
    """A run whose mean confidence fits, so that only the differences speak."""
    changes: dict[str, Any] = {"error": 0.1, "mean_confidence": 0.9} | figures
    paths = ["results.clean.ensemble"]
    paths += ["results.corrupted.aggregates.ensemble.by-corruption"] if run.results.corrupted else []
    return changed_all(run, {f"{path}.{key}": value for path in paths for key, value in changes.items()})


def against(run: Evaluated, *others: Evaluated, **parts: Any) -> Evaluated:
    """`run` with these differences from each of the others."""
    found = tuple(
        Comparison(
            other.results.experiment,
            other.results.seed,
            "folder",
            other.results.made_from,
            **{"clean": None, "corrupted": None, **parts},
        )
        for other in others
    )
    results = run.results
    compared = Compared(results.experiment, results.seed, results.made_from, "counterpoint compare", "then", found)
    return replace(run, compared=compared)


def said(runs: Sequence[Evaluated]) -> list[str]:
    return [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in verdict(runs)]


@pytest.fixture
def many(make_evaluated: MakeEvaluated) -> Evaluated:
    return plain(make_evaluated("many", members=2, shifted=True))


@pytest.fixture
def one(make_evaluated: MakeEvaluated) -> Evaluated:
    return plain(make_evaluated("one", members=1, shifted=True))


def test_a_better_ensemble(many: Evaluated, one: Evaluated) -> None:
    run = against(many, one, clean=clean(UNCLEAR, UNCLEAR), corrupted=corrupted(LOWER, LOWER))
    assert said([run, one]) == [
        "On corrupted images many is right 2.0 points more often than one (interval 1.0 to 3.0).",
        "On corrupted images many is better calibrated than one: its debiased ECE is 2.0 points lower "
        "(interval 1.0 to 3.0).",
        "120 clean images do not tell many and one apart in error and calibration: the difference in error is "
        "+1.0 points (interval −1.0 to +3.0), and the difference in debiased ECE is +1.0 points "
        "(interval −1.0 to +3.0).",
    ]


@pytest.mark.parametrize(
    ("nll", "words"),
    [
        (HIGHER, " But the NLL of many is higher, by 0.020 nats (interval 0.010 to 0.030)."),
        (LOWER, " But the NLL of many is lower, by 0.020 nats (interval 0.010 to 0.030)."),
        (UNCLEAR, ""),
    ],
)
def test_an_nll_that_tells_two_runs_apart_is_not_hidden(
    many: Evaluated, one: Evaluated, nll: Difference, words: str
) -> None:
    unclear = clean(UNCLEAR, UNCLEAR)
    (sentence,) = said([against(many, one, clean=replace(unclear, nll=nll)), one])
    assert sentence.endswith(f"and the difference in debiased ECE is +1.0 points (interval −1.0 to +3.0).{words}")
    shifted = corrupted(UNCLEAR, UNCLEAR)
    shifted = replace(shifted, mean=replace(shifted.mean, nll=nll))
    (sentence,) = said([against(many, one, corrupted=shifted), one])
    assert sentence.endswith(f"(interval −1.0 to +3.0).{words}")


def test_an_ensemble_that_is_worse_calibrated_says_so_first(many: Evaluated, one: Evaluated) -> None:
    run = against(many, one, clean=clean(UNCLEAR, HIGHER), corrupted=corrupted(LOWER, LOWER))
    first, *others = said([run, one])
    assert first == (
        "On clean images many is worse calibrated than one: its debiased ECE is 2.0 points higher "
        "(interval 1.0 to 3.0)."
    )
    assert others[0].startswith("On corrupted images many is right")
    assert others[-1].startswith("120 clean images do not tell the errors of many and one apart: the difference is")


def test_the_order_of_a_comparison_does_not_hide_a_worse_ensemble(many: Evaluated, one: Evaluated) -> None:
    run = against(one, many, clean=clean(HIGHER, LOWER), corrupted=corrupted(HIGHER, HIGHER))
    first, *others = said([run, many])
    assert first.startswith("On clean images one is better calibrated than many")
    assert others[0] == "On corrupted images one is wrong 2.0 points more often than many (interval 1.0 to 3.0)."


def test_an_ensemble_that_is_not_better_calibrated_under_shift_says_so_first(many: Evaluated, one: Evaluated) -> None:
    run = against(many, one, clean=clean(LOWER, LOWER), corrupted=corrupted(LOWER, UNCLEAR))
    assert said([run, one])[0] == (
        "40 corrupted images per cell do not tell the calibration of many and one apart: the difference in debiased "
        "ECE is +1.0 points (interval −1.0 to +3.0)."
    )


def test_an_interval_that_leaves_0_out_never_begins_at_0(many: Evaluated, one: Evaluated) -> None:
    run = against(many, one, clean=clean(SMALL, None))
    assert said([run, one]) == [
        "On clean images many is wrong 0.50 points more often than one (interval 0.01 to 1.00).",
    ]


def test_a_run_that_is_not_on_the_page_has_its_name(many: Evaluated, one: Evaluated) -> None:
    run = against(many, one, clean=clean(LOWER, None))
    assert said([run])[0].endswith("more often than one (interval 1.0 to 3.0).")
    again = changed(one, "results.run.seed", 3)
    same_name = changed(again, "results.experiment", "many")
    assert "than many (seed 3) (interval" in said([against(many, same_name, clean=clean(LOWER, None))])[0]
    same_seed = changed(same_name, "results.run.seed", many.results.seed)
    run = against(many, same_seed, clean=clean(LOWER, None))
    run = changed_all(run, {"compared.against.0.run": "first-try", "compared.against.0.made_from.weights": "others"})
    assert "than many (first-try) (interval" in said([run])[0]


def test_two_runs_compared_both_ways_are_one_pair(many: Evaluated, one: Evaluated) -> None:
    there, back = against(many, one, clean=clean(LOWER, None)), against(one, many, clean=clean(HIGHER, None))
    assert [pair.label for pair in compared_pairs(label_runs([there, back]))] == ["many − one"]
    with_more = against(one, many, clean=clean(HIGHER, None), corrupted=corrupted(HIGHER, None))
    assert [pair.label for pair in compared_pairs(label_runs([there, with_more]))] == ["one − many"]


def test_runs_of_one_name_that_are_not_on_the_page_are_told_apart(many: Evaluated, one: Evaluated) -> None:
    again = changed(one, "results.evaluation.weights", "others")
    run = against(many, one, again, clean=clean(LOWER, None))
    found = run.compared
    assert found is not None
    folders = [replace(other, run=name) for other, name in zip(found.against, ("a", "b"), strict=True)]
    texts = said([replace(run, compared=replace(found, against=tuple(folders)))])
    assert [text.partition("more often than ")[2].partition(" (interval")[0] for text in texts] == [
        "one (a)",
        "one (b)",
    ]
    twin = changed(many, "results.evaluation.weights", "others")
    assert "than many (folder) (interval" in said([against(many, twin, clean=clean(LOWER, None))])[0]


def test_three_runs_with_two_comparisons(many: Evaluated, one: Evaluated, make_evaluated: MakeEvaluated) -> None:
    third = plain(make_evaluated("third", members=1, shifted=True, seed=1))
    run = against(many, one, third, clean=clean(LOWER, LOWER), corrupted=corrupted(LOWER, LOWER))
    overview, *sentences = said([run, one, third])
    assert overview.startswith("On corrupted images the lowest error is")
    assert [name for name in ("one", "third") for text in sentences if f"than {name}" in text] == [
        "one", "one", "third", "third",
    ]  # fmt: skip
    both_ways = against(one, many, clean=clean(HIGHER, HIGHER))
    assert not any("one is" in text for text in said([run, both_ways, third]))


def test_the_best_of_three_runs_comes_first(many: Evaluated, one: Evaluated, make_evaluated: MakeEvaluated) -> None:
    best = plain(make_evaluated("best", members=1, shifted=True), error=0.05, ece_width15=0.01)
    run = against(many, one, clean=clean(LOWER, HIGHER), corrupted=corrupted(LOWER, HIGHER))
    assert said([run, one, best])[0] == (
        "On corrupted images best has the lowest error (5.0 %) and the lowest ECE (1.0 %)."
    )
    assert "lowest" not in " ".join(said([run, one])), "two runs have their differences"


def test_one_run(many: Evaluated) -> None:
    estimate = {"floor": 0.05, "debiased": 0.2, "low": 0.15, "high": 0.25}
    changes = {f"results.clean.honest.ensemble.ece_width15.{key}": value for key, value in estimate.items()}
    changes |= {
        "results.clean.ensemble.mean_confidence": 0.7,
        "results.clean.ensemble.ece_width15": 0.21,
        "results.corrupted.aggregates.ensemble.by-corruption.ece_width15": 0.1,
        "results.corrupted.aggregates.ensemble.by-corruption.ece_width15_floor": 0.02,
    }
    assert said([changed_all(many, changes)]) == [
        "many is right on 90.0 % of the 120 clean images and 90.0 % of the 40 corrupted images per cell.",
        "On clean images many is less sure than it should be (under-confident): 70.0 % confidence, 90.0 % right.",
        "The corrupted images do not show that the mean confidence of many is too high or too low: 90.0 % confidence, "
        "90.0 % right. But the ECE there is 10.0 %, and the noise floor is 2.0 %: some predictions are over-confident, "
        "and others are under-confident.",
        "On clean images the ECE of many is 21.0 %, and its noise floor is 5.0 %: noise explains only a part "
        "(debiased ECE 20.0 %, interval 15.0 to 25.0).",
    ]


def test_a_network_that_always_names_the_largest_class_is_called_so_first(many: Evaluated, one: Evaluated) -> None:
    """It is not enough to be right more often by chance: 4 of the 5 images that tell the two apart show little."""

    def run(found: Evaluated, cats_wrong: int, dogs_right: int) -> Evaluated:
        images = ClassFigures(name="cat", images=100, wrong=cats_wrong, predicted=0, predicted_right=0)
        few = replace(images, name="dog", images=20, wrong=20 - dogs_right)
        return replace(found, results=replace(found.results, classes=(few, images)))

    text = (
        "The clean images do not show that many (90.0 %) is right more often than always naming “cat”: that is right "
        "on 83.3 %, the share of this class."
    )
    assert said([run(many, cats_wrong=0, dogs_right=0)])[0] == text
    assert said([run(many, cats_wrong=1, dogs_right=4)])[0] == text
    assert said([run(many, cats_wrong=50, dogs_right=20)])[0] == text
    for better in (run(many, cats_wrong=0, dogs_right=4), run(many, cats_wrong=5, dogs_right=17)):
        assert (
            said([better])[0]
            == "many is right on 90.0 % of the 120 clean images and 90.0 % of the 40 corrupted images per cell."
        )
    both = said([run(many, cats_wrong=0, dogs_right=0), run(one, cats_wrong=1, dogs_right=0)])
    assert both[0].startswith("The clean images do not show that many (90.0 %) and one (90.0 %) are right more often")
    assert "always naming" not in " ".join(both[1:])


def test_an_over_confident_run_is_not_said_to_be_calibrated_perhaps(make_evaluated: MakeEvaluated) -> None:
    """With few images the mean confidence can leave its interval where the ECE, which has many bins, does not."""
    low = {"results.clean.honest.ensemble.ece_width15.low": 0.0}
    sentences = said([changed_all(plain(make_evaluated("one", members=1), mean_confidence=0.99), low)])
    assert (
        "On clean images one is surer than it should be (over-confident): 99.0 % confidence, 90.0 % right." in sentences
    )
    assert "miscalibrated" not in " ".join(sentences)


def test_gaps_of_both_signs_are_claimed_only_where_the_ece_shows_them(make_evaluated: MakeEvaluated) -> None:
    changes = {
        "results.clean.ensemble.mean_confidence": 0.94,  # 4 points too high, within noise of 120 images
        "results.clean.honest.ensemble.ece_width15.floor": 0.02,
    }
    one = changed_all(plain(make_evaluated("one", members=1)), changes)
    of_one_sign, of_both = (changed(one, "results.clean.ensemble.ece_width15", ece) for ece in (0.059, 0.061))
    assert said([of_one_sign])[1].endswith("But the ECE there is 5.9 %, and the noise floor is 2.0 %.")
    assert said([of_both])[1].endswith("some predictions are over-confident, and others are under-confident.")


def test_a_run_that_is_always_sure_and_right_is_not_over_confident(make_evaluated: MakeEvaluated) -> None:
    perfect = plain(make_evaluated("one", members=1), error=0.0, mean_confidence=1.0)
    for images in (100, 120, 450):
        sentence = said([changed(perfect, "results.evaluated_on.images", images)])[1]
        assert sentence.startswith("The clean images do not show that the mean confidence of one is too")


def test_one_run_without_corrupted_images_whose_ece_is_noise(make_evaluated: MakeEvaluated) -> None:
    changes = {
        "results.clean.ensemble.ece_width15": 0.05,
        "results.clean.honest.ensemble.ece_width15.floor": 0.04,
        "results.clean.honest.ensemble.ece_width15.low": 0.0,
    }
    assert said([changed_all(plain(make_evaluated("one", members=1)), changes)]) == [
        "one is right on 90.0 % of the 120 clean images.",
        "The clean images do not show that the mean confidence of one is too high or too low: 90.0 % confidence, "
        "90.0 % right.",
        "On clean images the ECE of one is 5.0 %, and its noise floor is 4.0 %: these images do not show that it is "
        "miscalibrated.",
    ]


def test_results_from_before_the_floors_have_a_verdict(make_evaluated: MakeEvaluated) -> None:
    old = changed(plain(make_evaluated("one", members=1), mean_confidence=0.99), "results.clean.honest", None)
    assert said([old]) == [
        "one is right on 90.0 % of the 120 clean images.",
        "On clean images one is surer than it should be (over-confident): 99.0 % confidence, 90.0 % right.",
    ]


def test_runs_that_were_not_compared(many: Evaluated, one: Evaluated) -> None:
    sure = plain(one, error=0.2, ece_width15=0.03, mean_confidence=0.99)
    surer = plain(many, error=0.1, ece_width15=0.04, mean_confidence=0.99)
    assert said([surer, sure]) == [
        "On corrupted images the lowest error is 10.0 % (many), and the lowest ECE is 3.0 % (one).",
        "On clean images the lowest error is 10.0 % (many), and the lowest ECE is 3.0 % (one).",
        "No interval says whether these runs differ by more than chance: “counterpoint compare” computes intervals.",
        "On clean images many (99.0 % confidence, 90.0 % right) and one (99.0 % confidence, 80.0 % right) are surer "
        "than they should be (over-confident).",
        "On corrupted images many (99.0 % confidence, 90.0 % right) and one (99.0 % confidence, 80.0 % right) are "
        "surer than they should be (over-confident).",
    ]


def test_figures_of_different_images_are_not_compared(many: Evaluated, one: Evaluated) -> None:
    other = changed_all(one, {"results.evaluated_on.dataset": "cifar10", "results.corrupted": None})
    assert said([many, other]) == [
        "These runs were evaluated on different images, so that their figures cannot be compared.",
    ]


@pytest.fixture
def recalibrated(make_evaluated: MakeEvaluated) -> Mapping[int, Evaluated]:
    runs = {members: make_evaluated(f"of {members}", members=members, shifted=True, more=True) for members in (1, 2)}
    return {members: replace(plain(run), compared=None) for members, run in runs.items()}


def test_what_a_temperature_does(recalibrated: Mapping[int, Evaluated]) -> None:
    run = recalibrated[2]
    found = run.recalibrated
    assert found is not None
    assert found.choice is not None
    changes: dict[str, Any] = {
        "results.clean.ensemble.ece_width15": 0.2,
        "results.corrupted.aggregates.ensemble.by-corruption.ece_width15": 0.3,
        f"recalibrated.ways.{found.choice.chosen}.clean.ensemble.ece_width15": 0.05,
        f"recalibrated.ways.{found.choice.chosen}.corrupted.ensemble.by-corruption.ece_width15": 0.06,
    }
    text = (
        f"A temperature from validation images ({quoted(found.choice.chosen, several=True)}) changes the ECE of of 2 "
        "from 20.0 % to 5.0 % on clean images and from 30.0 % to 6.0 % on corrupted images."
    )
    assert text in said([changed_all(run, changes)])


def test_the_temperature_is_the_one_that_predict_uses(recalibrated: Mapping[int, Evaluated]) -> None:
    """Without a choice that is the one with the lowest NLL on validation images, whatever it does to test images."""
    found = recalibrated[2].recalibrated
    assert found is not None
    ways = {name: replace(way, validation_nll=0.1 if name == "per-member" else 0.2) for name, way in found.ways.items()}
    run = replace(recalibrated[2], recalibrated=replace(found, ways=ways, choice=None))
    run = changed(run, "recalibrated.ways.per-member.clean.ensemble.ece_width15", 0.07)
    (text,) = (text for text in said([run]) if text.startswith("A temperature"))
    assert text.startswith("A temperature from validation images (“one per member”)")
    assert "to 7.0 % on clean images" in text
    none_chosen = replace(found, choice=replace(found.choice, chosen="none") if found.choice else None)
    assert not [text for text in said([replace(run, recalibrated=none_chosen)]) if text.startswith("A temperature")]


def test_two_recalibrated_runs_stand_beside_each_other(recalibrated: Mapping[int, Evaluated]) -> None:
    one, many = recalibrated[1], recalibrated[2]
    run = against(many, one, corrupted=corrupted(LOWER, LOWER))
    texts = said([run, one])
    assert (
        sum(text.startswith("With a temperature from validation images, the ECE on corrupted") for text in texts) == 1
    )
    assert texts[2].endswith("% for of 1.")


def test_recalibrated_runs_stand_beside_each_other_on_the_same_images_only(
    recalibrated: Mapping[int, Evaluated],
) -> None:
    one, many = changed(recalibrated[1], "results.corrupted.images", 39), recalibrated[2]
    (text,) = (
        text for text in said([against(many, one, clean=clean(LOWER, LOWER)), one]) if text.startswith("With a temp")
    )
    assert text.startswith("With a temperature from validation images, the ECE on clean images is")


def test_a_run_that_lost_channels(recalibrated: Mapping[int, Evaluated]) -> None:
    warned = changed(recalibrated[2], "results.health.warnings", ("Most of it is lost.",))
    text = "of 2 lost many channels in training: the section “Is the whole network at work?” counts them."
    assert text in said([changed(warned, "recalibrated", None)])


@pytest.mark.parametrize(
    ("errors", "images", "words"),
    [
        (
            (0.9, 0.02),
            30,
            "member 1 learned far less: wrong on 90.0 % of the clean images, and the best member on 2.0 %.",
        ),
        ((0.02, 0.9), 30, "member 2 learned far less: wrong on 90.0 %"),
        ((0.4, 0.15), 30, ""),
        ((0.4, 0.15), 300, "member 1 learned far less: wrong on 40.0 %"),
        ((0.115, 0.02), 10_000, ""),
        ((0.9, 0.5), 10_000, ""),
    ],
)
def test_a_member_that_hardly_learned_comes_first(
    many: Evaluated, errors: tuple[float, ...], images: int, words: str
) -> None:
    members = tuple(
        changed(member, "error", error) for member, error in zip(many.results.clean.members, errors, strict=True)
    )
    run = changed(many, "results.clean.members", members)
    (first, *_) = said([changed(run, "results.evaluated_on.images", images)])
    assert words in first
    assert bool(words) == ("learned far less" in first)


def test_shifts_of_a_user_and_of_given_predictions_are_named(many: Evaluated, one: Evaluated) -> None:
    assert many.results.corrupted is not None
    fog = changed_all(many.results.corrupted, {"source": Source("own", key="k")})
    run, other = (changed(one, "results.shifts", {"fog": fog}) for one in (many, one))
    shifts = {"fog": ShiftDifferences(fog.shift, corrupted(LOWER, LOWER))}
    assert said([against(run, other, shifts=shifts), other])[0] == (
        "On the shifted images of “fog” many is right 2.0 points more often than one (interval 1.0 to 3.0)."
    )
    given = changed(many, "results.corrupted.source", Source("given"))
    assert said([given])[0] == "many is right on 90.0 % of the 120 clean images and 90.0 % of the 40 shifted images."
    as_many = changed(given, "results.corrupted.images", 120)
    assert said([as_many])[0] == "many is right on 90.0 % of the 120 clean images and 90.0 % of the shifted images."
