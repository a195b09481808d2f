from dataclasses import replace

import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report import render, to_markdown
from counterpoint.report.recalibrations import Topic
from counterpoint.report.run import AGGREGATES, ReportedRun
from counterpoint.report.section import Chart
from counterpoint.report.sections.recalibration import RunRecalibration, recalibration, ways_table
from tests.report.made import MakeEvaluated, changed, changed_all

WAYS = [
    "before averaging",
    "after averaging",
    "one per member",
    "before averaging, shifted",
    "after averaging, shifted",
    "one per member, shifted",
    "by entropy",
    "by disagreement",
    "by entropy and disagreement",
]
CHOICE, HOW, FITTED, EACH, SEVERITIES, CORRUPTIONS, MOVES = (
    "The chosen recalibration",
    "How it was chosen",
    "Fitted temperatures",
    "Figures with each recalibration",
    "At each severity",
    "On each corruption",
    "Temperatures of the images",
)


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    return make_evaluated(members=3, shifted=True, more=True)


def of_run(evaluated: Evaluated) -> RunRecalibration:
    content = recalibration([ReportedRun("mine", evaluated)])
    assert content is not None
    (found,) = content.runs
    return found


def test_which_of_them_predict_uses(evaluated: Evaluated) -> None:
    found = evaluated.recalibrated
    assert found is not None
    ways = {name: replace(way, validation_nll=0.1 if name == "after" else 0.2) for name, way in found.ways.items()}
    lowest = replace(evaluated, recalibrated=replace(found, ways=ways, choice=None))
    used = "The commands predict, serve and export use “after averaging”: it has the lowest NLL on validation images."
    assert topic_of(lowest, FITTED).words[-1] == used


def titles(evaluated: Evaluated) -> list[str]:
    return [topic.title for topic in of_run(evaluated).topics]


def topic_of(evaluated: Evaluated, title: str = EACH) -> Topic:
    return next(topic for topic in of_run(evaluated).topics if topic.title == title)


def chart_of(evaluated: Evaluated) -> Chart:
    chart = topic_of(evaluated).chart
    assert chart is not None
    return chart


def record_of(evaluated: Evaluated) -> Recalibrated:
    assert evaluated.recalibrated is not None
    return evaluated.recalibrated


def test_what_there_is_to_say(make_evaluated: MakeEvaluated, evaluated: Evaluated) -> None:
    everything = [CHOICE, HOW, FITTED, EACH, SEVERITIES, CORRUPTIONS, MOVES]
    assert titles(evaluated) == everything
    assert titles(make_evaluated(members=4, shifted=True, more=True)) == everything, "none is chosen"
    assert titles(make_evaluated(members=1, shifted=True, more=True)) == everything
    assert titles(changed(evaluated, "recalibrated.choice", None)) == everything[2:]
    assert titles(make_evaluated(members=3, more=True)) == [CHOICE, HOW, FITTED, EACH, MOVES]
    ways = {name: record_of(evaluated).ways[name] for name in ("before", "after")}
    clean = changed_all(evaluated, {"recalibrated.ways": ways, "recalibrated.choice": None})
    assert titles(clean) == [FITTED, EACH, SEVERITIES, CORRUPTIONS]


def test_every_way_with_the_chosen_one_marked(evaluated: Evaluated) -> None:
    labels = [row.label for row in chart_of(evaluated).table.rows]
    assert labels == ["no recalibration", *WAYS[:-2], "chosen: by disagreement", WAYS[-1]]
    without = changed(evaluated, "recalibrated.choice", None)
    assert [row.label for row in chart_of(without).table.rows] == ["no recalibration", *WAYS]


def test_every_figure_is_that_of_its_set(evaluated: Evaluated) -> None:
    ways, table = record_of(evaluated).ways.values(), chart_of(evaluated).table
    column = [column.label for column in table.columns].index("NLL") - 1
    clean = [evaluated.results.clean.ensemble.nll, *(scaled.clean.ensemble.nll for scaled in ways)]
    assert [row.entries[column].text for row in table.rows] == [f"{value:.3f}" for value in clean]
    topic = topic_of(evaluated)
    by_aggregate = [*topic.tables, *topic.more[-2:]]
    assert [one.caption.rsplit(", ", 1)[1] for one in by_aggregate] == list(AGGREGATES)
    assert evaluated.results.corrupted is not None
    for one, aggregate in zip(by_aggregate, AGGREGATES, strict=True):
        column = [column.label for column in one.columns].index("ECE") - 1
        plain = evaluated.results.corrupted.aggregates.ensemble[aggregate]
        shifted = [plain, *(scaled.corrupted.ensemble[aggregate] for scaled in ways if scaled.corrupted)]
        assert [row.entries[column].text for row in one.rows] == [
            f"{100 * figures.ece_width15:.2f}" for figures in shifted
        ]


