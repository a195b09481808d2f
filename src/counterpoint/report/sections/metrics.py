"""All metrics on clean images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.metrics import metrics_table
from counterpoint.report.run import ReportedRun, by_images
from counterpoint.report.section import Block, Content
from counterpoint.report.tables import Table

TITLE = "All metrics"


@dataclass(frozen=True)
class Metrics(Content):
    tables: tuple[Table, ...]
    has_members: bool

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, self.tables)


def metrics(runs: Sequence[ReportedRun]) -> Metrics:
    """One table for each set of clean images: figures of different images are not compared."""
    return Metrics(
        tuple(
            metrics_table(f"All metrics on {images}", [(run.label, run.clean) for run in group])
            for images, group in by_images(runs)
        ),
        has_members=any(run.results.is_ensemble for run in runs),
    )
