"""Thresholds in words, in tables of where a promise holds, and as a section."""

import re
from dataclasses import replace

import pytest

from counterpoint.metrics.threshold import verdict
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import Evaluated
from counterpoint.records.images import Shift, Source
from counterpoint.records.threshold import Checked, CheckedShift, Thresholded
from counterpoint.report import render, to_markdown
from counterpoint.report.run import label_runs
from counterpoint.report.sections.threshold import (
    RunThreshold,
    Thresholds,
    cells_table,
    checks_table,
    highest_error,
    threshold_in_words,
    thresholds,
)
from counterpoint.report.tables import Table
from tests.made_results import make_thresholded
from tests.report.made import MakeEvaluated, changed, changed_all

FOUND = make_thresholded()


def words(found: Thresholded, several: bool = True) -> str:
    return " ".join(threshold_in_words(found, several)).replace("\N{NO-BREAK SPACE}", " ")


def entries(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[row.label, *(entry.text for entry in row.entries)] for row in table.rows]


def test_the_promise_in_words() -> None:
    said = words(FOUND)
    for sentence in (
        "Keep predictions with a confidence of 0.75 or more: with 95 % confidence, the error of what is kept is below "
        "10.00 % on images like the validation images.",
        "About 83.33 % of such images are kept (interval 60.00 to 94.00).",
        "The threshold was chosen on 60 validation images that no temperature was fitted on. It keeps 50 of them, and "
        "1 of these is wrong (2.00 %). The true error could be up to 9.10 % at this threshold alone, and up to 11.60 "
        "% at 0.74.",
        "The confidences are recalibrated with “before averaging”. Its parameters come from the other 20 validation "
        "images: T = 1.35",
    ):
        assert sentence in said
    assert "“one for all images”" in words(FOUND, several=False)


def test_where_everything_is_kept_and_nothing_was_fitted() -> None:
    plain = replace(FOUND, recalibration=NONE, recalibration_name="none", promise=replace(FOUND.promise, refused=None))
    said = words(plain)
    assert said.startswith("Keep everything: with 95 % confidence,")
    assert "at this threshold alone." in said
    assert "The other 20 validation images only gave the threshold at which the search began." in said


def test_the_table_pools_the_corruptions_of_a_severity() -> None:
    table = checks_table(FOUND, "mine: ")
    assert table is not None
    caption = table.caption.replace("\N{NO-BREAK SPACE}", " ")
    assert caption == "mine: the promise (below 10.00 %) on test images, 4 under each corruption"
    assert entries(table) == [
        ["clean", "75.00", "3.33", "holds", ""],
        ["severity 1", "75.00", "16.67", "breaks in 0 of 2", "Fog 33.33"],
        ["severity 2", "50.00", "75.00", "breaks in 1 of 2", "Fog 75.00"],
    ]


def test_without_test_images_there_is_no_table() -> None:
    bare = replace(FOUND, test=None, cells={}, made_from=replace(FOUND.made_from, corrupted=None))
    assert checks_table(bare) is None
    assert cells_table(bare) is None
    assert highest_error(bare) == 0
    assert "shift" not in words(bare)
    nothing = dict.fromkeys(("fog", "snow"), (FOUND.cells["snow"][1],) * 2)
    assert entries(checks_table(replace(FOUND, test=None, cells=nothing)))[0] == [
        *("severity 1", "0.00", "–", "breaks in 0 of 2", "Fog –")
    ]


HOLDS, UNCLEAR, BREAKS = Checked(4, 3, 0, "holds"), Checked(4, 3, 1, "unclear"), Checked(4, 4, 3, "breaks")


def with_cells(cells: dict[str, tuple[Checked, ...]]) -> Thresholded:
    return replace(FOUND, cells=cells)


def test_where_it_breaks_in_words() -> None:
    start = "The promise is not made for corrupted images. There it breaks in"
    assert f"{start} 1 of the 4 cells. It never breaks under Snow." in words(FOUND)
    assert f"{start} 2 of the 4 cells. It breaks under each corruption at least once." in words(
        with_cells({"fog": (HOLDS, BREAKS), "snow": (BREAKS, UNCLEAR)})
    )
    assert f"{start} none of the 4 cells." in words(with_cells({"fog": (HOLDS, UNCLEAR), "snow": (HOLDS, HOLDS)}))
    spared = dict.fromkeys("abcdefg", (HOLDS, UNCLEAR))
    assert f"{start} 1 of the 16 cells. It never breaks under 7 of the 8 corruptions." in words(
        with_cells({"fog": (HOLDS, BREAKS), **spared})
    )


def test_every_cell_says_in_text_what_became_of_the_promise() -> None:
    table = cells_table(FOUND, "mine: ", highest_error(FOUND))
    assert entries(table) == [["Fog", "? 33.3", "✗ 75.0"], ["Snow", "0.0", "–"]]
    assert table is not None
    assert [column.label for column in table.columns] == ["Severity", "1", "2"]
    assert [[entry.heat for entry in row.entries] for row in table.rows] == [[44, 100], [0, 0]]
    assert table.caption.replace("\N{NO-BREAK SPACE}", " ") == (
        "mine: error of what is kept, %; ✗ breaks: above 10.00 % by more than chance, ? above it, perhaps by chance; "
        "nothing is kept: –"
    )


