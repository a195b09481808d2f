from dataclasses import replace
from xml.etree import ElementTree

from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.recalibrations.charts import moves_topic, recalibrations_together
from counterpoint.report.recalibrations.words import compared_ways
from counterpoint.report.run import label_runs
from tests.report.made import OFFICIAL, MakeEvaluated, changed

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


def test_the_runs_with_and_without_recalibration_share_a_plot(make_evaluated: MakeEvaluated) -> None:
    runs = label_runs([make_evaluated(name, members=2, shifted=True, more=True) for name in "ab"])
    (plot,) = recalibrations_together(runs)
    groups = [one for one in ElementTree.fromstring(plot.svg) if one.tag == "g"]
    assert [(one.get("class"), one.get("data-run")) for one in groups] == [
        ("series dashed run-1", "0"),
        ("series solid run-1", "0"),
        ("series dashed run-2", "1"),
        ("series solid run-2", "1"),
    ]
    (table,) = plot.tables
    found, corrupted = runs[0].evaluated.recalibrated, runs[0].results.corrupted
    assert found is not None
    assert corrupted is not None
    scaled = found.ways[compared_ways(found)[-1]].corrupted
    assert scaled is not None
    shown = [row.entries[1].text for row in table.rows]
    assert shown == [f"{100 * figures.ece_width15:.2f}" for figures in scaled.severities]
    assert [row.label for row in table.rows] == [f"Severity {i}" for i in range(1, 6)]
    assert "without recalibration\nECE " in (groups[0].findtext("*/title") or "")


def test_a_run_without_recalibration_stands_beside_one_that_has_it(make_evaluated: MakeEvaluated) -> None:
    having = make_evaluated("a", members=1, shifted=True, more=True)
    (plot,) = recalibrations_together(label_runs([having, make_evaluated("b", members=1, shifted=True)]))
    assert [len(row.entries) for row in plot.tables[0].rows] == 5 * [3]


def test_a_clean_point_is_recalibrated_too(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated(name, members=1, shifted=True, more=True) for name in "ab")
    runs = label_runs([changed(one, "results.evaluated_on.images", 40), other])
    (plot,) = recalibrations_together(runs)
    first = plot.tables[0].rows[0]
    found = one.recalibrated
    assert found is not None
    ece = found.ways[compared_ways(found)[-1]].clean.ensemble.ece_width15
    assert (first.label, first.entries[1].text) == ("Clean", f"{100 * ece:.2f}")
    assert [entry.text for entry in first.entries[2:]] == ["–", "–"]


def test_nothing_to_compare(make_evaluated: MakeEvaluated) -> None:
    one, other = (make_evaluated(name, members=1, shifted=True, more=True) for name in "ab")
    plain = make_evaluated("c", members=1, shifted=True)
    assert recalibrations_together(label_runs([one])) == ()
    assert recalibrations_together(label_runs([plain, plain])) == ()
    apart = changed(other, "results.corrupted.source", OFFICIAL)
    assert recalibrations_together(label_runs([one, apart])) == (), "other images"
