import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.run import AGGREGATES, ReportedRun
from counterpoint.report.sections.recalibration import RunRecalibration, recalibration, temperatures_table
from tests.report.made import MakeEvaluated, changed

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    return make_evaluated(members=2, shifted=True, more=True)


def of_run(evaluated: Evaluated) -> RunRecalibration:
    content = recalibration([ReportedRun("mine", evaluated)])
    assert content is not None
    (found,) = content.runs
    return found


def record_of(evaluated: Evaluated) -> Recalibrated:
    assert evaluated.recalibrated is not None
    return evaluated.recalibrated


def test_every_kind_with_its_temperature(evaluated: Evaluated) -> None:
    ways = record_of(evaluated).ways
    temperatures = ", ".join(f"{value:.2f}" for value in ways["per-member"].temperatures)
    assert len(ways["per-member"].temperatures) == 2
    assert [row.label for row in of_run(evaluated).chart.table.rows] == [
        "no temperature",
        f"before averaging, T{SPACE}={SPACE}{ways['before'].temperatures[0]:.2f}",
        f"after averaging, T{SPACE}={SPACE}{ways['after'].temperatures[0]:.2f}",
        f"one per member, T{SPACE}={SPACE}{temperatures}",
    ]


def test_every_figure_is_that_of_its_set(evaluated: Evaluated) -> None:
    found, ways = of_run(evaluated), record_of(evaluated).ways.values()
    column = [column.label for column in found.chart.table.columns].index("NLL") - 1
    clean = [evaluated.results.clean.ensemble.nll, *(scaled.clean.ensemble.nll for scaled in ways)]
    assert [row.entries[column].text for row in found.chart.table.rows] == [f"{value:.3f}" for value in clean]
    assert [table.caption.rsplit(", ", 1)[1] for table in found.corrupted] == list(AGGREGATES)
    assert evaluated.results.corrupted is not None
    for table, aggregate in zip(found.corrupted, AGGREGATES, strict=True):
        column = [column.label for column in table.columns].index("ECE") - 1
        plain = evaluated.results.corrupted.aggregates.ensemble[aggregate]
        shifted = [plain, *(scaled.corrupted.ensemble[aggregate] for scaled in ways if scaled.corrupted)]
        assert [row.entries[column].text for row in table.rows] == [
            f"{100 * figures.ece_width15:.2f}" for figures in shifted
        ]


def test_members_stand_below_their_ensemble(evaluated: Evaluated) -> None:
    clean, shifted = of_run(evaluated).members
    assert [row.kind for row in clean.rows] == 4 * ["run", "member", "member"]
    after = record_of(evaluated).ways["after"].corrupted
    assert after is not None
    column = [column.label for column in shifted.columns].index("NLL") - 1
    assert shifted.rows[8].entries[column].text == f"{after.members[1]['by-corruption'].nll:.3f}"


def test_what_it_was_fitted_on(evaluated: Evaluated) -> None:
    assert of_run(evaluated).words == (
        "Fitted by NLL on 120 validation images of digits (this run), never on test images.",
        "Clean images: cross-fitted on two seeded halves of the validation images.",
        "Corrupted images: the temperature of all 120 validation images.",
    )


def test_one_network_has_one_temperature(make_evaluated: MakeEvaluated) -> None:
    evaluated = make_evaluated(members=1, shifted=True, more=True)
    (temperature,) = record_of(evaluated).ways["before"].temperatures
    # As rounding might make it.
    found = of_run(changed(evaluated, "recalibrated.ways.after.temperatures", (temperature + 0.01,)))
    assert [row.label for row in found.chart.table.rows] == ["no temperature", f"T{SPACE}={SPACE}{temperature:.2f}"]
    assert found.members == ()


def test_without_a_corrupted_set(make_evaluated: MakeEvaluated) -> None:
    found = of_run(make_evaluated(members=2, more=True))
    assert (found.corrupted, len(found.members), len(found.words)) == ((), 1, 2)
    assert "corrupted" not in found.chart.svg


def test_runs_without_a_temperature(make_evaluated: MakeEvaluated) -> None:
    assert recalibration([ReportedRun("a", make_evaluated(members=1))]) is None


def test_the_headlines_of_a_recalibration(evaluated: Evaluated) -> None:
    record = record_of(evaluated)
    table = temperatures_table(record)
    assert [column.label for column in table.columns] == [
        "Temperature", "T", "NLL", "ECE", "NLL on -C", "ECE on -C"
    ]  # fmt: skip
    assert [row.label for row in table.rows] == ["before averaging", "after averaging", "one per member"]
    for row, scaled in zip(table.rows, record.ways.values(), strict=True):
        assert scaled.corrupted is not None
        clean, shifted = scaled.clean.ensemble, scaled.corrupted.ensemble["by-corruption"]
        assert [entry.text for entry in row.entries] == [
            ", ".join(f"{value:.2f}" for value in scaled.temperatures),
            f"{clean.nll:.3f}",
            f"{100 * clean.ece_width15:.2f}",
            f"{shifted.nll:.3f}",
            f"{100 * shifted.ece_width15:.2f}",
        ]


def test_the_headlines_without_a_corrupted_set(make_evaluated: MakeEvaluated) -> None:
    table = temperatures_table(record_of(make_evaluated(members=1, more=True)))
    assert [column.label for column in table.columns] == ["Temperature", "T", "NLL", "ECE"]
    assert [row.label for row in table.rows] == ["network"], "of one network the three are the same"
    assert "-C" not in table.caption
