"""What a section of the report is.

To add one, write a module in `sections/` with its template beside it, and a line in the list in
`sections/__init__.py`. Nothing else knows a section by its name.

`build` makes what the section shows of all runs, or None where there is nothing to show. The template gets that as
`content`, and the section as `section`. It begins with the heading, whose id is the section's. Markdown shows the
content's blocks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from counterpoint.report.run import ReportedRun
from counterpoint.report.tables import Table


@dataclass(frozen=True)
class Facts:
    """Names, and what there is to say of each."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Code:
    """Lines to be copied as they are."""

    text: str


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


Part = str | Table | Chart | Plot | Facts | Code
"""A paragraph, or one of the others."""


@dataclass(frozen=True)
class Block:
    """Some of a section under a heading of its own; None stands for a part that there is not."""

    title: str
    parts: tuple[Part | None, ...]


@dataclass(frozen=True)
class Panel:
    """Something that a switch on the page shows, with others of its kind hidden. `key` is its id there."""

    key: str
    label: str


class Content(ABC):
    """What a section shows."""

    @property
    def panels(self) -> Sequence[Panel]:
        return ()

    @abstractmethod
    def blocks(self) -> Iterable[Block]:
        """The same in order, for formats without a layout. Of a picture they show the numbers."""


@dataclass(frozen=True)
class Section:
    id: str
    title: str  # among the contents
    build: Callable[[Sequence[ReportedRun]], Content | None]
    template: str
