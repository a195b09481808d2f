"""A threshold in words, and the table of where its promise holds."""

from dataclasses import replace

import pytest

from counterpoint.metrics.threshold import verdict
from counterpoint.recalibration.choose import NONE
from counterpoint.records.images import Shift, Source
from counterpoint.records.threshold import Checked, CheckedShift, Thresholded
from counterpoint.report.tables import Table
from counterpoint.report.thresholds import cells_table, checks_table, highest_error, threshold_in_words
from tests.made_results import make_thresholded

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
    table = checks_table(FOUND, "mine")
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
    table = cells_table(FOUND, "mine", highest_error(FOUND))
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
