"""A CSV file that lists images: the columns path and label, and optionally part and group."""

import csv
from pathlib import Path
from typing import NamedTuple

from counterpoint.errors import InputError, unknown
from counterpoint.images.fence import Fence
from counterpoint.images.listing import PARTS, Listing, check_names_no_parts, printable

_COLUMNS = ("path", "label", "part", "group")


class _Line(NamedTuple):
    number: int
    path: str
    label: str
    part: str
    group: str


def list_table(source: Path) -> Listing:
    """The images in the order of the lines. Paths are relative to the file's folder and must lie in it."""
    try:
        # utf-8-sig: spreadsheets put a byte order mark first.
        with source.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True, skipinitialspace=True)
            header = next(rows, [])
            columns = _columns(source, header)
            numbered = [(rows.line_num, row) for row in rows if row]
    except OSError as error:
        raise InputError(f"{source} cannot be read ({error.strerror})") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{source} is no CSV file in UTF-8 ({error}); save it as one") from None
    others = {place: name.strip() for place, name in enumerate(header) if place not in columns.values()}
    if "part" not in columns:
        for place, name in others.items():
            what = f"the column {printable(name)!r} of {source}"
            check_names_no_parts(what, (row[place] for _, row in numbered if place < len(row)))
    lines = [_line(source, number, row, columns) for number, row in numbered]
    _check_paths(source, lines)
    classes = tuple(sorted({line.label for line in lines}))
    number = {label: k for k, label in enumerate(classes)}
    return Listing(
        source,
        names=tuple(line.path for line in lines),
        labels=tuple(number[line.label] for line in lines),
        parts=tuple(line.part for line in lines) if "part" in columns else None,
        classes=classes,
        groups=tuple(line.group for line in lines) if "group" in columns else None,
        unread=tuple(printable(name) for name in others.values()),
    )


def _columns(source: Path, header: list[str]) -> dict[str, int]:
    """Where each column is. Other columns than ours may be there and are not read."""
    names = [name.strip() for name in header]
    columns: dict[str, int] = {name: names.index(name) for name in _COLUMNS if name in names}
    if not {"path", "label"} <= columns.keys() or any(names.count(name) > 1 for name in columns):
        raise InputError(
            f"the first line of {source} is {printable(','.join(header))!r}; it must name the columns path and label, "
            "each once and separated by a comma, and may name part and group"
        )
    return columns


def _line(source: Path, number: int, row: list[str], columns: dict[str, int]) -> _Line:
    if len(row) <= max(columns.values()):
        raise InputError(f"line {number} of {source} has {len(row)} values; it must have one for each column")
    path, label = row[columns["path"]], row[columns["label"]].strip()
    part, group = (row[columns[name]].strip() if name in columns else "" for name in ("part", "group"))
    needed = {"path": path, "label": label, **({"group": group} if "group" in columns else {})}
    for name, value in needed.items():
        if not value or "\0" in value:
            raise InputError(f"line {number} of {source} has no usable {name}; every image needs one")
    if "part" in columns and part not in PARTS:
        raise InputError(f"line {number} of {source}: {unknown('part', part, PARTS)}")
    return _Line(number, path, label, part, group)


def _check_paths(source: Path, lines: list[_Line]) -> None:
    """Raise for a path that leads out of the file's folder, and for one that is listed twice."""
    fence = Fence(source.parent)
    first: dict[str, int] = {}
    for line in lines:
        if target := fence.way_out(line.path):
            raise fence.refuse(f"line {line.number} of {source}, {printable(line.path)!r},", target)
        if (before := first.setdefault(line.path, line.number)) != line.number:
            raise InputError(
                f"lines {before} and {line.number} of {source} both list {printable(line.path)!r}; keep one"
            )
