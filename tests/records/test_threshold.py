"""What does not fit together in threshold.json."""

from dataclasses import replace

import pytest

from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.threshold import Checked, KeptOutside, Thresholded, Tried
from tests.made_results import make_thresholded

RECORD = make_thresholded()
PROMISE = RECORD.promise


def test_shares() -> None:
    assert PROMISE.coverage == 50 / 60
    assert (Checked(40, 30, 1, "holds").coverage, Checked(40, 30, 1, "holds").error) == (0.75, 1 / 30)
    assert (Checked(40, 0, 0, "holds").coverage, Checked(40, 0, 0, "holds").error) == (0.0, None)


def test_without_a_shift_and_without_test_images() -> None:
    made_from = replace(RECORD.made_from, corrupted=None)
    plain = replace(RECORD, made_from=made_from, cells={}, test=None, promise=replace(PROMISE, refused=None))
    assert decode(Thresholded, encode(plain)) == plain


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (replace(RECORD, test=Checked(40, 30, 31, "breaks")), "test.wrong is 31, and must be no more than kept, .* 30"),
        (replace(RECORD, test=Checked(40, 41, 0, "holds")), "test.kept is 41, and must be no more than images, .* 40"),
        (replace(RECORD, test=Checked(0, 0, 0, "holds")), "test.images is 0, and must be 1 or more"),
        (replace(RECORD, promise=replace(PROMISE, images=49)), "promise.chosen.kept is 50, .* images, which is 49"),
        (replace(RECORD, promise=replace(PROMISE, start=Tried(0.9, 1, 2, 1.0))), "promise.start.wrong is 2, .* kept"),
        (replace(RECORD, outside={"a": KeptOutside(images=5, kept=6)}), "outside.a.kept is 6, and must .* which is 5"),
        (replace(RECORD, outside={"a": KeptOutside(images=0, kept=0)}), "outside.a.images is 0, and must be 1 or more"),
        (replace(RECORD, cells={"fog": RECORD.cells["fog"]}), "cells.snow is missing"),
        (replace(RECORD, cells={**RECORD.cells, "frost": ()}), "cells.frost is not one of the corruptions"),
        (replace(RECORD, cells={**RECORD.cells, "fog": ()}), "cells.fog has 0 values, and there are 2 severities"),
    ],
)
def test_what_does_not_fit_is_named(record: Thresholded, problem: str) -> None:
    with pytest.raises(FieldError, match=rf"^{problem}"):
        decode(Thresholded, encode(record))
