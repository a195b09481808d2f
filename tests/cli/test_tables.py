"""The tables that the commands print."""

import io
import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from counterpoint.cli.terminal.tables import (
    comparison_tables,
    data_table,
    experiments_table,
    recalibrated_parts,
    results_parts,
    to_rich,
)
from counterpoint.data.fetch import Status
from counterpoint.experiments import EXPERIMENTS, select_experiments
from counterpoint.records.figures import ClassFigures
from counterpoint.report.recalibrations.choice import choice_in_words, short_candidates_table
from counterpoint.report.recalibrations.words import parameters_table
from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.comparison import differences_table, outside_table
from counterpoint.report.sections.headlines import headline_table
from counterpoint.report.sections.recalibration import ways_table
from counterpoint.report.tables import Column, Entry, Row
from counterpoint.report.tables import Table as ReportTable
from tests.report.made import changed, evaluated

REPORTED = ReportTable(
    "ours [v2]",
    (Column("Model"), Column("Error", "%"), Column("Over-confidence", "points")),
    (
        Row("a [bold]", (Entry("12.30", best=True), Entry("−0.50"))),
        Row("b", (Entry("4.00"), Entry("–"))),
    ),
)


def lines(table: Table | str, width: int = 200) -> list[list[str]]:
    """The words of each printed line."""
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return [line.split() for line in out.getvalue().splitlines()]


def words(part: Table | str) -> list[str]:
    return [" ".join(line) for line in lines(part)]


def entries(table: ReportTable) -> list[str]:
    """The rows of one of the report's tables, as they must be printed."""
    return [" ".join((row.label, *(entry.text for entry in row.entries))).strip() for row in table.rows]


def test_what_evaluate_prints() -> None:
    run = evaluated("digits/quickstart", members=2, shifted=True, extra=True, more=True)
    run = changed(run, "results.health.warnings", ("Many are lost.",))
    table, *sentences = results_parts(run.results)
    *caption, labels, units = words(table)[:-9]
    assert " ".join(caption) == (
        "digits/quickstart on 120 digits test images, and on -C and validation-extra; 15 equal-width bins"
    )
    assert (labels, units) == ("Error ECE Noise floor Excess ECE-rms", "Model Images % % % points %")
    assert words(table)[-9:] == entries(headline_table(ReportedRun("x", run)))
    assert [sentence for sentence in sentences if isinstance(sentence, str)] == [
        "-C: 15 kinds of corruption, each at 5 severities: 75 cells of 40 test images, regenerated with CIFAR-C's "
        "constants, seed 0 (generator 0.1.0), frost from a made texture.",
        "validation-extra: 4 kinds of corruption, each at 5 severities: 20 cells of 40 validation images, regenerated "
        "with CIFAR-C's constants, seed 0 (generator 0.1.0).",
        "On -C and validation-extra each figure is computed per corruption, over its severities together, and then "
        "averaged over the corruptions.",
        "letters: 60 images, named with --outside (key 01234567).",
        "Other outside images can give other figures.",
        run.results.collapse.verdict if run.results.collapse else "",
        "warning: Many are lost.",
    ]


def test_what_learned_little_is_said() -> None:
    run = changed(evaluated("mine", members=2), "results.clean.members.1.error", 0.9)
    run = changed(run, "results.clean.members.0.error", 0.1)
    classes = (
        ClassFigures(name="cat", images=100, wrong=0, predicted=120, predicted_right=100),
        ClassFigures(name="dog", images=20, wrong=20, predicted=0, predicted_right=0),
    )
    parts = results_parts(changed(run, "results.classes", classes).results)
    sentences = [part for part in parts if isinstance(part, str)]
    assert any("right more often than always naming “cat”" in sentence for sentence in sentences)
    assert any(sentence.startswith("In mine member 2 learned far less") for sentence in sentences)


def test_a_plain_network_on_clean_images_has_one_line() -> None:
    (table,) = results_parts(evaluated(members=1).results)
    assert len(lines(table)) == 1 + 2 + 1
    assert lines(table)[-1][:2] == ["network", "clean"]


def test_what_recalibrate_prints() -> None:
    run = evaluated(members=2, shifted=True, more=True)
    recalibrated = run.recalibrated
    assert recalibrated is not None
    assert recalibrated.choice is not None
    parameters, ways, candidates, *sentences = recalibrated_parts(recalibrated, run.results)
    assert words(parameters)[-9:] == [plain(entry) for entry in entries(parameters_table(recalibrated))]
    assert words(ways)[-10:] == entries(ways_table(recalibrated, run.results))
    assert words(candidates)[-10:] == entries(short_candidates_table(recalibrated.choice, True))
    assert sentences == list(choice_in_words(recalibrated.choice, True))
    assert len(recalibrated_parts(replace(recalibrated, choice=None), run.results)) == 2


