from dataclasses import replace
from typing import Any

import pytest

from counterpoint.report.run import ReportedRun, label_runs
from counterpoint.report.sections.headlines import headline_table, headlines, suites_in_words
from counterpoint.report.tables import Table
from tests.report.made import EXTRA, MakeEvaluated, changed, changed_all


def texts(table: Table) -> list[list[str]]:
    return [[row.label, *(entry.text for entry in row.entries)] for row in table.rows]


def test_figures_are_percents_of_the_headline_aggregate(make_evaluated: MakeEvaluated) -> None:
    figures = {
        "clean.ensemble": (0.04, 0.02, 0.01),
        "clean.members.0": (0.08, 0.04, 0.02),
        "corrupted.aggregates.ensemble.by-corruption": (0.2, 0.1, 0.05),
        "corrupted.aggregates.members.0.by-corruption": (0.4, 0.2, 0.1),
    }
    changes = {
        f"results.{path}.{key}": value
        for path, values in figures.items()
        for key, value in zip(("error", "ece_width15", "ece_rms_width15"), values, strict=True)
    }
    changes |= {
        "results.clean.honest.ensemble.ece_width15.floor": 0.005,
        "results.clean.honest.ensemble.ece_width15.excess": 0.015,
        "results.clean.honest.members.0.ece_width15.floor": 0.06,
        "results.clean.honest.members.0.ece_width15.excess": -0.02,
        "results.corrupted.aggregates.ensemble.by-corruption.ece_width15_floor": 0.01,
    }
    run = ReportedRun("mine", changed_all(make_evaluated(members=2, shifted=True), changes))
    table = headline_table(run)
    assert table.caption == "mine on 120 digits test images, and on -C; 15 equal-width bins"
    assert texts(table)[:4] == [
        ["ensemble", "clean", "4.00", "2.00", "0.50", "+1.50", "1.00"],
        ["", "-C", "20.00", "10.00", "1.00", "+9.00", "5.00"],
        ["member 1", "clean", "8.00", "4.00", "6.00", "−2.00", "2.00"],
        ["", "-C", "40.00", "20.00", "–", "–", "10.00"],
    ]
    assert [row[0] for row in texts(table)[4:]] == ["member 2", ""]


def test_a_run_with_its_folder_as_a_name_says_its_settings_once(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("a", members=1, seed=seed) for seed in (0, 1)]
    assert headlines(label_runs(runs)).kinds == ("a (seed 0) is a single network.", "a (seed 1) is a single network.")
    configs = [{f"setting-{letter}": value for letter in "abc"} for value in (1, 2)]
    many = [replace(changed(runs[0], "results.config", configs[n]), folder=f"try-{n + 1}") for n in (0, 1)]
    assert headlines(label_runs(many)).kinds[1] == (
        "a (try-2) is a single network (setting-a 2, setting-b 2, setting-c 2)."
    )


def test_results_from_before_the_floors_have_dashes(make_evaluated: MakeEvaluated) -> None:
    old = changed(make_evaluated(members=1), "results.clean.honest", None)
    ((model, images, _, _, floor, excess, _),) = texts(headline_table(ReportedRun("old", old)))
    assert (model, images, floor, excess) == ("network", "clean", "–", "–")


def test_every_suite_has_its_line(make_evaluated: MakeEvaluated) -> None:
    run = ReportedRun("mine", make_evaluated(members=1, shifted=True, extra=True))
    assert [row[:2] for row in texts(headline_table(run))] == [["network", "clean"], ["", "-C"], ["", EXTRA]]
    assert headline_table(run).caption.startswith(f"mine on 120 digits test images, and on -C and {EXTRA}; ")
    assert suites_in_words(run) == [
        "-C: 15 kinds of corruption, each at 5 severities: 75 cells of 40 test images, "
        "regenerated with CIFAR-C's constants, seed 0 (generator 0.1.0), frost from a made texture.",
        f"{EXTRA}: 4 kinds of corruption, each at 5 severities: 20 cells of 40 validation images, "
        "regenerated with CIFAR-C's constants, seed 0 (generator 0.1.0).",
        f"On -C and {EXTRA} each figure is computed per corruption, over its severities together, and then averaged "
        "over the corruptions.",
    ]


@pytest.mark.parametrize(
    ("members", "config", "kind"),
    [
        (1, {"num_members": None}, "a single network"),
        (1, {"num_members": 1, "ensemble": "deep"}, "a single network"),
        (2, {"num_members": 2}, "an ensemble of 2 members"),  # as before there was a choice
        (2, {"num_members": 2, "ensemble": "batch"}, "an ensemble of 2 members"),
        (2, {"num_members": 2, "ensemble": "deep"}, "an ensemble of 2 separate networks"),
    ],
)
def test_it_says_what_the_members_are(
    make_evaluated: MakeEvaluated, members: int, config: dict[str, Any], kind: str
) -> None:
    run = changed(make_evaluated(members=members), "results.config", config)
    assert headlines([ReportedRun("mine", run)]).kinds == (f"mine is {kind}.",)


def test_a_table_for_each_set_of_images_with_all_runs(make_evaluated: MakeEvaluated) -> None:
    two = label_runs([make_evaluated(name, members=2, shifted=True, extra=True) for name in ("a", "b")])
    tables = headlines(two).tables
    assert [table.caption.partition(":")[0] for table in tables] == ["Clean images", "Corrupted images"]
    (alone,) = label_runs([make_evaluated("c", members=2, extra=True)])
    assert headlines([alone]).tables[1].caption.startswith("Corrupted validation images"), "where there are no others"
    assert all([row.label for row in table.rows] == ["a", "b"] for table in tables)
    assert [column.label for column in tables[0].columns[:4]] == ["Run", "Error", "ECE", "Noise floor"]
    clean = two[0].clean
    assert clean.honest is not None
    assert [entry.text for entry in tables[0].rows[0].entries[:3]] == [
        f"{100 * value:.2f}"
        for value in (clean.ensemble.error, clean.ensemble.ece_width15, clean.honest.ensemble["ece_width15"].floor)
    ]


def test_figures_of_different_images_are_in_different_tables(make_evaluated: MakeEvaluated) -> None:
    other = changed(make_evaluated("b", members=1), "results.evaluated_on.dataset", "cifar10")
    tables = headlines(label_runs([make_evaluated("a", members=1), other])).tables
    assert [[row.label for row in table.rows] for table in tables] == [["a"], ["b"]]


def test_differences_stand_below_the_runs_that_were_compared(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated("a", members=2, shifted=True, more=True)
    assert run.compared is not None
    clean, corrupted = (table.rows[-1] for table in headlines(label_runs([run])).tables)
    assert clean.label == corrupted.label == "a − digits/single"
    found = run.compared.against[0]
    assert found.clean is not None
    assert found.corrupted is not None
    for row, error in ((clean, found.clean.error), (corrupted, found.corrupted.mean.error)):
        low, high = (float(text.replace("−", "-")) for text in row.entries[0].below.split(" to "))
        assert (low, high) == pytest.approx((100 * error.low, 100 * error.high), abs=0.0051)
        assert row.entries[2].text == "–", "a noise floor has no difference"
