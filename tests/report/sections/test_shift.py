from collections.abc import Callable
from typing import Any

from counterpoint.report.run import ReportedRun
from counterpoint.report.sections.shift import shift_tables, under_shift

MakeResults = Callable[..., dict[str, Any]]


def test_shift_tables_are_one_per_aggregate(make_results: MakeResults) -> None:
    results = make_results(members=2, shifted=True)
    tables = shift_tables([ReportedRun("mine", results)])
    assert list(tables) == ["by-corruption", "by-cell", "pooled"]
    for aggregate, (table,) in tables.items():
        assert table.caption.endswith(f"frost from a made texture, 40 images per cell: {aggregate}")
        aggregates = results["corrupted"]["aggregates"]
        scores = [aggregates["ensemble"][aggregate], *(member[aggregate] for member in aggregates["members"])]
        assert [row.label for row in table.rows] == ["mine", "member 1", "member 2"]
        assert [row.entries[3].text for row in table.rows] == [f"{100 * one['ece_width15']:.2f}" for one in scores]


def test_different_corrupted_sets_are_not_compared(make_results: MakeResults) -> None:
    one, two = make_results(members=1, shifted=True), make_results(members=1, shifted=True)
    two["evaluated_on"]["part"] = "validation"
    assert len(shift_tables([ReportedRun("a", one), ReportedRun("b", two)])["pooled"]) == 1
    two["corrupted"]["source"] = {"kind": "official"}
    assert [
        [row.label for row in table.rows]
        for table in shift_tables([ReportedRun("a", one), ReportedRun("b", two)])["pooled"]
    ] == [
        ["a"],
        ["b"],
    ]


def test_without_a_corrupted_set(make_results: MakeResults) -> None:
    assert under_shift([ReportedRun("plain", make_results(members=1))]) is None
