"""The report of models that were trained elsewhere: what is not known is left out, and what was given is named."""

import csv
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.results import Imported
from counterpoint.report import load_runs, render, to_csv, to_json, to_markdown
from counterpoint.report.run import by_images, label_runs
from counterpoint.report.sections import build_sections
from counterpoint.report.sections.headlines import headline_table, headlines, suites_in_words
from counterpoint.report.sections.heat_maps import heat_maps
from counterpoint.report.sections.provenance import facts
from counterpoint.report.sections.severities import against_severity
from counterpoint.report.sections.shift import under_shift
from counterpoint.report.suites import by_cells, by_suite, papers_suite, suites_of
from tests.report.made import MakeEvaluated, changed


@pytest.fixture(scope="module")
def given(given_runs: list[Path]) -> list[Evaluated]:
    return load_runs(given_runs)


def imported(evaluated: Evaluated) -> Imported:
    assert evaluated.results.imported is not None
    return evaluated.results.imported


def test_the_facts_name_the_file_and_nothing_of_a_training(given: list[Evaluated], given_runs: list[Path]) -> None:
    ensemble, single = (dict(facts(run)) for run in label_runs(given))
    file = given_runs[0].with_suffix(".npz")
    assert ensemble["Model"] == "the ensemble, trained elsewhere"
    assert ensemble["Ensemble"] == "3 members, whose probabilities are averaged"
    assert ensemble["Predictions"] == "from the file ensemble.npz"
    assert ensemble["SHA-256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert ensemble["Classes"] == "4: cat, dog, cow, 猫"
    assert ensemble["Clean set"] == "toys, test part, 300 images"
    assert ensemble["Validation set"] == "toys, 320 images"
    assert ensemble["Given set: shifted images"] == "2 shifts, each at 2 severities: 4 cells, 300 images per cell"
    assert ensemble["Given set: Hospital-B"] == "1 shift, 30 images per cell"
    assert ensemble["Evaluated"].endswith("with logits in float64, as given")
    assert not ensemble.keys() & {"Experiment", "Seed", "Network", "Trained", "Corrupted set"}
    assert "Ensemble" not in single


def test_arrays_have_no_file(given: list[Evaluated]) -> None:
    evaluated = changed(given[0], "results.imported", replace(imported(given[0]), file=None, classes=("a",) * 10))
    found = dict(facts(*label_runs([evaluated])))
    assert found["Predictions"] == "given as arrays in Python"
    assert found["Classes"] == "10: a, a, a, a, a, a, a, a and 2 more"


def test_a_page_has_no_section_on_training(given: list[Evaluated], given_runs: list[Path]) -> None:
    named = changed(given[0], "results.experiment", "cifar10/single")  # a row of the paper
    found = {section.id for section, _ in build_sections(label_runs([*given, named, named]))}
    assert not found & {"paper", "health", "seeds"}
    assert found >= {"headlines", "comparison", "shift", "recalibration", "threshold"}
    page = render(given)
    assert "The whole configuration" not in page
    assert str(given_runs[0].parent) not in page
    assert imported(given[0]).sha256 in page
    assert "a single model that was trained elsewhere" in page
    assert "the ensemble − the single" in page
    assert "seed None" not in page
    for word in ("Given set: Hospital-B", "by-corruption means by shift", "Other images than the clean ones"):
        assert word in page


def test_models_of_one_name_are_told_apart(given: list[Evaluated]) -> None:
    runs = label_runs([given[0], given[0], given[1]])
    assert [run.label for run in runs] == ["the ensemble (run 1)", "the ensemble (run 2)", "the single"]


def test_a_set_is_called_what_it_is(given: list[Evaluated]) -> None:
    ensemble, single = label_runs(given)
    main, other = suites_of(ensemble)
    assert (main.called, main.label, main.dataset) == ("shifted images", "the ensemble", "toys, shifted images")
    assert main.images == "toys, shifted images, as given, 300 images per cell"
    assert (other.called, other.label) == ("Hospital-B", "the ensemble on Hospital-B")
    assert main.clean_is_severity_0
    assert not other.clean_is_severity_0
    assert suites_in_words(single) == [
        "shifted images: 2 shifts, each at 2 severities: 4 cells of 300 test images, as given.",
        "Hospital-B: 1 shift of 30 test images, as given.",
        "On shifted images each figure is computed per shift, over its severities together, and then averaged over the "
        "shifts.",
    ]
    table = headline_table(single)
    assert [row.label for row in table.rows] == ["model", "", ""]
    assert [row.entries[0].text for row in table.rows] == ["clean", "shifted images", "Hospital-B"]
    content = headlines([ensemble])
    assert content.kinds == ("the ensemble is an ensemble of 3 members that was trained elsewhere.",)
    assert [table.caption.partition(":")[0] for table in content.tables] == [
        "Clean images",
        "Shifted images",
        "Shifted images",
    ]


def test_as_many_other_images_are_not_the_clean_ones(given: list[Evaluated]) -> None:
    run = papers_suite(*label_runs([changed(given[1], "results.corrupted.source.key", "abc")]))
    assert run is not None
    assert not run.clean_is_severity_0


def test_our_suite_and_given_shifts_stand_apart(given: list[Evaluated], make_evaluated: MakeEvaluated) -> None:
    runs = label_runs([*given, make_evaluated("ours", shifted=True)])
    assert list(by_suite(runs)) == ["shifted images", "corrupted", "Hospital-B"]
    content = under_shift(runs)
    assert content is not None
    assert [suite.title for suite in content.suites] == [
        "Shifted images",
        "Corrupted images (-C)",
        "Shifted images (Hospital-B)",
    ]
    assert (content.is_given, content.is_regenerated) == (True, True)
    assert "the ensemble and the single" in render([*given, make_evaluated("ours", shifted=True)])


def test_images_of_one_name_with_other_labels_are_not_in_one_table(given: list[Evaluated]) -> None:
    others = changed(given[1], "results.evaluated_on.key", "other labels")
    assert [len(group) for _, group in by_images(label_runs(given))] == [2]
    assert [len(group) for _, group in by_images(label_runs([given[0], others]))] == [1, 1]
    (_, same), *_ = by_suite(label_runs(given)).items()
    (_, apart), *_ = by_suite(label_runs([given[0], others])).items()
    assert [len(group) for _, group in by_cells(same)] == [2]
    assert [len(group) for _, group in by_cells(apart)] == [1, 1]


def test_one_severity_has_no_line_and_one_shift_no_mean(given: list[Evaluated]) -> None:
    runs = label_runs(given[1:])
    content = against_severity(runs)
    assert content is not None
    main, other = content.suites
    assert len(main.lines) == 2
    assert other.lines == ()
    assert len(other.reliability) == 1
    (block,) = content.blocks()
    assert len(block.parts) == 2
    maps = heat_maps(runs)
    assert maps is not None
    shifted, single = maps.maps[0].tables
    assert [row.label for row in shifted.rows] == ["Fog", "Night shots", "Mean of 2"]
    assert [row.label for row in single.rows] == ["Hospital-B"]
    only = changed(given[1], "results.corrupted", None)
    alone = against_severity(label_runs([only]))
    assert alone is not None
    assert list(alone.blocks()) == []


def test_files_for_programs(given: list[Evaluated]) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(given))))
    assert {line["seed"] for line in lines} == {""}
    assert {line["experiment"] for line in lines} == {"the ensemble", "the single"}
    assert {line["against"] for line in lines} == {"", "the single"}
    assert {line["dataset"] for line in lines} == {"toys", "toys, shifted images", "toys, Hospital-B"}
    (first, _) = json.loads(to_json(given))["runs"]
    assert (first["seed"], first["paper"], first["health"]) == (None, None, None)
    assert first["facts"]["SHA-256"] == imported(given[0]).sha256
    assert "SHA-256" in to_markdown(given)


def test_the_import_and_the_evaluation_are_one_command(given: list[Evaluated]) -> None:
    (run,) = label_runs(given[1:])
    assert run.commands == (imported(given[1]).command,)
    recomputed = changed(given[1], "results.evaluation.command", "counterpoint evaluate runs/a --recompute")
    (run,) = label_runs([recomputed])
    assert run.commands == (imported(given[1]).command, "counterpoint evaluate runs/a --recompute")


def test_hostile_names_are_only_text(given: list[Evaluated]) -> None:
    hostile = "<script>alert(1)</script>"
    evil = replace(imported(given[0]), file=hostile, classes=(hostile,), command=hostile)
    evaluated = changed(changed(given[0], "results.imported", evil), "results.experiment", hostile)
    page = render([evaluated])
    assert page.count("<script") == 1, "the page's own"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
