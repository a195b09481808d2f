"""All metrics on clean images."""

from collections.abc import Sequence

from counterpoint.report.run import ReportedRun
from counterpoint.report.tables import Table, by_images, metrics_table


def metrics_tables(runs: Sequence[ReportedRun]) -> list[Table]:
    """One table for each set of clean images: figures of different images are not compared."""
    return [
        metrics_table(f"All metrics on {images}", [(run, run.clean) for run in group])
        for images, group in by_images(runs).items()
    ]
