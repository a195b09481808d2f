from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.recalibration import recalibrations

MakeResults = Callable[..., dict[str, Any]]
SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture
def run(make_results: MakeResults) -> ReportedRun:
    return ReportedRun("mine", make_results(members=2, shifted=True, more=True))


def test_every_kind_with_its_temperature(run: ReportedRun) -> None:
    (found,) = recalibrations([run])
    scaled = run.results["recalibrated"]["ways"]
    temperatures = ", ".join(f"{value:.2f}" for value in scaled["per-member"]["temperature"])
    assert [row.label for row in found.chart.table.rows] == [
        "no temperature",
        f"before averaging, T{SPACE}={SPACE}{scaled['before']['temperature']:.2f}",
        f"after averaging, T{SPACE}={SPACE}{scaled['after']['temperature']:.2f}",
        f"one per member, T{SPACE}={SPACE}{temperatures}",
    ]


def test_every_figure_is_that_of_its_set(run: ReportedRun) -> None:
    (found,) = recalibrations([run])
    scaled = run.results["recalibrated"]["ways"].values()
    column = [column.label for column in found.chart.table.columns].index("NLL") - 1
    clean = [run.clean["ensemble"]["nll"], *(summary["clean"]["ensemble"]["nll"] for summary in scaled)]
    assert [row.entries[column].text for row in found.chart.table.rows] == [f"{value:.3f}" for value in clean]
    assert [table.caption.rsplit(", ", 1)[1] for table in found.corrupted] == ["by-corruption", "by-cell", "pooled"]
    for table, aggregate in zip(found.corrupted, ("by-corruption", "by-cell", "pooled"), strict=True):
        column = [column.label for column in table.columns].index("ECE") - 1
        shifted = [
            run.aggregate(aggregate)["ensemble"],
            *(summary["corrupted"]["ensemble"][aggregate] for summary in scaled),
        ]
        assert [row.entries[column].text for row in table.rows] == [
            f"{100 * figures['ece_width15']:.2f}" for figures in shifted
        ]


def test_members_stand_below_their_ensemble(run: ReportedRun) -> None:
    (found,) = recalibrations([run])
    clean, shifted = found.members
    assert [row.kind for row in clean.rows] == 4 * ["run", "member", "member"]
    member = run.results["recalibrated"]["ways"]["after"]["corrupted"]["members"][1]["by-corruption"]
    column = [column.label for column in shifted.columns].index("NLL") - 1
    assert shifted.rows[8].entries[column].text == f"{member['nll']:.3f}"


def test_what_it_was_fitted_on(run: ReportedRun) -> None:
    (found,) = recalibrations([run])
    assert found.words == (
        "Fitted by NLL on 120 validation images of digits (this run), never on test images.",
        "Clean images: cross-fitted on two seeded halves of the validation images.",
        "Corrupted images: the temperature of all 120 validation images.",
    )


def test_one_network_has_one_temperature(make_results: MakeResults) -> None:
    results = make_results(members=1, shifted=True, more=True)
    temperature = results["recalibrated"]["ways"]["before"]["temperature"]
    results["recalibrated"]["ways"]["after"]["temperature"] = temperature + 0.01  # as rounding might make it
    (found,) = recalibrations([ReportedRun("single", results)])
    assert [row.label for row in found.chart.table.rows] == ["no temperature", f"T{SPACE}={SPACE}{temperature:.2f}"]
    assert found.members == ()


def test_without_a_corrupted_set(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True, more=True)
    del results["corrupted"]
    (found,) = recalibrations([ReportedRun("mine", results)])
    assert (found.corrupted, len(found.members), len(found.words)) == ((), 1, 2)
    assert "corrupted" not in found.chart.svg


def test_runs_without_a_temperature(make_results: MakeResults) -> None:
    assert recalibrations([ReportedRun("a", make_results(members=1))]) == ()
