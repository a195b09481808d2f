import re
from itertools import chain

import pytest

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.records.files import Evaluated
from counterpoint.report import to_markdown
from counterpoint.report.run import label_runs
from counterpoint.report.sections.metrics import metrics
from counterpoint.report.sections.shift import under_shift
from counterpoint.report.suites import corruption_label
from tests.report.made import MakeEvaluated, changed


@pytest.fixture
def two_runs(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    return [make_evaluated("many", members=2, shifted=True), make_evaluated("one", members=1)]


def test_markdown_holds_the_tables_of_the_page(two_runs: list[Evaluated]) -> None:
    text = to_markdown(two_runs)
    runs = label_runs(two_runs)
    shift = under_shift(runs)
    assert shift is not None
    of_suites = [(*suite.headline_tables, *suite.other_tables) for suite in shift.suites]
    tables = [*metrics(runs).tables, *chain(*of_suites)]
    for table in tables:
        for row in table.rows:
            entries = [f"**{entry.text}**" if entry.best else entry.text for entry in row.entries]
            assert f"| {row.label} | {' | '.join(entries)} |" in text
    # Besides, of each run the headlines, two of bins and the classes; of noise for each calibration error, clean and
    # under shift; of two of severities; of two curves; the maps.
    assert len(re.findall(r"^\| ---", text, re.MULTILINE)) == len(tables) + 2 * 4 + 4 * 2 + 2 + 2 + 9
    assert all(f"| {corruption_label(name)} |" in text for name in CORRUPTIONS)
    assert "    counterpoint evaluate runs/many" in text


def test_every_line_of_a_markdown_table_has_the_same_number_of_entries(two_runs: list[Evaluated]) -> None:
    for block in to_markdown(two_runs).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count(" | ") for line in lines}) <= 1


def test_names_are_only_text_in_markdown(make_evaluated: MakeEvaluated) -> None:
    text = to_markdown([make_evaluated("a|b <script> *c*\n# d", members=1)])
    assert text.startswith(r"# a\|b &lt;script&gt; \*c\* \# d" + "\n")
    outside_code = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any("<script>" in line or line == "# d" for line in outside_code)


def test_a_heading_for_each_part_that_there_is(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("cifar10/single", seed=seed, shifted=True, more=True) for seed in (0, 1)]
    topics = (
        "The chosen recalibration",
        "How it was chosen",
        "Fitted temperatures",
        "Figures with each recalibration",
        "At each severity",
        "On each corruption",
        "Temperatures of the images",
    )
    assert re.findall("^## (.*)$", to_markdown(runs), re.MULTILINE) == [
        "Verdict",
        "Main figures",
        "cifar10/single (seed 0) − digits/single",
        "cifar10/single (seed 1) − digits/single",
        "Reliability",
        "Classes: cifar10/single (seed 0)",
        "Classes: cifar10/single (seed 1)",
        "Under shift: Corrupted images (-C)",
        "Accuracy, confidence and ECE against severity",
        "Corruption by corruption",
        "Selective prediction",
        "Threshold: cifar10/single (seed 0)",
        "Threshold: cifar10/single (seed 1)",
        "Outside images: letters",
        "Recalibration: all runs",
        *(f"Recalibration: cifar10/single (seed {seed}): {topic}" for seed in (0, 1) for topic in topics),
        "Differences between members: cifar10/single (seed 0)",
        "Differences between members: cifar10/single (seed 1)",
        "Lost channels: cifar10/single (seed 0)",
        "Lost channels: cifar10/single (seed 1)",
        "Compared with the paper",
        "Spread over seeds, not over images",
        "All metrics",
        "Calibration errors and their noise floors",
        "What was run: cifar10/single (seed 0)",
        "What was run: cifar10/single (seed 1)",
        "Commands that do it again",
        "Glossary",
    ]


def test_sentences_are_there_too(make_evaluated: MakeEvaluated) -> None:
    run = changed(
        make_evaluated("many", members=2, shifted=True, more=True), "results.health.warnings", ("Many are lost.",)
    )
    text = to_markdown([run])
    assert run.results.collapse is not None
    assert run.results.collapse.verdict.replace("\N{NO-BREAK SPACE}", " ") in text
    assert (
        "At the end of training (after epoch 17), 16 (4.00 %) of 400 channels are dead, and 0 (0.00 %) have a variance "
        "below eps. At the start (after epoch"
    ) in text
    assert "\n\nMany are lost.\n\n" in text
    assert "| 17 (end) | 16 | 4.00 | 0 | 0.00 | 0.100 | 0.000 |" in text
    assert "recalibrated like this: cross-fitted on two seeded halves of the validation images." in text


def test_without_a_corrupted_set(make_evaluated: MakeEvaluated) -> None:
    assert "Corrupted set: not evaluated" in to_markdown([make_evaluated(members=1)])
