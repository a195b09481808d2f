"""What can be said of several runs together: the lowest figures, and whether they were compared."""

from collections.abc import Iterator, Sequence

from counterpoint.errors import listed
from counterpoint.report.run import ReportedRun, grouped
from counterpoint.report.verdicts.sentence import CLEAN, Measured, Rank, Sentence, measured, percents

_NOT_COMPARED = (
    "No interval says whether these runs differ by more than chance: “counterpoint compare” computes intervals."
)
Found = Sequence[tuple[ReportedRun, Measured]]
"""All runs on one set of images."""

_OTHER_IMAGES = "These runs were evaluated on different images, so that their figures cannot be compared."


def several_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """The lowest error and ECE on each set of images that all runs have."""
    shared = _shared(runs)
    for found in shared:
        on = found[0][1].on
        yield Sentence(Rank.CLEAN if on == CLEAN else Rank.UNDER_SHIFT, _lowest(on, found))
    yield Sentence(Rank.CLEAN, _NOT_COMPARED if shared else _OTHER_IMAGES)


def overview_sentences(runs: Sequence[ReportedRun]) -> Iterator[Sentence]:
    """Of three or more runs, some of which were compared: the lowest figures, on shifted images if all have some."""
    shared = _shared(runs) if len(runs) > 2 else []
    if shared:
        found = next((found for found in shared if found[0][1].on != CLEAN), shared[0])
        yield Sentence(Rank.OF_ALL, _lowest(found[0][1].on, found))


def _shared(runs: Sequence[ReportedRun]) -> list[Found]:
    """The sets of images that all runs have."""
    by_set = grouped([(run, one) for run in runs for one in measured(run)], lambda pair: pair[1].key)
    return [found for found in by_set.values() if len(found) == len(runs)]


def _lowest(on: str, found: Found) -> str:
    error, of_error = _winner(found, [one.figures.error for _, one in found])
    ece, of_ece = _winner(found, [one.figures.ece_width15 for _, one in found])
    if of_error == of_ece and len(of_error) == 1:
        return f"On {on} {of_error[0]} has the lowest error ({error}) and the lowest ECE ({ece})."
    return f"On {on} the lowest error is {error} ({listed(of_error)}), and the lowest ECE is {ece} ({listed(of_ece)})."


def _winner(found: Found, values: Sequence[float]) -> tuple[str, list[str]]:
    """The lowest value, and which runs have it."""
    lowest, *_ = percents(min(values))
    return lowest, [run.label for (run, _), value in zip(found, values, strict=True) if percents(value)[0] == lowest]
