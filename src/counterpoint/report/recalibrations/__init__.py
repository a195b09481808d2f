"""What recalibrations make of a run, as words, tables and charts."""

from dataclasses import dataclass

from counterpoint.report.section import Chart, Part
from counterpoint.report.tables import Table


@dataclass(frozen=True)
class Topic:
    """A part of the section on recalibrations."""

    title: str
    words: tuple[str, ...] = ()
    chart: Chart | None = None
    legend: tuple[tuple[str, str], ...] = ()  # of the chart: the first part of a swatch's class, and what it stands for
    tables: tuple[Table, ...] = ()
    more: tuple[Table, ...] = ()  # that the page folds away
    more_title: str = ""

    @property
    def is_narrow(self) -> bool:
        """Whether the chart's table has room beside it."""
        return self.chart is not None and len(self.chart.table.columns) < 7

    @property
    def parts(self) -> tuple[Part | None, ...]:
        return (*self.words, self.chart, *self.tables, *self.more)
