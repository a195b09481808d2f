import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.report.export import to_csv, to_json, to_markdown
from counterpoint.report.run import CORRUPTIONS, Run, label_runs
from counterpoint.report.shift import severities
from counterpoint.report.tables import METRICS, metrics_tables, shift_tables

MakeResults = Callable[..., dict[str, Any]]
Export = Callable[[list[dict[str, Any]]], str]
ALL = [to_csv, to_json, to_markdown]


@pytest.fixture
def results(make_results: MakeResults) -> list[dict[str, Any]]:
    return [make_results("many", members=2, shifted=True), make_results("one", members=1)]


def csv_rows(results: list[dict[str, Any]]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(results))))


def test_csv_has_a_line_for_each_model_on_each_set(results: list[dict[str, Any]]) -> None:
    rows = csv_rows(results)
    assert len(rows) == 3 * (1 + 3 + 75) + 1
    places = [(row["run"], row["aggregate"], row["corruption"], row["severity"], row["model"]) for row in rows]
    assert len(set(places)) == len(places)
    assert places[-1] == ("one", "", "", "", "network")
    assert {row["dataset"] for row in rows} == {"digits", "digits-C"}


def test_csv_keeps_every_digit(results: list[dict[str, Any]]) -> None:
    many = results[0]
    rows = {(row["aggregate"], row["corruption"], row["severity"], row["model"]): row for row in csv_rows(results[:1])}
    cell = many["corrupted"]["cells"]["frost"][3]
    pairs = [
        (rows["", "", "", "ensemble"], many["clean"]["ensemble"]),
        (rows["", "", "", "member 2"], many["clean"]["members"][1]),
        (rows["pooled", "", "", "ensemble"], many["corrupted"]["aggregates"]["ensemble"]["pooled"]),
        (rows["by-cell", "", "", "member 1"], many["corrupted"]["aggregates"]["members"][0]["by-cell"]),
        (rows["", "frost", "4", "ensemble"], cell["ensemble"]),
        (rows["", "frost", "4", "member 1"], cell["members"][0]),
    ]
    for row, scores in pairs:
        assert {key: float(row[key]) for key in scores} == scores
    assert float(rows["", "frost", "4", "ensemble"]["disagreement"]) == cell["disagreement"]
    assert rows["", "frost", "4", "member 1"]["disagreement"] == ""
    assert json.loads(rows["", "frost", "4", "ensemble"]["source"]) == many["corrupted"]["source"]
    assert rows["", "", "", "ensemble"]["images"] == "120"


def test_json_holds_the_lines_of_the_csv(results: list[dict[str, Any]]) -> None:
    written = json.loads(to_json(results))
    names = ("run", "experiment", "seed")
    records = [{key: run[key] for key in names} | record for run in written["runs"] for record in run["figures"]]
    as_text = [{key: "" if value is None else str(value) for key, value in record.items()} for record in records]
    assert as_text == csv_rows(results)


def test_json_holds_bins_and_provenance(results: list[dict[str, Any]]) -> None:
    many, one = json.loads(to_json(results))["runs"]
    points = severities(Run("many", results[0]))
    assert many["reliability"]["clean"] == results[0]["clean"]["reliability"]
    assert many["reliability"]["severities"] == {str(point.number): list(point.bins) for point in points}
    assert one["reliability"]["severities"] == {}
    assert many["commands"] == [results[0]["run"]["command"], results[0]["evaluation"]["command"]]
    assert "frost from a made texture" in many["facts"]["Corrupted set"]


def test_markdown_holds_the_tables_of_the_page(results: list[dict[str, Any]]) -> None:
    text = to_markdown(results)
    runs = label_runs(results)
    tables = metrics_tables(runs) + [table for of_way in shift_tables(runs[:1]).values() for table in of_way]
    for table in tables:
        for row in table.rows:
            cells = [f"**{cell.text}**" if cell.best else cell.text for cell in row.cells]
            assert f"| {row.label} | {' | '.join(cells)} |" in text
    assert len(re.findall(r"^\| ---", text, re.MULTILINE)) == len(tables) + 1 + 7
    assert all(f"| {name} |" in text for name in CORRUPTIONS.values())
    assert "    counterpoint evaluate runs/many" in text


def test_every_line_of_a_markdown_table_has_the_same_number_of_cells(results: list[dict[str, Any]]) -> None:
    for block in to_markdown(results).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count(" | ") for line in lines}) <= 1


def test_names_are_only_text_in_markdown(make_results: MakeResults) -> None:
    text = to_markdown([make_results("a|b <script> *c*\n# d", members=1)])
    assert text.startswith(r"# a\|b \<script\> \*c\* \# d" + "\n")
    outside_code = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any("<script>" in line or line == "# d" for line in outside_code)


@pytest.mark.parametrize("export", ALL)
def test_the_same_results_give_the_same_text(results: list[dict[str, Any]], export: Export) -> None:
    assert export(results) == export(results)
    assert export(results).endswith("\n")


@pytest.mark.parametrize("export", ALL)
def test_no_runs(export: Export) -> None:
    with pytest.raises(InputError, match="at least one run"):
        export([])


def test_without_a_corrupted_set(make_results: MakeResults) -> None:
    plain = [make_results(members=1)]
    assert len(csv_rows(plain)) == 1
    assert "Corrupted set: not evaluated" in to_markdown(plain)
    assert set(csv_rows(plain)[0]) >= {metric.key for metric in METRICS}
