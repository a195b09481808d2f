import re
from collections.abc import Callable
from typing import Any

import pytest

from counterpoint.report import to_markdown
from counterpoint.report.run import CORRUPTIONS, label_runs
from counterpoint.report.sections.metrics import metrics_tables
from counterpoint.report.sections.shift import shift_tables

MakeResults = Callable[..., dict[str, Any]]


@pytest.fixture
def results(make_results: MakeResults) -> list[dict[str, Any]]:
    return [make_results("many", members=2, shifted=True), make_results("one", members=1)]


def test_markdown_holds_the_tables_of_the_page(results: list[dict[str, Any]]) -> None:
    text = to_markdown(results)
    runs = label_runs(results)
    tables = metrics_tables(runs) + [table for group in shift_tables(runs[:1]).values() for table in group]
    for table in tables:
        for row in table.rows:
            entries = [f"**{entry.text}**" if entry.best else entry.text for entry in row.entries]
            assert f"| {row.label} | {' | '.join(entries)} |" in text
    # Besides, of noise for each calibration error, clean and under shift; of severities; of two curves; the maps.
    assert len(re.findall(r"^\| ---", text, re.MULTILINE)) == len(tables) + 4 * 2 + 1 + 2 + 9
    assert all(f"| {name} |" in text for name in CORRUPTIONS.values())
    assert "    counterpoint evaluate runs/many" in text


def test_every_line_of_a_markdown_table_has_the_same_number_of_entries(results: list[dict[str, Any]]) -> None:
    for block in to_markdown(results).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.count(" | ") for line in lines}) <= 1


def test_names_are_only_text_in_markdown(make_results: MakeResults) -> None:
    text = to_markdown([make_results("a|b <script> *c*\n# d", members=1)])
    assert text.startswith(r"# a\|b \<script\> \*c\* \# d" + "\n")
    outside_code = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any("<script>" in line or line == "# d" for line in outside_code)


def test_a_section_for_each_part_that_there_is(make_results: MakeResults) -> None:
    runs = [make_results("cifar10/single", seed=seed, shifted=True, more=True) for seed in (0, 1)]
    assert re.findall("^## (.*)$", to_markdown(runs), re.MULTILINE) == [
        "Beside the paper",
        "cifar10/single, seed 0 − digits/single, seed 7",
        "cifar10/single, seed 1 − digits/single, seed 7",
        "All metrics",
        "Spread over seeds, not over images",
        "Calibration errors and their noise floors",
        "Under corruption",
        "Corruption by corruption",
        "Keeping the surest",
        "With a temperature: cifar10/single, seed 0",
        "With a temperature: cifar10/single, seed 1",
        "Do the members differ? cifar10/single, seed 0",
        "Do the members differ? cifar10/single, seed 1",
        "Lost channels: cifar10/single, seed 0",
        "Lost channels: cifar10/single, seed 1",
        "What was run",
    ]


def test_sentences_are_there_too(make_results: MakeResults) -> None:
    results = make_results("many", members=2, shifted=True, more=True)
    results["health"]["warnings"] = ["Many channels are lost."]
    text = to_markdown([results])
    assert results["collapse"]["verdict"] in text
    assert "After epoch 17, of 400 channels 16 (4.00 %) are dead and 0 (0.00 %) have a variance below eps." in text
    assert "\n\nMany channels are lost.\n\n" in text
    assert "| 17 | 16 | 4.00 | 0 | 0.00 | 0.100 | 0.000 |" in text
    assert "Clean images: cross-fitted on two seeded halves of the validation images." in text


def test_without_a_corrupted_set(make_results: MakeResults) -> None:
    assert "Corrupted set: not evaluated" in to_markdown([make_results(members=1)])
