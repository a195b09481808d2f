import pytest

from counterpoint.records.compared import Difference
from counterpoint.records.recalibrated import Care, Choice
from counterpoint.report.recalibrations.choice import candidates_table, choice_in_words, short_candidates_table
from tests.report.made import MakeEvaluated, changed

BEST = "It has the best score on 40 held-out images"
NLLS = ["Clean", "Speckle noise", "Gaussian blur", "Spatter", "Saturate", "Score"]


def choice_of(make_evaluated: MakeEvaluated, members: int) -> Choice:
    found = make_evaluated(members=members, shifted=True, more=True).recalibrated
    assert found is not None
    assert found.choice is not None
    return found.choice


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (
            4,
            "no recalibration. On 40 held-out images “by disagreement” has the best score. The chosen one is the "
            "simplest candidate whose score these images do not tell from the best.",
        ),
        (3, f"“by disagreement”. {BEST}, and every simpler candidate is worse by more than chance."),
        (1, f"“one for all images, shifted”. {BEST}, and every simpler candidate is worse by more than chance."),
    ],
)
def test_what_was_chosen_and_why(make_evaluated: MakeEvaluated, members: int, expected: str) -> None:
    first, *_ = choice_in_words(choice_of(make_evaluated, members), members > 1)
    assert first == f"Chosen: {expected}"


def test_nothing_is_simpler_than_none(make_evaluated: MakeEvaluated) -> None:
    choice = choice_of(make_evaluated, 4)
    alone = changed(choice, "candidates", choice.candidates[:1])
    assert choice_in_words(alone, True)[0] == f"Chosen: no recalibration. {BEST}."
    empty = changed(choice, "candidates", ())
    assert candidates_table(empty, True).rows == ()
    assert choice_in_words(empty, True)[0] == f"Chosen: no recalibration. {BEST}."


@pytest.mark.parametrize(
    ("care", "score"),
    [
        ("clean", "The score is the NLL of clean images (care: clean)."),
        ("both", "the NLL of clean images, and the mean NLL under the left-out corruptions (care: both)."),
        ("shift", "The score is the mean NLL under the left-out corruptions (care: shift)."),
    ],
)
def test_what_the_score_is(make_evaluated: MakeEvaluated, care: Care, score: str) -> None:
    assert choice_in_words(changed(choice_of(make_evaluated, 1), "care", care), False)[1].endswith(score)


def test_a_refused_candidate_has_its_reason(make_evaluated: MakeEvaluated) -> None:
    choice = changed(choice_of(make_evaluated, 3), "refused", {"by both": "these 3 images do not determine it"})
    words = choice_in_words(choice, True)
    assert words[2:] == ("Refused: “by entropy and disagreement”, because these 3 images do not determine it.",)


def test_every_candidate_has_its_row(make_evaluated: MakeEvaluated) -> None:
    choice = choice_of(make_evaluated, 3)
    table = candidates_table(choice, True)
    assert [column.label for column in table.columns] == ["Temperature", "Parameters", *NLLS, "Above the best"]
    assert len(table.rows) == 1 + 9
    for row, one in zip(table.rows, choice.candidates, strict=True):
        nlls = [one.clean, *one.shifted.values(), one.score]
        assert [entry.text for entry in row.entries[:-1]] == [str(one.parameters), *(f"{nll:.3f}" for nll in nlls)]
    above = choice.candidates[0].above_best
    assert table.rows[0].entries[-1].text == f"+{above.difference:.3f} (+{above.low:.3f} to +{above.high:.3f})"
    assert [(row.label, row.entries[-1].text) for row in table.rows if row.kind == "run"] == [
        ("by disagreement (chosen)", "the best")
    ]


def test_a_difference_of_rounding_alone_is_none(make_evaluated: MakeEvaluated) -> None:
    choice = changed(choice_of(make_evaluated, 3), "candidates.0.above_best", Difference(7e-11, 1e-12, 1e-10))
    assert candidates_table(choice, True).rows[0].entries[-1].text == "the same"


def test_a_corruption_that_one_candidate_lacks_has_a_dash(make_evaluated: MakeEvaluated) -> None:
    choice = changed(choice_of(make_evaluated, 1), "candidates.0.shifted", {})
    table = candidates_table(choice, False)
    assert [entry.text for entry in table.rows[0].entries[2:6]] == 4 * ["–"]
    assert short_candidates_table(choice, False).rows[0].entries[1].text == "–"


def test_the_short_table_has_the_mean_of_the_left_out(make_evaluated: MakeEvaluated) -> None:
    choice = choice_of(make_evaluated, 2)
    short, whole = short_candidates_table(choice, True), candidates_table(choice, True)
    for row, full, one in zip(short.rows, whole.rows, choice.candidates, strict=True):
        mean = sum(one.shifted.values()) / 4
        assert [entry.text for entry in row.entries[:2]] == [f"{one.clean:.3f}", f"{mean:.3f}"]
        assert (row.label, row.entries[-1]) == (full.label, full.entries[-1])
