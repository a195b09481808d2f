"""The tables of a page, and the committed results that their figures are of."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from tests.docs.pages import ROOT

RESULTS = ROOT / "results"
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
Record = dict[str, Any]


@cache
def record(name: str) -> Record:
    found: Record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(page: str, heading: str) -> list[list[str]]:
    """The rows below the heading row that begins so, each as its cells. An empty label is that of the row above."""
    _, *rows = table_with_heading(page, heading)
    return rows


def table_with_heading(page: str, heading: str) -> list[list[str]]:
    """The same with the heading row first."""
    lines = (ROOT / page).read_text(encoding="utf-8").replace("−", "-").splitlines()
    (start,) = [number for number, line in enumerate(lines) if line.startswith(heading)]
    rows = [_cells(lines[start])]
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        label, *cells = _cells(line)
        rows.append([label or rows[-1][0], *cells])
    assert len(rows) > 1
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" |")]


def agree(cells: Iterable[str], expected: Iterable[float]) -> bool:
    """Whether the numbers in the cells are these, rounded. A half may be rounded up or down: files are rounded too."""
    shown = [number.replace(",", "") for cell in cells for number in NUMBER.findall(cell)]
    pairs = list(zip(shown, expected, strict=True))
    return all(abs(float(text) - value) <= 0.5001 * 10 ** -len(text.partition(".")[2]) for text, value in pairs)


def rows_with_results(rows: Iterable[list[str]]) -> Iterator[tuple[str, int, list[str]]]:
    """The row of the paper, its seed and the cells of each line. "The same, seed 1" is of the row above."""
    name = ""
    for label, *cells in rows:
        if named := re.search(r"`((?:cifar\d+/)?[a-z][^`]*)`", label):
            dataset = re.match(r"cifar\d+/", named[1]) or re.match(r"cifar\d+/", name)
            name = named[1] if "/" in named[1] else f"{dataset[0] if dataset else 'cifar100/'}{named[1]}"
        elif "the same" not in label:
            continue
        seed = re.search(r"seed (\d)", label)
        yield name, int(seed[1]) if seed else 0, cells


def result(row: str, seed: int = 0) -> Record:
    return record(f"{row}/paper-{seed}")


def trained() -> set[tuple[str, int]]:
    """The paper's rows that have results at its schedule, with each of their seeds."""
    paths = (path for dataset in ("cifar10", "cifar100") for path in (RESULTS / dataset).glob("*/paper-*.json"))
    return {(f"{path.parts[-3]}/{path.parts[-2]}", int(path.stem.removeprefix("paper-"))) for path in paths}


def on_c(found: Record) -> Record:
    by_corruption: Record = found["corrupted"]["aggregates"]["ensemble"]["by-corruption"]
    return by_corruption


def percent(*values: float) -> list[float]:
    return [100 * value for value in values]


def headline(found: Record) -> list[float]:
    clean, shifted = found["clean"]["ensemble"], on_c(found)
    return percent(clean["error"], clean["ece_width15"], shifted["error"], shifted["ece_width15"])


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))
