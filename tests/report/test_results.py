import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.report import load_results

MakeResults = Callable[..., dict[str, Any]]


def test_a_run_folder_and_its_file_give_the_same(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results()
    file = tmp_path / "results.json"
    file.write_text(json.dumps(results))
    assert load_results(tmp_path) == results
    assert load_results(str(file)) == results


def test_keys_of_later_versions_are_left_alone(tmp_path: Path, make_results: MakeResults) -> None:
    results = {**make_results(), "later": {}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    assert load_results(tmp_path) == results


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere does not exist; give a run folder"):
        load_results(tmp_path / "nowhere")


def test_a_run_without_results_asks_for_evaluate(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    with pytest.raises(InputError, match=rf"no results.json; `counterpoint evaluate {tmp_path}`"):
        load_results(tmp_path)


def test_a_folder_of_runs_names_them(tmp_path: Path) -> None:
    for name in ("b", "a", "pictures"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "run.json").touch()
    with pytest.raises(InputError, match=f"is not a run folder; give the runs in it: {tmp_path}/a {tmp_path}/b$"):
        load_results(tmp_path)


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "smoke-0.json").touch()
    with pytest.raises(InputError, match=r"is not a run folder \(there is no run.json\); give the folder"):
        load_results(tmp_path)


@pytest.mark.parametrize("text", ["# Read me", '{"schema": 1}'])
def test_a_file_that_evaluate_did_not_make_is_not_made_again(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").touch()
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(InputError, match=r"README.md is not .*; give a run folder or its results.json$"):
        load_results(tmp_path / "README.md")


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_truncated_json(tmp_path: Path, make_results: MakeResults, keep: float) -> None:
    text = json.dumps(make_results())
    (tmp_path / "run.json").touch()
    (tmp_path / "results.json").write_text(text[: int(keep * len(text))])
    with pytest.raises(InputError, match=r"results.json is not whole JSON .* `counterpoint evaluate"):
        load_results(tmp_path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not whole JSON"):
        load_results(tmp_path)


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "results.json").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load_results(tmp_path)


@pytest.mark.parametrize("foreign", [[], 3, None, {}, {"name": "x"}, {"schema": "http://json-schema.org"}])
def test_foreign_json(tmp_path: Path, foreign: Any) -> None:
    (tmp_path / "results.json").write_text(json.dumps(foreign))
    with pytest.raises(InputError, match="not a results file of counterpoint"):
        load_results(tmp_path)


def test_a_newer_schema_asks_for_an_upgrade(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"schema": 2}')
    with pytest.raises(InputError, match="schema 2 and this counterpoint reads up to 1; upgrade"):
        load_results(tmp_path)


def test_a_result_kept_by_reproduce_is_sent_to_the_run(tmp_path: Path) -> None:
    path = tmp_path / "paper-0.json"
    path.write_text('{"schema": 1, "schedule": "paper", "hash": "0123"}')
    with pytest.raises(InputError, match=r"as `counterpoint reproduce` keeps it.* give the run's folder"):
        load_results(path)


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything that must be there; of a list, its last item."""
    if path:
        yield path
    if isinstance(value, dict) and path not in {("config",), ("run", "versions")}:
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        yield from paths(value[-1], (*path, len(value) - 1))


def test_each_part_of_the_wrong_kind_is_named(tmp_path: Path, make_results: MakeResults) -> None:
    """An empty list is wrong in every place: the report's own lists hold at least one item."""
    for path in paths(make_results()):
        if path == ("schema",):
            continue
        results: Any = make_results()
        parent = results
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = []
        (tmp_path / "results.json").write_text(json.dumps(results))
        where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")
        with pytest.raises(InputError, match=f": {re.escape(where)} is missing or of the wrong kind"):
            load_results(tmp_path)


def test_a_missing_part_is_named(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results()
    del results["clean"]["members"][2]["nll"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match=r"clean.members\[2\].nll is missing"):
        load_results(tmp_path)


@pytest.mark.parametrize("nonsense", ["NaN", "Infinity"])
def test_numbers_must_be_finite(tmp_path: Path, make_results: MakeResults, nonsense: str) -> None:
    results = make_results()
    results["clean"]["ensemble"]["error"] = float(nonsense)
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(InputError, match=f"it holds {nonsense}"):
        load_results(tmp_path)


def write(folder: Path, results: dict[str, Any]) -> Path:
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_a_corrupted_section_is_read_too(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    assert load_results(write(tmp_path, results)) == results


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("images", "corrupted.images"),
        ("source", "corrupted.source"),
        ("source kind", "corrupted.source.kind"),
        ("source seed", "corrupted.source.seed"),
        ("source frost", "corrupted.source.frost"),
        ("aggregates ensemble by-cell", "corrupted.aggregates.ensemble.by-cell"),
        ("aggregates ensemble pooled nll", "corrupted.aggregates.ensemble.pooled.nll"),
        ("aggregates members", "corrupted.aggregates.members"),
        ("cells", "corrupted.cells"),
        ("cells frost", "corrupted.cells.frost"),
    ],
)
def test_a_missing_part_of_the_corrupted_section_is_named(
    tmp_path: Path, make_results: MakeResults, path: str, where: str
) -> None:
    results = make_results(members=2, shifted=True)
    *parents, last = path.split()
    part = results["corrupted"]
    for key in parents:
        part = part[key]
    del part[last]
    with pytest.raises(InputError, match=f": {re.escape(where)} is missing or of the wrong kind"):
        load_results(write(tmp_path, results))


def test_a_half_finished_grid_is_not_taken_for_a_whole_one(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    results["corrupted"]["cells"]["snow"].pop()
    with pytest.raises(InputError, match=r"corrupted.cells.snow is missing"):
        load_results(write(tmp_path, results))


def test_every_cell_has_all_members(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    results["corrupted"]["cells"]["fog"][2]["members"].pop()
    with pytest.raises(InputError, match=r"corrupted.cells.fog\[2\].members is missing"):
        load_results(write(tmp_path, results))
    results = make_results(members=2, shifted=True)
    results["corrupted"]["aggregates"]["members"].pop()
    with pytest.raises(InputError, match=r"corrupted.aggregates.members is missing"):
        load_results(write(tmp_path, results))


def test_a_missing_figure_of_a_cell_is_named(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    del results["corrupted"]["cells"]["fog"][2]["reliability"]["width15"][0]["count"]
    with pytest.raises(InputError, match=re.escape("corrupted.cells.fog[2].reliability.width15[0].count is missing")):
        load_results(write(tmp_path, results))


def test_an_unknown_source(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=1, shifted=True)
    results["corrupted"]["source"]["kind"] = "oficial"
    with pytest.raises(InputError, match=r"source of the corrupted set .* 'oficial'; did you mean 'official'"):
        load_results(write(tmp_path, results))


def test_the_official_source_needs_nothing_else(tmp_path: Path, make_results: MakeResults) -> None:
    results = make_results(members=1, shifted=True)
    results["corrupted"]["source"] = {"kind": "official"}
    assert load_results(write(tmp_path, results)) == results


def optional_parts(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each optional part by its name, with the dict that holds it."""
    return {
        "clean.honest": results["clean"],
        "clean.risk_coverage": results["clean"],
        "clean.pairwise_kl": results["clean"],
        "corrupted.risk_coverage": results["corrupted"],
        "ood": results,
        "collapse": results,
        "collapse.r": results["collapse"],
        "health": results,
        "health.epochs[0].spread_r": results["health"]["epochs"][0],
        "recalibrated": results,
        "against": results,
        "against[0].clean": results["against"][0],
        "against[0].corrupted": results["against"][0],
        "against[0].corrupted.by_corruption": results["against"][0]["corrupted"],
    }


def test_optional_parts_may_be_missing_or_null(tmp_path: Path, make_results: MakeResults) -> None:
    for where in optional_parts(make_results(members=2, shifted=True, more=True)):
        results = make_results(members=2, shifted=True, more=True)
        key = where.rsplit(".", 1)[-1]
        holder = optional_parts(results)[where]
        holder[key] = None
        assert load_results(write(tmp_path, results)) == results
        del holder[key]
        assert load_results(write(tmp_path, results)) == results


def test_optional_parts_of_the_wrong_kind_are_named(tmp_path: Path, make_results: MakeResults) -> None:
    for where in optional_parts(make_results(members=2, shifted=True, more=True)):
        results = make_results(members=2, shifted=True, more=True)
        optional_parts(results)[where][where.rsplit(".", 1)[-1]] = "nonsense"
        with pytest.raises(InputError, match=re.escape(f": {where} is missing or of the wrong kind")):
            load_results(write(tmp_path, results))


@pytest.mark.parametrize(
    ("where", "holder"),
    [
        ("clean.honest.members", lambda results: results["clean"]["honest"]["members"]),
        ("ood.auroc.members", lambda results: results["ood"]["auroc"]["members"]),
        ("collapse.severities", lambda results: results["collapse"]["severities"]),
        ("corrupted.risk_coverage", lambda results: results["corrupted"]["risk_coverage"]),
        (
            "recalibrated.ways.after.clean.members",
            lambda results: results["recalibrated"]["ways"]["after"]["clean"]["members"],
        ),
        ("against[0].corrupted.severities", lambda results: results["against"][0]["corrupted"]["severities"]),
    ],
)
def test_every_member_and_severity_has_its_entry(
    tmp_path: Path, make_results: MakeResults, where: str, holder: Callable[[dict[str, Any]], list[Any]]
) -> None:
    results = make_results(members=2, shifted=True, more=True)
    holder(results).pop()
    with pytest.raises(InputError, match=re.escape(f": {where} is missing or of the wrong kind")):
        load_results(write(tmp_path, results))


def test_made_up_results_have_the_keys_of_real_ones(real_results: dict[str, Any], make_results: MakeResults) -> None:
    made = make_results(shifted=True, more=True)
    for part in ("clean", "corrupted", "collapse", "health", "recalibrated"):
        assert set(made[part]) == set(real_results[part])
    assert set(made["health"]["epochs"][0]) == set(real_results["health"]["epochs"][0])
    assert set(made["corrupted"]["aggregates"]) == set(real_results["corrupted"]["aggregates"])
    assert set(made["against"][0]) == set(real_results["against"][0])
    assert set(made["against"][0]["clean"]) == set(real_results["against"][0]["clean"])
    assert set(made["against"][0]["corrupted"]) == set(real_results["against"][0]["corrupted"])
    for way, scaled in real_results["recalibrated"]["ways"].items():
        assert set(made["recalibrated"]["ways"][way]) == set(scaled)
    cell, real_cell = made["corrupted"]["cells"]["fog"][0], real_results["corrupted"]["cells"]["fog"][0]
    assert set(cell) == set(real_cell)
    assert set(cell["ensemble"]) == set(real_cell["ensemble"])
    assert set(made["corrupted"]["aggregates"]["ensemble"]["pooled"]) == set(
        real_results["corrupted"]["aggregates"]["ensemble"]["pooled"]
    )