def plain(text: str) -> str:
    return " ".join(text.split())


def test_what_compare_prints() -> None:
    compared = evaluated(members=2, shifted=True, more=True).compared
    assert compared is not None
    (other,) = compared.against
    table, of_outside = comparison_tables(compared.called, other)
    printed = words(table)
    title = f"{compared.called} − digits/single, seed 7 (digits-single), with 95 % intervals over images; "
    assert " ".join(printed).startswith(title)
    assert printed[-4:] == entries(differences_table(compared.called, other))
    assert words(of_outside)[-1] == "letters +0.030 −0.010 to +0.070"
    assert "AUROC by confidence, of known images against outside ones; higher is better" in " ".join(words(of_outside))
    assert len(comparison_tables(compared.called, replace(other, outside={}))) == 1


@pytest.mark.parametrize("width", [80, 100])
def test_no_row_of_figures_is_broken_in_80_columns(width: int) -> None:
    run = evaluated("digits/quickstart", members=4, shifted=True, more=True, extra=True)
    assert run.recalibrated is not None
    assert run.recalibrated.choice is not None
    assert run.compared is not None
    (other,), table = run.compared.against, results_parts(run.results)[0]
    of_outside = outside_table("ours", other)
    assert of_outside is not None
    differences, outside = comparison_tables("ours", other)
    _, ways, candidates, *_ = recalibrated_parts(run.recalibrated, run.results)
    tables = {
        table: headline_table(ReportedRun("x", run)),
        ways: ways_table(run.recalibrated, run.results),
        candidates: short_candidates_table(run.recalibrated.choice, True),
        differences: differences_table("ours", other),
        outside: of_outside,
    }
    for printed, of_report in tables.items():
        assert [" ".join(line) for line in lines(printed, width)][-len(of_report.rows) :] == entries(of_report)


def test_experiments_say_what_sets_them_apart() -> None:
    printed = [" ".join(line) for line in lines(experiments_table(select_experiments(["cifar10"])))]
    for line in (
        "cifar10/single single split 200 –",
        "cifar10/be+sd-not-diverse 4 split 250 drop rate 0.075",
        "cifar10/be+adv-not-diverse 4 split 250 adv 0–0.15 p 0.875 shuffled",
        "cifar10/am-beta 4 split 250 AugMix 1–4 beta 1",
    ):
        assert line in printed
    combined = printed.index("cifar10/am-bern-0.875+adv/test 4 all 250 AugMix 1–4 p 0.875")
    assert printed[combined + 1] == "adv 0–0.15 p 0.875"


def test_no_experiment_takes_more_than_two_lines_of_80_columns() -> None:
    printed = lines(experiments_table(EXPERIMENTS.values()), width=80)[1:]
    named = [line[0] in EXPERIMENTS for line in printed]
    assert sum(named) == 38
    assert all(here or before for before, here in itertools.pairwise(named)), "no two lines without a name"
    short = printed[[line[0] for line in printed].index("cifar100/am-bern-0.875")]
    assert " ".join(short[-4:]) == "AugMix 1–4 p 0.875", "on one line"


def test_data_sets_say_where_they_are_or_what_to_do() -> None:
    rows = [Status("cifar10", "/data/c10", 184_000_000, None), Status("cifar10-c", "not found", 0, "run this")]
    shown = lines(data_table(Path("/data"), rows))
    assert shown[2] == ["cifar10", "184", "MB", "/data/c10"]
    assert shown[3] == ["cifar10-c", "run", "this"]


def printed(table: ReportTable, **options: bool) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=60, **options).print(to_rich(table))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_table_keeps_its_texts_whatever_brackets_they_hold() -> None:
    assert [line.rstrip() for line in printed(REPORTED)] == [
        "ours [v2]",
        "          Error  Over-confidence",
        "Model         %           points",
        "a [bold]  12.30            −0.50",
        "b          4.00                –",
    ]


def test_the_best_is_bold() -> None:
    (line,) = [line for line in printed(REPORTED, force_terminal=True) if "12.30" in line]
    assert "\x1b[1m12.30\x1b[0m" in line
