from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.records.codec import encode
from counterpoint.records.files import Evaluated
from counterpoint.report import load_runs
from tests.report.made import EXTRA, MakeEvaluated, changed

Save = Callable[..., Path]


def test_a_run_folder_and_its_file_give_the_same(make_evaluated: MakeEvaluated, save: Save) -> None:
    run = make_evaluated(members=2, shifted=True, more=True, extra=True)
    folder = save(run)
    assert load_runs([folder]) == load_runs([folder / "results.json"]) == [run]


def test_a_run_given_twice_is_refused(tmp_path: Path, make_evaluated: MakeEvaluated, save: Save) -> None:
    run = save(make_evaluated())
    (tmp_path / "link").symlink_to(run)
    for again in (run, run / "results.json", tmp_path / "link"):
        with pytest.raises(InputError, match=f"{again} is given twice; name each run once"):
            load_runs([run, again])


@pytest.mark.parametrize(
    ("path", "nothing"),
    [
        ("clean.reliability", None),
        ("corrupted.cells.fog.3.reliability", None),
        ("corrupted.cells.fog.3.members", ()),
        (f"shifts.{EXTRA}.cells.spatter.0.reliability", None),
    ],
)
def test_a_result_kept_by_reproduce_is_sent_to_the_run(
    make_evaluated: MakeEvaluated, save: Save, path: str, nothing: Any
) -> None:
    run = make_evaluated(members=2, shifted=True, extra=True)
    with pytest.raises(InputError, match=r"results.json is a result as `counterpoint reproduce` keeps it, .* folder"):
        load_runs([save(changed(run, f"results.{path}", nothing))])


def keys(value: Any) -> Any:
    """Which fields a record has, less those that are left out where they say nothing. Of a list, those of its first."""
    if isinstance(value, dict):
        optional = ("changed_predictions", "standard_error")
        return {key: keys(inner) for key, inner in value.items() if key not in optional}
    return keys(value[0]) if isinstance(value, list) and value else None


def test_made_up_runs_have_the_fields_of_real_ones(real_run: Evaluated, make_evaluated: MakeEvaluated) -> None:
    made = make_evaluated(members=4, shifted=True, more=True, extra=True)
    assert made.recalibrated is not None
    assert real_run.recalibrated is not None
    assert made.thresholded is not None
    assert made.compared is not None
    ways, real_ways = made.recalibrated.ways, real_run.recalibrated.ways
    assert list(ways) == list(real_ways)
    pairs: list[tuple[Any, Any]] = [
        (replace(made.recalibrated, ways={}), replace(real_run.recalibrated, ways={})),
        (ways["before"], real_ways["before"]),  # only that and the chosen one have differences
        (ways["by both"].moves, real_ways["by both"].moves),
        (made.compared.without([], ["letters"]), real_run.compared),
        (replace(made.thresholded, test=None, outside={}), real_run.thresholded),
        (made.results.clean, real_run.results.clean),
        (made.results.corrupted, real_run.results.corrupted),
        (made.results.shifts[EXTRA], real_run.results.shifts[EXTRA]),
        (made.results.collapse, real_run.results.collapse),
        (made.results.health, real_run.results.health),
    ]
    for ours, real in pairs:
        assert keys(encode(ours)) == keys(encode(real))
