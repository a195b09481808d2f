import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

import pytest

from counterpoint.errors import InputError
from counterpoint.experiments.paper import PAPER
from counterpoint.records.codec import encode
from counterpoint.records.compared import Difference
from counterpoint.records.figures import Figures
from counterpoint.records.files import Evaluated
from counterpoint.records.results import Shifted
from counterpoint.report import to_csv, to_json, to_markdown
from counterpoint.report.metrics import METRICS
from counterpoint.report.run import ReportedRun
from counterpoint.report.severities import severities
from counterpoint.report.suites import suites_of
from tests.report.made import EXTRA, MakeEvaluated

Export = Callable[[Sequence[Evaluated]], str]
ALL = [to_csv, to_json, to_markdown]


@pytest.fixture
def two_runs(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    return [make_evaluated("many", members=2, shifted=True), make_evaluated("one", members=1)]


@pytest.fixture
def everything(make_evaluated: MakeEvaluated) -> Evaluated:
    return make_evaluated("cifar10/single", members=2, shifted=True, more=True)


def csv_rows(runs: Sequence[Evaluated]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(runs))))


def the_paper_s(run: Evaluated) -> Shifted:
    assert run.results.corrupted is not None
    return run.results.corrupted


def holds(row: dict[str, str], figures: Figures) -> bool:
    known = {key: value for key, value in asdict(figures).items() if value is not None}
    return {key: float(row[key]) for key in known} == known


def test_csv_has_a_line_for_each_model_on_each_set(two_runs: list[Evaluated]) -> None:
    rows = csv_rows(two_runs)
    assert len(rows) == 3 * (1 + 3 + 75) + 1
    places = [(row["run"], row["aggregate"], row["corruption"], row["severity"], row["model"]) for row in rows]
    assert len(set(places)) == len(places)
    assert places[-1] == ("one", "", "", "", "network")
    assert {(row["dataset"], row["part"]) for row in rows} == {("digits", "test"), ("digits-C", "test")}


def test_csv_has_every_suite(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=1, shifted=True, extra=True)
    rows = [row for row in csv_rows([run]) if row["dataset"] == f"digits-{EXTRA}"]
    shifted = run.results.shifts[EXTRA]
    assert len(rows) == 3 + 20
    assert {(row["part"], row["images"]) for row in rows} == {("validation", "40")}
    assert [row["aggregate"] for row in rows[:3]] == ["by-corruption", "by-cell", "pooled"]
    places = [(row["corruption"], row["severity"]) for row in rows[3:]]
    assert places == [(name, str(severity)) for name in shifted.cells for severity in range(1, 6)]
    assert holds(rows[1], shifted.aggregates.ensemble["by-cell"])
    assert all(holds(row, cell.ensemble) for row, cell in zip(rows[3:], shifted.all_cells(), strict=True))
    assert len(csv_rows([run])) == 1 + 3 + 75 + 3 + 20


def test_csv_keeps_every_digit(two_runs: list[Evaluated]) -> None:
    many = two_runs[0].results
    rows = {(row["aggregate"], row["corruption"], row["severity"], row["model"]): row for row in csv_rows(two_runs[:1])}
    corrupted = the_paper_s(two_runs[0])
    cell = corrupted.cells["frost"][3]
    assert holds(rows["", "", "", "ensemble"], many.clean.ensemble)
    assert holds(rows["", "", "", "member 2"], many.clean.members[1])
    assert holds(rows["pooled", "", "", "ensemble"], corrupted.aggregates.ensemble["pooled"])
    assert holds(rows["by-cell", "", "", "member 1"], corrupted.aggregates.members[0]["by-cell"])
    assert holds(rows["", "frost", "4", "ensemble"], cell.ensemble)
    assert holds(rows["", "frost", "4", "member 1"], cell.members[0])
    assert float(rows["", "frost", "4", "ensemble"]["disagreement"]) == cell.disagreement
    assert rows["", "frost", "4", "member 1"]["disagreement"] == ""
    assert json.loads(rows["", "frost", "4", "ensemble"]["source"]) == encode(corrupted.source)
    assert rows["", "", "", "ensemble"]["images"] == "120"


def test_json_holds_the_lines_of_the_csv(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("many", members=2, shifted=True, extra=True), make_evaluated("one", members=1)]
    written = json.loads(to_json(runs))
    names = ("run", "experiment", "seed")
    records = [{key: run[key] for key in names} | record for run in written["runs"] for record in run["figures"]]
    as_text = [{key: "" if value is None else str(value) for key, value in record.items()} for record in records]
    assert as_text == csv_rows(runs)


