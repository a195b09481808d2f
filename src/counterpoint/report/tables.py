"""The report's tables as plain values: what an entry says and which is best, not how it looks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    text: str
    best: bool = False
    heat: int | None = None  # percent of a heat map's deepest colour; below zero, of the other colour
    below: str = ""  # in small letters under the text

    @property
    def in_one_line(self) -> str:
        return f"{self.text} ({self.below})" if self.below else self.text


@dataclass(frozen=True)
class Row:
    label: str
    entries: tuple[Entry, ...]
    kind: str = ""


@dataclass(frozen=True)
class Column:
    label: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[Column, ...]  # the first is the row headings'
    rows: tuple[Row, ...]


def plain_row(label: str, *texts: str, kind: str = "") -> Row:
    return Row(label, tuple(map(Entry, texts)), kind)
