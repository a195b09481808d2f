import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.experiments.paper import PAPER
from counterpoint.report import to_csv, to_json, to_markdown
from counterpoint.report.run import ReportedRun
from counterpoint.report.severities import severities
from counterpoint.report.tables import METRICS

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


@pytest.fixture
def everything(make_results: MakeResults) -> dict[str, Any]:
    return make_results("cifar10/single", members=2, shifted=True, more=True)


def test_csv_has_the_honest_estimates(everything: dict[str, Any]) -> None:
    rows = csv_rows([everything])
    clean, member = rows[0], rows[1]
    for row, estimates in (
        (clean, everything["clean"]["honest"]["ensemble"]),
        (member, everything["clean"]["honest"]["members"][0]),
    ):
        for key, parts in estimates.items():
            assert {part: float(row[f"{key}_{part}"]) for part in parts} == parts
    pooled = next(row for row in rows if (row["aggregate"], row["model"]) == ("pooled", "ensemble"))
    figures = everything["corrupted"]["aggregates"]["ensemble"]["pooled"]
    assert float(pooled["ece_mass15_floor"]) == figures["ece_mass15_floor"]
    assert float(pooled["ece_mass15_excess"]) == figures["ece_mass15"] - figures["ece_mass15_floor"]
    assert pooled["ece_mass15_debiased"] == pooled["ece_mass15_low"] == ""


def test_csv_has_what_temperatures_do(everything: dict[str, Any]) -> None:
    rows = [row for row in csv_rows([everything]) if row["temperature"]]
    assert len(rows) == 3 * 3 * (1 + 3)
    places = {(row["temperature"], row["aggregate"], row["model"]): row for row in rows}
    for kind, scaled in everything["recalibrated"]["ways"].items():
        for row, figures in (
            (places[kind, "", "ensemble"], scaled["clean"]["ensemble"]),
            (places[kind, "", "member 2"], scaled["clean"]["members"][1]),
            (places[kind, "by-cell", "ensemble"], scaled["corrupted"]["ensemble"]["by-cell"]),
            (places[kind, "pooled", "member 1"], scaled["corrupted"]["members"][0]["pooled"]),
        ):
            assert {key: float(row[key]) for key in figures} == figures


def test_csv_has_differences_apart_from_figures(everything: dict[str, Any]) -> None:
    rows = [row for row in csv_rows([everything]) if row["against"]]
    assert [(row["aggregate"], row["severity"]) for row in rows] == [
        ("", ""),
        ("by-cell", ""),
        *(("by-cell", str(severity)) for severity in range(1, 6)),
        ("by-corruption", ""),
    ]
    (other,) = everything["against"]
    assert {row["against"] for row in rows} == {"digits/single, seed 7"}
    clean = other["clean"]
    assert float(rows[0]["ece_width15_debiased"]) == clean["ece_width15_debiased"]["difference"]
    assert float(rows[0]["ece_width15_high"]) == clean["ece_width15_debiased"]["high"]
    assert rows[0]["ece_width15"] == ""
    worst = other["corrupted"]["severities"][4]["nll"]
    assert [float(rows[-2][key]) for key in ("nll", "nll_low", "nll_high")] == list(worst.values())
    shifted = other["corrupted"]["by_corruption"]["ece_mass15_debiased"]
    columns = ("ece_mass15_debiased", "ece_mass15_low", "ece_mass15_high")
    assert [float(rows[-1][key]) for key in columns] == list(shifted.values())
    assert rows[-1]["nll"] == ""


def test_csv_has_the_images_from_outside(everything: dict[str, Any]) -> None:
    rows = [row for row in csv_rows([everything]) if row["ood_auroc"]]
    auroc = everything["ood"]["auroc"]
    assert [(row["dataset"], row["model"]) for row in rows] == [
        ("letters", name) for name in ("ensemble", "member 1", "member 2")
    ]
    assert [float(row["ood_auroc"]) for row in rows] == [auroc["ensemble"], *auroc["members"]]


def test_json_holds_all_that_belongs_to_the_run(everything: dict[str, Any]) -> None:
    (run,) = json.loads(to_json([everything]))["runs"]
    for key in ("ood", "collapse", "health", "recalibrated", "against"):
        assert run[key] == everything[key]
    assert run["risk_coverage"]["clean"] == everything["clean"]["risk_coverage"]
    assert run["risk_coverage"]["severities"] == everything["corrupted"]["risk_coverage"]
    assert run["paper"]["clean"]["error"] == PAPER["cifar10/single"].clean.error
    assert run["paper"]["same_configuration"] is False


def test_json_of_a_run_without_them(results: list[dict[str, Any]]) -> None:
    one = json.loads(to_json(results))["runs"][1]
    assert [one[key] for key in ("ood", "collapse", "health", "recalibrated", "against", "paper")] == 6 * [None]
    assert one["risk_coverage"]["severities"] is None


def test_json_holds_bins_and_provenance(results: list[dict[str, Any]]) -> None:
    many, one = json.loads(to_json(results))["runs"]
    points = severities(ReportedRun("many", results[0]))
    assert many["reliability"]["clean"] == results[0]["clean"]["reliability"]
    assert many["reliability"]["severities"] == {str(point.number): list(point.bins) for point in points}
    assert one["reliability"]["severities"] == {}
    assert many["commands"] == [results[0]["run"]["command"], results[0]["evaluation"]["command"]]
    assert "frost from a made texture" in many["facts"]["Corrupted set"]


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
    assert set(csv_rows(plain)[0]) >= {metric.key for metric in METRICS}
