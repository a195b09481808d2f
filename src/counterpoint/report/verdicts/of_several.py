"""What can be said of several runs that were not compared: the lowest figures, and that no interval stands beside."""

from collections.abc import Iterator, Sequence

from counterpoint.report.run import ReportedRun, grouped
from counterpoint.report.suites import listed
from counterpoint.report.verdicts.sentence import CLEAN, Measured, Rank, Sentence, measured, percents

_NOT_COMPARED = (
    "No interval says whether these runs differ by more than chance: “counterpoint compare” computes intervals."
)
_OTHER_IMAGES = "These runs were evaluated on different images, so that their figures cannot be compared."


def several_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """The lowest error and ECE on each set of images that all runs have."""
    by_set = grouped([(run, one) for run in runs for one in measured(run)], lambda pair: pair[1].key)
    shared = [found for found in by_set.values() if len(found) == len(runs)]
    for found in shared:
        on = found[0][1].on
        yield Sentence(Rank.CLEAN if on == CLEAN else Rank.UNDER_SHIFT, _lowest(on, found))
    yield Sentence(Rank.CLEAN, _NOT_COMPARED if shared else _OTHER_IMAGES)


def _lowest(on: str, found: Sequence[tuple[ReportedRun, Measured]]) -> str:
    error = _winner(found, [one.figures.error for _, one in found])
    ece = _winner(found, [one.figures.ece_width15 for _, one in found])
    return f"On {on} the lowest error is {error}, and the lowest ECE is {ece}."


def _winner(found: Sequence[tuple[ReportedRun, Measured]], values: Sequence[float]) -> str:
    lowest, *_ = percents(min(values))
    names = [run.label for (run, _), value in zip(found, values, strict=True) if percents(value)[0] == lowest]
    return f"{lowest} ({listed(names)})"
