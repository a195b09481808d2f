from collections.abc import Callable
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


def test_members_that_do_not_fit_are_named(make_evaluated: MakeEvaluated, save: Save) -> None:
    run, smaller = (make_evaluated(members=members, more=True) for members in (3, 2))
    mixed = Evaluated(run.results, smaller.recalibrated)
    words = r"recalibrated.json does not fit results.json: ways.before.clean.members has 2 values, and the run has 3;"
    with pytest.raises(InputError, match=words):
        load_runs([save(mixed)])


@pytest.mark.parametrize(("has_cells", "expected"), [(True, 5), (False, 0)])
def test_severities_that_do_not_fit_are_named(
    make_evaluated: MakeEvaluated, save: Save, has_cells: bool, expected: int
) -> None:
    run, other = (make_evaluated(members=1, shifted=shifted, more=True) for shifted in (has_cells, True))
    assert other.compared is not None
    severities = other.compared.against[0].corrupted
    assert severities is not None
    mixed = changed(run, "compared.against.0.corrupted", changed(severities, "severities", severities.severities[:4]))
    words = (
        rf"compared.json does not fit results.json: against\[0\].corrupted.severities has 4 .* the run has {expected};"
    )
    with pytest.raises(InputError, match=words):
        load_runs([save(mixed)])


def keys(value: Any) -> Any:
    """Which fields a record has. Of a list, those of its first value."""
    if isinstance(value, dict):
        return {key: keys(inner) for key, inner in value.items()}
    return keys(value[0]) if isinstance(value, list) and value else None


def test_made_up_runs_have_the_fields_of_real_ones(real_run: Evaluated, make_evaluated: MakeEvaluated) -> None:
    made = make_evaluated(members=4, shifted=True, more=True, extra=True)
    pairs: list[tuple[Any, Any]] = [
        (made.recalibrated, real_run.recalibrated),
        (made.compared, real_run.compared),
        (made.results.clean, real_run.results.clean),
        (made.results.corrupted, real_run.results.corrupted),
        (made.results.shifts[EXTRA], real_run.results.shifts[EXTRA]),
        (made.results.collapse, real_run.results.collapse),
        (made.results.health, real_run.results.health),
    ]
    for ours, real in pairs:
        assert keys(encode(ours)) == keys(encode(real))
