"""A chart as the page shows it."""

from dataclasses import dataclass

from markupsafe import Markup

from counterpoint.report.tables import Table


@dataclass(frozen=True)
class Chart:
    """A picture with its text alternative, its caption, and the numbers that it shows."""

    svg: Markup
    caption: str
    table: Table


@dataclass(frozen=True)
class Plot:
    """Several runs in one picture with its text alternative, its legend, its caption, and each run's numbers."""

    svg: Markup
    legend: Markup
    caption: str
    tables: tuple[Table, ...]
