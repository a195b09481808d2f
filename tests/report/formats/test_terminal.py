import io

from rich.console import Console

from counterpoint.report.formats.terminal import to_rich
from counterpoint.report.tables import Column, Entry, Row, Table

TABLE = Table(
    "ours [v2]",
    (Column("Model"), Column("Error", "%"), Column("Over-confidence", "points")),
    (
        Row("a [bold]", (Entry("12.30", best=True), Entry("−0.50"))),
        Row("b", (Entry("4.00"), Entry("–"))),
    ),
)


def printed(table: Table, **options: bool) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=60, **options).print(to_rich(table))  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_a_table_keeps_its_texts_whatever_brackets_they_hold() -> None:
    assert [line.rstrip() for line in printed(TABLE)] == [
        "ours [v2]",
        "          Error  Over-confidence",
        "Model         %           points",
        "a [bold]  12.30            −0.50",
        "b          4.00                –",
    ]


def test_the_best_is_bold() -> None:
    (line,) = [line for line in printed(TABLE, force_terminal=True) if "12.30" in line]
    assert "\x1b[1m12.30\x1b[0m" in line