def test_csv_has_the_honest_estimates(everything: Evaluated) -> None:
    rows = csv_rows([everything])
    honest = everything.results.clean.honest
    assert honest is not None
    for row, estimates in ((rows[0], honest.ensemble), (rows[1], honest.members[0])):
        for key, estimate in estimates.items():
            parts = asdict(estimate)
            assert {part: float(row[f"{key}_{part}"]) for part in parts} == parts
    pooled = next(row for row in rows if (row["aggregate"], row["model"]) == ("pooled", "ensemble"))
    figures = the_paper_s(everything).aggregates.ensemble["pooled"]
    assert figures.ece_mass15_floor is not None
    assert float(pooled["ece_mass15_floor"]) == figures.ece_mass15_floor
    assert float(pooled["ece_mass15_excess"]) == figures.ece_mass15 - figures.ece_mass15_floor
    assert pooled["ece_mass15_debiased"] == pooled["ece_mass15_low"] == ""


def test_csv_has_what_recalibrations_do(everything: Evaluated) -> None:
    rows = [row for row in csv_rows([everything]) if row["recalibration"] and not row["threshold"]]
    assert len(rows) == 9 * 3 * (1 + 3)
    places = {(row["recalibration"], row["aggregate"], row["model"]): row for row in rows}
    assert everything.recalibrated is not None
    for name, scaled in everything.recalibrated.ways.items():
        assert scaled.corrupted is not None
        assert holds(places[name, "", "ensemble"], scaled.clean.ensemble)
        assert holds(places[name, "", "member 2"], scaled.clean.members[1])
        assert holds(places[name, "by-cell", "ensemble"], scaled.corrupted.ensemble["by-cell"])
        assert holds(places[name, "pooled", "member 1"], scaled.corrupted.members[0]["pooled"])


def ends(row: dict[str, str], value: str, figure: str) -> Difference:
    return Difference(*(float(row[key]) for key in (value, f"{figure}_low", f"{figure}_high")))


def test_csv_has_differences_apart_from_figures(everything: Evaluated) -> None:
    rows = [row for row in csv_rows([everything]) if row["against"]]
    assert [(row["aggregate"], row["severity"]) for row in rows] == [
        ("", ""),
        ("by-cell", ""),
        *(("by-cell", str(severity)) for severity in range(1, 6)),
        ("by-corruption", ""),
    ]
    assert everything.compared is not None
    (other,) = everything.compared.against
    assert other.clean is not None
    assert other.corrupted is not None
    assert {row["against"] for row in rows} == {"digits/single, seed 7"}
    assert ends(rows[0], "ece_width15_debiased", "ece_width15") == other.clean.ece_width15_debiased
    assert rows[0]["ece_width15"] == ""
    assert ends(rows[-2], "nll", "nll") == other.corrupted.severities[4].nll
    assert ends(rows[-1], "ece_mass15_debiased", "ece_mass15") == other.corrupted.by_corruption.ece_mass15_debiased
    assert rows[-1]["nll"] == ""


def test_csv_has_what_a_threshold_keeps(everything: Evaluated) -> None:
    rows = [row for row in csv_rows([everything]) if row["threshold"] and row["part"] != "outside"]
    found = everything.thresholded
    assert found is not None
    assert found.test is not None
    chosen = found.promise.chosen
    for key, value in {
        "threshold": str(chosen.threshold),
        "promised_error": "0.2",
        "recalibration": "none",
        "model": "ensemble",
    }.items():
        assert {row[key] for row in rows} == {value}
    assert (rows[0]["part"], rows[0]["images"], rows[0]["promise"]) == ("validation", "120", "made")
    assert (float(rows[0]["error"]), float(rows[0]["coverage"])) == (chosen.wrong / chosen.kept, found.promise.coverage)
    cells = [(name, severity, cell) for name, of in found.cells.items() for severity, cell in enumerate(of, start=1)]
    checked = [("", "", found.test), *((name, str(severity), cell) for name, severity, cell in cells)]
    assert [(row["corruption"], row["severity"]) for row in rows[1:]] == [(name, place) for name, place, _ in checked]
    for row, (_, _, one) in zip(rows[1:], checked, strict=True):
        assert (row["part"], row["images"], row["promise"]) == ("test", str(one.images), one.verdict)
        assert row["error"] == ("" if one.error is None else str(one.error))
        assert float(row["coverage"]) == one.coverage
    assert [row["dataset"] for row in rows] == ["digits", "digits", *(75 * ["digits-C"])]


