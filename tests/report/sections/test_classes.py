from dataclasses import replace

import pytest

from counterpoint.records.figures import ClassFigures
from counterpoint.report import render
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.classes import RunClasses, classes
from tests.report.made import MakeEvaluated, changed

CAT = ClassFigures(
    name="cat",
    images=40,
    wrong=10,
    taken_for="dog",
    taken=7,
    predicted=34,
    predicted_right=30,
    predicted_confidence=0.95,
)
DOG = ClassFigures(name="dog", images=1_200, wrong=0, predicted=1_207, predicted_right=1_200, predicted_confidence=0.8)
OWL = ClassFigures(name="owl", images=0, wrong=0, predicted=0, predicted_right=0)


def run_with(make_evaluated: MakeEvaluated, *found: ClassFigures) -> ReportedRun:
    return ReportedRun("mine", changed(make_evaluated(members=2), "results.classes", found))


def of_run(run: ReportedRun) -> RunClasses:
    content = classes([run])
    assert content is not None
    (found,) = content.runs
    return found


def test_the_table_by_hand(make_evaluated: MakeEvaluated) -> None:
    """The class with the highest error comes first, and one without images last."""
    found = of_run(run_with(make_evaluated, OWL, DOG, CAT))
    rows = [[row.label, *(entry.text for entry in row.entries)] for row in found.hardest.rows]
    assert rows == [
        ["cat", "40", "25.00", "dog (7)", "34", "88.24", "95.00"],
        ["dog", "1,200", "0.00", "–", "1,207", "99.42", "80.00"],
        ["owl", "0", "–", "–", "0", "–", "–"],
    ]
    assert all(len(row) == len(found.hardest.columns) for row in rows)
    assert found.others is None
    assert found.sentence == (
        "The hardest class is cat: 10 of its 40 images are wrong. They are taken most often for dog (7)."
    )


def test_no_mistake_and_one_mistake_are_said(make_evaluated: MakeEvaluated) -> None:
    assert of_run(run_with(make_evaluated, DOG, OWL)).sentence == "No image is wrong."
    once = replace(CAT, wrong=1, taken=1)
    assert of_run(run_with(make_evaluated, DOG, once)).sentence == (
        "The hardest class is cat: 1 of its 40 images is wrong. It is taken for dog."
    )


def test_classes_of_the_same_highest_error_are_counted(make_evaluated: MakeEvaluated) -> None:
    """None of them is the hardest, and of a few images each nothing else would be known of it."""
    alone = replace(CAT, images=1, wrong=1, taken=1)
    assert of_run(run_with(make_evaluated, DOG, alone)).sentence == (
        "The hardest class is cat: its only image is wrong. It is taken for dog."
    )
    assert of_run(run_with(make_evaluated, DOG, alone, replace(CAT, name="owl", wrong=40))).sentence == (
        "No class is the hardest: 2 classes are wrong on all of their images."
    )
    assert of_run(run_with(make_evaluated, DOG, CAT, replace(CAT, name="owl"))).sentence == (
        "No class is the hardest: 2 classes are wrong on 25.00\N{NO-BREAK SPACE}% of their images."
    )


@pytest.mark.parametrize(("count", "folded"), [(10, 0), (13, 3)])
def test_many_classes_are_folded_away(make_evaluated: MakeEvaluated, count: int, folded: int) -> None:
    some = replace(CAT, images=100)
    run = run_with(make_evaluated, *(replace(some, name=f"class {k}", wrong=k, taken=1) for k in range(1, count + 1)))
    found = of_run(run)
    assert [row.label for row in found.hardest.rows] == [f"class {k}" for k in range(count, count - 10, -1)]
    assert len(found.others.rows if found.others else ()) == folded
    page = render([run.evaluated])
    assert ("<summary>The other classes</summary>" in page) == (folded > 0)
    assert "Which classes are hard?" in page


def test_results_of_an_earlier_version_have_no_section(make_evaluated: MakeEvaluated) -> None:
    assert classes([run_with(make_evaluated)]) is None