def test_what_is_above_the_target_has_a_colour_however_little_it_is() -> None:
    table = cells_table(FOUND, deepest=100.0)
    assert table is not None
    assert [entry.heat for entry in table.rows[0].entries] == [15, 15]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((0, 1), "on fog it holds."),
        ((0, 3), "on fog it is unclear."),
        ((3, 40), "on fog it breaks at severity 2."),
        ((40, 40), "on fog it breaks."),
        ((3,), "on fog it is unclear."),
    ],
)
def test_the_promise_on_other_shifts_in_words(wrong: tuple[int, ...], said: str) -> None:
    shift = Shift(Source("own", key="k"), 100, "test", ("fog",), tuple(range(1, len(wrong) + 1)))
    cells = tuple(Checked(100, 100, count, verdict(100, count, 0.02)) for count in wrong)
    found = replace(FOUND, shifts={"fog": CheckedShift(shift, cells)}, outside={})
    assert words(found).endswith(f"other shifted images either: {said}")
    table = checks_table(found)
    assert table is not None
    assert table.rows[-1].label == ("fog, severity 2" if len(wrong) > 1 else "fog")


def test_what_is_kept_of_outside_images_in_words() -> None:
    assert words(FOUND).endswith("so none should be kept. The threshold keeps 40.00 % of letters (2 of 5).")
    assert "Outside images" not in words(replace(FOUND, outside={}))


@pytest.fixture
def two_runs(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    return [make_evaluated(name, members=members, shifted=True, more=True) for name, members in (("a", 2), ("b", 1))]


def built(runs: list[Evaluated]) -> Thresholds:
    content = thresholds(label_runs(runs))
    assert content is not None
    return content


def tables_of(run: RunThreshold) -> list[Table]:
    return [table for table in (run.checks, run.cells) if table]


def test_each_run_has_its_own_threshold(two_runs: list[Evaluated]) -> None:
    runs = built(two_runs).runs
    assert [run.label for run in runs] == ["a", "b"]
    for run, evaluated in zip(runs, two_runs, strict=True):
        assert evaluated.thresholded is not None
        assert run.words == threshold_in_words(evaluated.thresholded, evaluated.results.is_ensemble)
        assert run.words[0].startswith(f"Keep predictions with a confidence of {_threshold(evaluated)} or more")
        assert [table.caption.partition(":")[0] for table in tables_of(run)] == 2 * [run.label]
    assert runs[0].words != runs[1].words


def _threshold(run: Evaluated) -> float:
    assert run.thresholded is not None
    return run.thresholded.promise.chosen.threshold


def test_a_run_without_one_is_left_out(two_runs: list[Evaluated]) -> None:
    without = [replace(two_runs[0], thresholded=None), two_runs[1]]
    assert [run.label for run in built(without).runs] == ["b"]
    assert thresholds(label_runs(without[:1])) is None
    assert 'id="threshold"' not in render(without[:1])


def test_the_maps_share_one_scale(two_runs: list[Evaluated]) -> None:
    worst = Checked(40, 40, 40, "breaks")
    runs = built([changed(two_runs[0], "thresholded.cells.fog.0", worst), two_runs[1]]).runs
    cells = [(entry.text, entry.heat) for run in runs if run.cells for row in run.cells.rows for entry in row.entries]
    assert ("✗ 100.0", 100) in cells
    for text, heat in cells:
        if text.startswith(("✗", "?")):
            assert heat == pytest.approx(max(15, float(text.split()[1])), abs=0.51)
        else:
            assert heat == 0, "what is not above the target has no colour"


def test_page_and_markdown_have_every_number(two_runs: list[Evaluated]) -> None:
    page, text = render(two_runs), to_markdown(two_runs)
    for run in built(two_runs).runs:
        assert all(words in page.replace("&#34;", '"') for words in run.words)
        for row in (row for table in tables_of(run) for row in table.rows):
            assert all(f">{entry.text}<" in page for entry in row.entries)
            assert f"| {row.label} | {' | '.join(entry.text for entry in row.entries)} |" in text
    assert len(re.findall(r'<th scope="row">Pixelate</th>\n<td class="warm" style="--heat:\d+%">(?:✗ )?\d', page)) >= 2


def test_without_images_to_check_it_on_there_are_words_alone(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated("mine", members=2, more=True)
    (clean,) = built([run]).runs
    assert clean.cells is None
    assert [row.label for row in tables_of(clean)[0].rows] == ["clean"]
    bare = changed_all(run, {"thresholded.test": None})
    (alone,) = built([bare]).runs
    assert tables_of(alone) == []
    assert alone.words[0] in render([bare])
    assert f"## Threshold: mine\n\n{alone.words[0]}".replace("\N{NO-BREAK SPACE}", " ") in to_markdown([bare])