def test_csv_has_the_images_from_outside(everything: Evaluated) -> None:
    rows = [row for row in csv_rows([everything]) if row["ood_auroc"]]
    letters = everything.results.outside["letters"]
    assert letters.signals is not None
    assert [(row["dataset"], row["part"], row["images"]) for row in rows] == 5 * [("letters", "outside", "60")]
    assert [(row["model"], row["scored_by"]) for row in rows] == [
        ("ensemble", "confidence"),
        ("ensemble", "entropy_of_mean"),
        ("ensemble", "mutual_information"),
        ("member 1", "confidence"),
        ("member 2", "confidence"),
    ]
    found = [letters.ensemble, *letters.signals.values(), *letters.members]
    for row, one in zip(rows, found, strict=True):
        assert (float(row["ood_auroc"]), float(row["ood_fpr95"])) == (one.auroc, one.fpr95)
        assert row["ood_auroc_low"] == ("" if one.auroc_low is None else str(one.auroc_low))
        assert row["ood_auroc_high"] == ("" if one.auroc_high is None else str(one.auroc_high))
    assert [row["mean_confidence"] for row in rows[1:3]] == ["", ""]
    assert float(rows[0]["mean_confidence"]) == letters.ensemble.mean_confidence
    (kept,) = [row for row in csv_rows([everything]) if row["part"] == "outside" and row["threshold"]]
    assert everything.thresholded is not None
    assert float(kept["coverage"]) == everything.thresholded.outside["letters"].share
    assert (kept["promise"], kept["error"]) == ("", "")


def test_json_holds_all_that_belongs_to_the_run(everything: Evaluated) -> None:
    (run,) = json.loads(to_json([everything]))["runs"]
    results = everything.results
    for key in ("outside", "collapse", "health"):
        assert run[key] == encode(getattr(results, key))
    assert run["recalibrated"] == encode(everything.recalibrated)
    assert run["threshold"] == encode(everything.thresholded)
    assert everything.compared is not None
    assert run["against"] == encode(everything.compared.against)
    assert run["risk_coverage"]["clean"] == encode(results.clean.risk_coverage)
    assert run["risk_coverage"]["severities"] == encode(the_paper_s(everything).risk_coverage)
    assert run["paper"]["clean"]["error"] == PAPER["cifar10/single"].clean.error
    assert run["paper"]["same_configuration"] is False


def test_json_of_a_run_without_them(two_runs: list[Evaluated]) -> None:
    one = json.loads(to_json(two_runs))["runs"][1]
    absent = ("collapse", "health", "recalibrated", "threshold", "against", "paper")
    assert [one[key] for key in absent] == len(absent) * [None]
    assert one["outside"] == {}
    assert one["risk_coverage"]["severities"] is None
    assert one["risk_coverage"]["shifts"] == one["reliability"]["shifts"] == {}


def test_json_holds_bins_and_provenance(two_runs: list[Evaluated]) -> None:
    many, one = json.loads(to_json(two_runs))["runs"]
    (shifted,) = suites_of(ReportedRun("many", two_runs[0]))
    results = two_runs[0].results
    assert many["reliability"]["clean"] == encode(results.clean.reliability)
    assert many["reliability"]["severities"] == {str(point.number): encode(point.bins) for point in severities(shifted)}
    assert one["reliability"]["severities"] == {}
    assert many["commands"] == [results.trained.command, results.evaluation.command]
    assert "frost from a made texture" in many["facts"]["Corrupted set"]


def test_json_holds_the_other_suites_by_name(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=1, extra=True)
    (run,) = json.loads(to_json([evaluated]))["runs"]
    assert run["reliability"]["severities"] == {}
    assert list(run["reliability"]["shifts"][EXTRA]) == ["1", "2", "3", "4", "5"]
    assert run["risk_coverage"]["shifts"] == {EXTRA: encode(evaluated.results.shifts[EXTRA].risk_coverage)}
    assert run["facts"]["Corrupted set"] == "not evaluated"
    assert run["facts"][f"Corrupted set, {EXTRA}"].startswith(f"digits-{EXTRA}, ")


@pytest.mark.parametrize("export", ALL)
def test_the_same_results_give_the_same_text(two_runs: list[Evaluated], export: Export) -> None:
    assert export(two_runs) == export(two_runs)
    assert export(two_runs).endswith("\n")


@pytest.mark.parametrize("export", ALL)
def test_no_runs(export: Export) -> None:
    with pytest.raises(InputError, match="at least one run"):
        export([])


def test_without_a_corrupted_set(make_evaluated: MakeEvaluated) -> None:
    plain = [make_evaluated(members=1)]
    assert len(csv_rows(plain)) == 1
    assert set(csv_rows(plain)[0]) >= {metric.key for metric in METRICS}