def test_members_stand_below_their_ensemble(evaluated: Evaluated) -> None:
    topic = topic_of(evaluated)
    clean, shifted, *_ = topic.more
    assert topic.more_title == "Each member, and the other two aggregates"
    assert [row.kind for row in clean.rows] == 10 * ["run", "member", "member", "member"]
    after = record_of(evaluated).ways["after"].corrupted
    assert after is not None
    column = [column.label for column in shifted.columns].index("NLL") - 1
    assert shifted.rows[10].entries[column].text == f"{after.members[1]['by-corruption'].nll:.3f}"


def test_one_network_has_no_members(make_evaluated: MakeEvaluated) -> None:
    topic = topic_of(make_evaluated(members=1, shifted=True, more=True))
    assert topic.chart is not None
    assert [row.label for row in topic.chart.table.rows] == [
        "no recalibration",
        "one for all images",
        "chosen: one for all images, shifted",
        "by entropy",
    ]
    assert topic.more_title == "The other two aggregates"
    assert len(topic.more) == 2


def test_without_a_corrupted_set(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=3, more=True)
    topic = topic_of(run)
    assert topic.chart is not None
    assert "corrupted" not in topic.chart.svg
    assert (topic.tables, len(topic.more), topic.more_title) == ((), 1, "Each member")
    assert topic.legend == (("clean", "clean images"),)
    *_, used = topic_of(run, FITTED).words
    assert used == "The commands predict, serve and export use “by disagreement”: it was chosen."


def test_how_many_predictions_change(make_evaluated: MakeEvaluated, evaluated: Evaluated) -> None:
    share = "1.00\N{NO-BREAK SPACE}%"
    changing = f"A recalibration changes the predicted class of at most {share} of the clean images"
    assert topic_of(make_evaluated(members=3, more=True)).words == (f"{changing}.",)
    assert topic_of(evaluated).words == (
        f"{changing}, and of at most {share.replace('1', '2')} of the corrupted ones.",
    )
    ways = {
        name: changed_all(scaled, {"clean.changed_predictions": 0.0, "corrupted.changed_predictions": 0.0})
        for name, scaled in record_of(evaluated).ways.items()
    }
    still = topic_of(changed(evaluated, "recalibrated.ways", ways))
    assert still.words == ("No recalibration changes a predicted class.",)


def test_runs_without_a_recalibration(make_evaluated: MakeEvaluated) -> None:
    assert recalibration([ReportedRun("a", make_evaluated(members=1))]) is None


def test_the_page_and_markdown_have_every_number_of_every_topic(evaluated: Evaluated) -> None:
    page, text = render([evaluated]), to_markdown([evaluated])
    for topic in of_run(evaluated).topics:
        tables = [*([topic.chart.table] if topic.chart else []), *topic.tables, *topic.more]
        assert tables or topic.title == CHOICE
        for row in (row for table in tables for row in table.rows):
            assert all(f">{entry.text}<" in page or entry.best for entry in row.entries)
            shown = (f"**{entry.text}**" if entry.best else entry.text for entry in row.entries)
            assert f"| {row.label} | {' | '.join(shown)} |".replace("\N{NO-BREAK SPACE}", " ") in text


def test_the_headlines_of_every_way(evaluated: Evaluated) -> None:
    record = record_of(evaluated)
    table = ways_table(record, evaluated.results)
    assert [column.label for column in table.columns] == ["Temperature", "NLL", "ECE", "NLL on -C", "ECE on -C"]
    assert [row.label for row in table.rows] == ["no recalibration", *WAYS]
    plain = evaluated.results
    assert plain.corrupted is not None
    expected = [(plain.clean.ensemble, plain.corrupted.aggregates.ensemble["by-corruption"])]
    for scaled in record.ways.values():
        assert scaled.corrupted is not None
        expected.append((scaled.clean.ensemble, scaled.corrupted.ensemble["by-corruption"]))
    for row, figures in zip(table.rows, expected, strict=True):
        assert [entry.text for entry in row.entries] == [
            text for one in figures for text in (f"{one.nll:.3f}", f"{100 * one.ece_width15:.2f}")
        ]


def test_the_headlines_without_a_corrupted_set(make_evaluated: MakeEvaluated, evaluated: Evaluated) -> None:
    record = record_of(evaluated)
    one_without = replace(record, ways={**record.ways, "after": replace(record.ways["after"], corrupted=None)})
    for found in (record_of(make_evaluated(members=3, more=True)), one_without):
        table = ways_table(found, evaluated.results)
        assert [column.label for column in table.columns] == ["Temperature", "NLL", "ECE"]
        assert {len(row.entries) for row in table.rows} == {2}
        assert "-C" not in table.caption
