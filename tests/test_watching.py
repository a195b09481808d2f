"""The library tells a watcher of its work, and the plain watcher tells nobody."""

import math

import pytest

from counterpoint.watching import SILENT, WARNING, TrainingProgress, Watcher, counting
from tests.heard import Heard

PROGRESS = TrainingProgress("work", 0, 9, 1, 3, math.nan, math.nan, 0.0)


def tell_everything(watcher: Watcher) -> None:
    watcher.trained(PROGRESS)
    watcher.counted("work", 2, 9)
    watcher.noted("a note")
    watcher.warned("a warning")


@pytest.mark.parametrize("watcher", [Watcher(), SILENT], ids=["plain", "SILENT"])
def test_a_plain_watcher_tells_nobody(watcher: Watcher, capfd: pytest.CaptureFixture[str]) -> None:
    tell_everything(watcher)
    assert capfd.readouterr() == ("", "")
    assert vars(watcher) == {}, "nor does it remember"


def test_what_a_person_should_act_on_becomes_a_warning_of_python(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="^a warning$") as heard:
        tell_everything(WARNING)
    assert len(heard) == 1
    assert capfd.readouterr() == ("", "")


def test_a_watcher_of_ones_own_hears_it() -> None:
    heard = Heard()
    tell_everything(heard)
    assert heard.trainings == [PROGRESS]
    assert (heard.counts, heard.notes, heard.warnings) == ([("work", 2, 9)], ["a note"], ["a warning"])


def test_it_hears_how_far_the_work_on_several_things_is() -> None:
    heard = Heard()
    assert list(counting("ab", heard, "work", total=5, done=3)) == ["a", "b"]
    assert list(counting("", heard, "no work", total=0)) == []
    assert heard.counts == [("work", 3, 5), ("work", 4, 5), ("work", 5, 5)]
