from dataclasses import replace

from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.recalibrations.moves import moves_topic
from tests.report.made import MakeEvaluated, changed

MOVING = ("by entropy", "by disagreement", "by both")


def record(make_evaluated: MakeEvaluated, members: int, shifted: bool = True) -> Recalibrated:
    found = make_evaluated(members=members, shifted=shifted, more=True).recalibrated
    assert found is not None
    return found


def test_temperatures_beside_the_signals_they_follow(make_evaluated: MakeEvaluated) -> None:
    found = record(make_evaluated, 3)
    topic = moves_topic("mine", found)
    assert topic is not None
    assert topic.chart is not None
    table = topic.chart.table
    assert [(column.label, column.unit) for column in table.columns[1:]] == [
        ("Entropy", "%"),
        ("Disagreement", "%"),
        ("T", "by entropy"),
        ("T", "chosen: by disagreement"),
        ("T", "by entropy and disagreement"),
    ]
    assert [row.label for row in table.rows] == ["Clean", *(f"Severity {i}" for i in range(1, 6))]
    moves = [found.ways[name].moves for name in MOVING]
    for row, *of_ways in zip(table.rows, *moves, strict=True):
        signals = [f"{100 * value:.2f}" for value in (of_ways[0].entropy, of_ways[0].disagreement)]
        assert [entry.text for entry in row.entries] == [*signals, *(f"{one.temperature:.2f}" for one in of_ways)]
    assert topic.chart.svg.count("<path") == 3
    assert [words for _, words in topic.legend] == [column.unit for column in table.columns[3:]]


def test_one_network_has_no_disagreement(make_evaluated: MakeEvaluated) -> None:
    topic = moves_topic("mine", record(make_evaluated, 1))
    assert topic is not None
    assert topic.chart is not None
    assert [column.label for column in topic.chart.table.columns] == ["Images", "Entropy", "T"]
    assert "members" not in topic.words[0]


def test_without_corrupted_images_there_is_one_point(make_evaluated: MakeEvaluated) -> None:
    topic = moves_topic("mine", record(make_evaluated, 3, shifted=False))
    assert topic is not None
    assert topic.chart is not None
    assert [row.label for row in topic.chart.table.rows] == ["Clean"]
    assert " to " not in topic.chart.caption


def test_images_that_only_one_has(make_evaluated: MakeEvaluated) -> None:
    found = record(make_evaluated, 3)
    shorter = changed(found, "ways.by both.moves", found.ways["by both"].moves[:2])
    topic = moves_topic("mine", shorter)
    assert topic is not None
    assert topic.chart is not None
    assert [row.entries[-1].text for row in topic.chart.table.rows][2:] == 4 * ["–"]
    assert topic.chart.svg.count("<path") == len(topic.legend) == 2


def test_temperatures_that_do_not_move(make_evaluated: MakeEvaluated) -> None:
    found = record(make_evaluated, 2)
    still = {name: replace(scaled, moves=()) for name, scaled in found.ways.items()}
    assert moves_topic("mine", replace(found, ways=still)) is None
