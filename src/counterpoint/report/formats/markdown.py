"""The report as Markdown: the blocks of its sections."""

import html
import re
from collections.abc import Iterable, Sequence

from counterpoint.records.files import Evaluated
from counterpoint.report.run import label_runs, page_title
from counterpoint.report.section import Block, Chart, Code, Facts, Part, Plot
from counterpoint.report.sections import build_sections
from counterpoint.report.tables import Table


def to_markdown(evaluated: Sequence[Evaluated]) -> str:
    """The page's tables and sentences, and what was run.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, to_markdown
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> to_markdown(load_runs(["runs/theirs"])).startswith("# ")
    True
    """
    runs = label_runs(evaluated)
    return markdown_page(page_title(runs), (block for _, content in build_sections(runs) for block in content.blocks()))


def markdown_page(title: str, blocks: Iterable[Block]) -> str:
    """Blocks under a title."""
    parts = [f"# {_plain(title)}", *(part for block in blocks for part in _block(block))]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> list[str]:
    lines = [f"## {_plain(block.title)}"]
    parts = [one for part in block.parts for one in _without_picture(part)]
    for before, part in zip((None, *parts), parts, strict=False):
        # Directly after a list, indented lines would be a part of it, and HTML in them would count.
        lines += ["<!-- -->"] if isinstance(before, Facts) and isinstance(part, Code) else []
        lines.append(_part(part))
    return lines


def _without_picture(part: Part | None) -> Sequence[str | Table | Facts | Code]:
    match part:
        case Chart():
            return (part.table,)
        case Plot():
            return part.tables
        case _:
            return () if part is None else (part,)


def _part(part: str | Table | Facts | Code) -> str:
    match part:
        case Table():
            return _table(part)
        case Facts():
            return "\n".join(f"- {_plain(name)}: {_plain(value)}" for name, value in part.lines)
        case Code():
            return "\n".join(f"    {line}" for line in part.text.splitlines())
        case _:
            return _plain(part)


def _table(table: Table) -> str:
    heads = [_plain(f"{column.label} ({column.unit})" if column.unit else column.label) for column in table.columns]
    lines = [heads, ["---", *("---:" for _ in heads[1:])]]
    for row in table.rows:
        texts = [(_plain(entry.in_one_line), entry.best) for entry in row.entries]
        lines.append([_plain(row.label), *(f"**{text}**" if best else text for text, best in texts)])
    return "\n".join([f"**{_plain(table.caption)}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _plain(text: str) -> str:
    """Text that Markdown takes for nothing else, and browsers for no HTML."""
    # A backslash before < is no escape everywhere.
    return re.sub(r"([\\`*_|\[\]#])", r"\\\1", html.escape(" ".join(text.split()), quote=False))
