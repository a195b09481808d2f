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


def test_members_that_do_not_fit_are_named(make_evaluated: MakeEvaluated, save: Save) -> None:
    run, smaller = (make_evaluated(members=members, more=True) for members in (3, 2))
    mixed = Evaluated(run.results, smaller.recalibrated)
    words = r"recalibrated.json does not fit results.json: ways.before.clean.members has 2 values, and the run has 3;"
    with pytest.raises(InputError, match=words):
        load_runs([save(mixed)])


@pytest.mark.parametrize(
    ("path", "cut", "misfit"),
    [
        ("severities", 4, "severities has 4 values, and the run has 5"),
        ("differences.severities", 3, "differences.severities has 3 values, and the run has 5"),
        ("calibration_differences", 1, "calibration_differences has 1 values, and the run has 5"),
    ],
)
def test_recalibrated_severities_that_do_not_fit_are_named(
    make_evaluated: MakeEvaluated, save: Save, path: str, cut: int, misfit: str
) -> None:
    run = make_evaluated(members=1, shifted=True, more=True)
    value: Any = run.recalibrated and run.recalibrated.ways["before"].corrupted
    for name in path.split("."):
        value = getattr(value, name)
    run = changed(run, f"recalibrated.ways.before.corrupted.{path}", value[:cut])
    with pytest.raises(
        InputError, match=f"recalibrated.json does not fit results.json: ways.before.corrupted.{misfit};"
    ):
        load_runs([save(run)])


def test_recalibrated_corruptions_that_do_not_fit_are_named(make_evaluated: MakeEvaluated, save: Save) -> None:
    run = make_evaluated(members=1, shifted=True, more=True)
    assert run.recalibrated is not None
    corrupted = run.recalibrated.ways["by entropy"].corrupted
    assert corrupted is not None
    path, fog = "recalibrated.ways.by entropy.corrupted.corruptions", corrupted.corruptions["fog"]
    fewer = {name: figures for name, figures in corrupted.corruptions.items() if name != "fog"}
    for number, (names, misfit) in enumerate(((fewer, "has no fog"), ({**fewer, "fog": fog, "hail": fog}, "has hail"))):
        with pytest.raises(InputError, match=f"ways.by entropy.corrupted.corruptions {misfit}, unlike the run;"):
            load_runs([save(changed(run, path, names), f"run {number}")])


def test_recalibrated_cells_of_a_run_without_any_are_named(make_evaluated: MakeEvaluated, save: Save) -> None:
    run, other = (make_evaluated(members=1, shifted=shifted, more=True) for shifted in (False, True))
    assert other.recalibrated is not None
    mixed = changed(run, "recalibrated.ways", other.recalibrated.ways)
    with pytest.raises(InputError, match=r"ways.before.corrupted.severities has 5 values, and the run has 0;"):
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
