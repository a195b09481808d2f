"""What does not fit together in recalibrated.json."""

from dataclasses import replace

import pytest

from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.recalibrated import Parameter, Recalibrated
from tests.made_results import make_recalibrated


def problem_of(record: Recalibrated) -> str:
    try:
        decode(Recalibrated, encode(record))
    except FieldError as error:
        return str(error)
    return ""


def test_the_chosen_one_must_be_there() -> None:
    record = make_recalibrated()
    assert record.choice is not None
    for chosen, problem in {
        "by both": "",
        "none": "",
        "by entropy": "choice.chosen is 'by entropy', which is not one of the ways",
    }.items():
        assert problem_of(replace(record, choice=replace(record.choice, chosen=chosen))) == problem
    assert problem_of(replace(record, choice=None)) == ""


def test_there_must_be_at_least_one_way() -> None:
    assert problem_of(replace(make_recalibrated(), ways={})).startswith("ways is empty")


@pytest.mark.parametrize(("name", "count", "expected"), [("per-member", 1, 2), ("per-member", 3, 2), ("by both", 2, 1)])
def test_there_is_one_temperature_or_one_per_member(name: str, count: int, expected: int) -> None:
    record = make_recalibrated()
    scaled = record.ways[name]
    wrong = replace(scaled.recalibration, log_temperatures=(Parameter(0.1, 0.01),) * count)
    problem = problem_of(replace(record, ways={**record.ways, name: replace(scaled, recalibration=wrong)}))
    assert problem == (f"ways.{name}.recalibration.log_temperatures has {count} values, and must have {expected}")
