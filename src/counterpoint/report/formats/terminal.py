"""The report's tables in the terminal."""

from rich.console import JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from counterpoint.report.tables import Table


def to_rich(table: Table) -> RichTable:
    """The table as `rich` prints it. What stands in it is only text, whatever brackets it holds."""
    shown = RichTable(title=Text(table.caption), title_justify="left", box=None, pad_edge=False)
    figures_at: JustifyMethod = "left" if all(row.kind == "words" for row in table.rows) else "right"
    for number, column in enumerate(table.columns):
        heading = Text("\n".join(filter(None, (column.label, column.unit))))
        shown.add_column(heading, justify=figures_at if number else "left", overflow="fold")
    for row in table.rows:
        entries = [Text(entry.in_one_line, style="bold" if entry.best else "") for entry in row.entries]
        shown.add_row(Text(row.label), *entries)
    return shown
