"""From which confidence on a run can be trusted: the promise of its threshold, and where other images break it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.tables import Table
from counterpoint.report.thresholds import cells_table, checks_table, highest_error, threshold_in_words

_TITLE = "Threshold"


@dataclass(frozen=True)
class RunThreshold:
    """The promise of one run, in words, and what other images say of it; None where there are none."""

    label: str
    words: tuple[str, ...]
    checks: Table | None
    cells: Table | None


@dataclass(frozen=True)
class Thresholds(Content):
    runs: tuple[RunThreshold, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{_TITLE}: {run.label}", (*run.words, run.checks, run.cells)) for run in self.runs)


def thresholds(runs: Sequence[ReportedRun]) -> Thresholds | None:
    """None where no run has a threshold. The maps of all runs share one scale of colour."""
    having = [(run, found) for run in runs if (found := run.evaluated.thresholded) is not None]
    deepest = max((highest_error(found) for _, found in having), default=0.0)
    of_runs = [
        RunThreshold(
            run.label,
            threshold_in_words(found, run.results.is_ensemble),
            checks_table(found, run.label),
            cells_table(found, run.label, deepest),
        )
        for run, found in having
    ]
    return Thresholds(tuple(of_runs)) if of_runs else None


SECTION = Section("threshold", _TITLE, thresholds, "sections/threshold.html")
