"""The printed figures: counted, some checked by hand, and all of them against the paper's source where it is there."""

import re
from dataclasses import astuple
from pathlib import Path

import pytest

from counterpoint.experiments import EXPERIMENTS
from counterpoint.experiments.paper import PAPER, PaperFigures

SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "diverse-ensembles.tex"
FIGURE = re.compile(r"\d+\.\d+")


def test_there_are_36_rows_and_216_figures() -> None:
    figures = [figure for row in PAPER.values() for figure in (*astuple(row.clean), *astuple(row.corrupted))]
    assert len(PAPER) == 36
    assert len(figures) == 216
    assert all(0 < figure < 1 for figure in figures)


def test_the_rows_are_the_experiments() -> None:
    assert set(PAPER) == {name for name in EXPERIMENTS if not name.startswith("digits/")}
    counts = [sum(row.table == table for row in PAPER.values()) for table in (1, 2, 3)]
    assert counts == [16, 14, 6]


@pytest.mark.parametrize(
    ("name", "table", "label", "clean", "corrupted"),
    [
        ("cifar10/single", 2, "Vanilla ResNeXt", (4.18, 1.25, 3.20), (26.5, 13.5, 15.4)),
        ("cifar100/single", 2, "Vanilla ResNeXt", (21.0, 6.88, 8.06), (50.1, 19.9, 22.1)),
        ("cifar100/be+sd-not-diverse", 2, "B.E. + S.D. (not diverse)", (19.9, 9.91, 11.7), (50.2, 28.7, 30.3)),
        ("cifar10/am-bern-0.875", 1, "AM Bern. (p=0.875)", (3.46, 1.26, 2.63), (11.5, 4.78, 6.147)),
        (
            "cifar10/am-bern-0.875+adv/test",
            1,
            "AM Bern. (p=0.875) + Adv., test",
            (3.13, 1.00, 1.88),
            (10.6, 4.08, 5.40),
        ),
        ("cifar100/single-am-beta", 3, "AM (no B.E.) Beta", (22.4, 8.22, 10.1), (37.8, 15.7, 17.4)),
    ],
)
def test_some_rows_by_hand(
    name: str, table: int, label: str, clean: tuple[float, ...], corrupted: tuple[float, ...]
) -> None:
    row = PAPER[name]
    assert (row.table, row.label) == (table, label)
    assert _percents(row.clean) == pytest.approx(clean)
    assert _percents(row.corrupted) == pytest.approx(corrupted)


@pytest.mark.skipif(not SOURCE.exists(), reason="the paper's source is not beside this repository")
def test_every_figure_is_the_papers() -> None:
    """Read from the other end: the source's lines with six figures, the first half of a table's clean, then -C."""
    tables = re.findall(r"\\begin\{table\*\}.*?\\end\{table\*\}", SOURCE.read_text(encoding="utf-8"), re.DOTALL)
    for number, tex in enumerate(tables, 1):
        cells = [line.split("&") for line in tex.splitlines()]
        printed = [
            (_label(line[0]), [float(FIGURE.findall(cell)[0]) for cell in line[1:]])
            for line in cells
            if len(line) == 7 and all(FIGURE.search(cell) for cell in line[1:])
        ]
        half = len(printed) // 2
        for i, dataset in enumerate(("cifar10", "cifar100")):
            rows = [row for name, row in PAPER.items() if row.table == number and name.startswith(f"{dataset}/")]
            assert [row.label.removesuffix(", test") for row in rows] == [label for label, _ in printed[:half]]
            assert [row.label.removesuffix(", test") for row in rows] == [label for label, _ in printed[half:]]
            for row, (_, clean), (_, corrupted) in zip(rows, printed[:half], printed[half:], strict=True):
                assert _percents(row.clean) == pytest.approx(clean[3 * i : 3 * i + 3])
                assert _percents(row.corrupted) == pytest.approx(corrupted[3 * i : 3 * i + 3])


def _percents(figures: PaperFigures) -> list[float]:
    return [100 * value for value in astuple(figures)]


def _label(cell: str) -> str:
    return " ".join(cell.replace("\\ ", " ").replace("$", "").split())
