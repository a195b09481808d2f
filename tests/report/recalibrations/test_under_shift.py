from dataclasses import replace

import pytest

from counterpoint.metrics import ece, image_scores
from counterpoint.metrics.scores import join_scores
from counterpoint.records.files import Evaluated
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.recalibrations import Topic
from counterpoint.report.recalibrations.under_shift import corruptions_topic, pooled_figures, severities_topic
from counterpoint.report.recalibrations.words import compared_ways
from counterpoint.report.run import ReportedRun
from counterpoint.report.suites import corruption_label, papers_suite
from counterpoint.report.tables import Table
from tests.report import made
from tests.report.made import MakeEvaluated, changed


def topic_of(run: Evaluated) -> Topic:
    shifted = papers_suite(ReportedRun("mine", run))
    assert shifted is not None
    return severities_topic(shifted, record_of(run))


def table_of(run: Evaluated) -> Table:
    chart = topic_of(run).chart
    assert chart is not None
    return chart.table


UNCHOSEN = "after"
"""The recalibration of the made record with the lowest NLL on validation images."""


def record_of(run: Evaluated) -> Recalibrated:
    assert run.recalibrated is not None
    return run.recalibrated


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    return make_evaluated(members=3, shifted=True, more=True)


def test_what_is_compared(make_evaluated: MakeEvaluated, evaluated: Evaluated) -> None:
    found = record_of(evaluated)
    assert compared_ways(found) == ["before", "by disagreement"]
    assert compared_ways(replace(found, choice=None)) == ["before", UNCHOSEN], "predict uses it"
    assert compared_ways(changed(found, "choice.chosen", "before")) == ["before"]
    assert compared_ways(record_of(make_evaluated(members=4, shifted=True, more=True))) == ["before"], "none is chosen"
    without = {name: scaled for name, scaled in found.ways.items() if name != "before"}
    assert compared_ways(replace(found, ways=without)) == ["by disagreement"]
    assert compared_ways(replace(found, ways=without, choice=None)) == [UNCHOSEN]


def test_figures_without_recalibration_are_those_of_the_pooled_images(evaluated: Evaluated) -> None:
    assert evaluated.results.corrupted is not None
    grid, labels = made._grid(3)
    joined = join_scores([image_scores(made._mean_probs(row[1]), labels) for row in grid.values()])
    found = pooled_figures([row[1] for row in evaluated.results.corrupted.cells.values()])
    assert found == pytest.approx(
        {
            "ece_width15": ece(joined.confidence, joined.correct),
            "nll": float(joined.nll.mean()),
            "brier": float(joined.brier.mean()),
        }
    )


def test_clean_images_each_severity_and_all_of_them(evaluated: Evaluated) -> None:
    rows = table_of(evaluated).rows
    assert [row.label for row in rows[::3]] == [
        f"{images}, no recalibration" for images in ("Clean", *(f"Severity {i}" for i in range(1, 6)), "-C")
    ]
    assert {row.label for row in rows[1::3]} == {"before averaging"}
    assert {row.label for row in rows[2::3]} == {"chosen: by disagreement"}


def test_every_figure_is_that_of_its_images(evaluated: Evaluated) -> None:
    rows = table_of(evaluated).rows
    for place, name in ((1, "before"), (2, "by disagreement")):
        scaled = record_of(evaluated).ways[name]
        assert scaled.corrupted is not None
        figures = [scaled.clean.ensemble, *scaled.corrupted.severities, scaled.corrupted.ensemble["by-corruption"]]
        for row, one in zip(rows[place::3], figures, strict=True):
            expected = [f"{100 * one.ece_width15:.2f}", f"{one.nll:.3f}", f"{one.brier:.3f}"]
            assert [entry.text for entry in row.entries[:3]] == expected
    aggregate = evaluated.results.corrupted and evaluated.results.corrupted.aggregates.ensemble["by-corruption"]
    assert aggregate
    assert rows[18].entries[1].text == f"{aggregate.nll:.3f}"


def test_the_best_of_some_images_is_marked(evaluated: Evaluated) -> None:
    rows = table_of(evaluated).rows
    for first in range(0, len(rows), 3):
        for column in range(3):
            entries = [row.entries[column] for row in rows[first : first + 3]]
            lowest = min(float(entry.text) for entry in entries)
            assert [entry.best for entry in entries] == [float(entry.text) == lowest for entry in entries]


def test_differences_with_their_intervals(evaluated: Evaluated) -> None:
    rows = table_of(evaluated).rows
    assert {entry.text for row in rows[::3] for entry in row.entries[3:]} == {"–"}, "from itself"
    clean = record_of(evaluated).ways["before"].clean.differences
    assert clean is not None
    assert f"{clean.nll.difference:.3f}".lstrip("-") in rows[1].entries[4].text
    corrupted = record_of(evaluated).ways["before"].corrupted
    assert corrupted is not None
    assert corrupted.differences is not None
    nll, ece_ = corrupted.differences.severities[4].nll, corrupted.calibration_differences[4].ece_width15_debiased
    assert ece_ is not None
    assert rows[16].entries[4].text == f"{nll.difference:+.3f} ({nll.low:+.3f} to {nll.high:+.3f})"
    shown = (f"{100 * value:+.2f}".replace("-", "−") for value in (ece_.difference, ece_.low, ece_.high))
    assert rows[16].entries[3].text == "{} ({} to {})".format(*shown)
    brier = corrupted.differences.mean.brier
    assert rows[19].entries[5].text.startswith(f"{brier.difference:+.3f} (")


def test_without_differences_there_are_dashes(evaluated: Evaluated) -> None:
    found = changed(evaluated, "recalibrated.ways.before.corrupted.differences", None)
    found = changed(found, "recalibrated.ways.before.corrupted.calibration_differences", ())
    found = changed(found, "recalibrated.ways.before.clean.differences", None)
    assert {entry.text for row in table_of(found).rows[1::3] for entry in row.entries[3:]} == {"–"}


def test_a_chart_of_the_three_and_a_sentence(evaluated: Evaluated) -> None:
    topic = topic_of(evaluated)
    assert topic.legend == (
        ("first", "no recalibration"),
        ("second", "before averaging"),
        ("third", "chosen: by disagreement"),
    )
    assert topic.chart is not None
    assert topic.chart.svg.count("<path") == 3
    assert topic.chart.svg.count("<circle") == 3 * 5, "the clean images are others"
    corrupted = evaluated.results.corrupted
    assert corrupted is not None
    eces = [corrupted.aggregates.ensemble["by-corruption"].ece_width15]
    eces += [
        scaled.corrupted.ensemble["by-corruption"].ece_width15
        for name in ("before", "by disagreement")
        if (scaled := record_of(evaluated).ways[name]).corrupted
    ]
    shown = [f"{100 * value:.2f}\N{NO-BREAK SPACE}%" for value in eces]
    assert topic.words[0] == (
        f"On -C (by-corruption) the ECE is {shown[0]} without recalibration, {shown[1]} with “before averaging” and "
        f"{shown[2]} with “by disagreement” (chosen)."
    )


def test_the_clean_images_are_in_the_chart_where_they_are_the_same(evaluated: Evaluated) -> None:
    topic = topic_of(changed(evaluated, "results.evaluated_on.images", made.CELL_IMAGES))
    assert topic.chart is not None
    assert topic.chart.svg.count("<circle") == 3 * 6


def test_where_nothing_is_chosen_the_last_is_what_predict_uses(make_evaluated: MakeEvaluated) -> None:
    for run in (
        make_evaluated(members=4, shifted=True, more=True),
        changed(make_evaluated(members=3, shifted=True, more=True), "recalibrated.choice", None),
    ):
        topic = topic_of(run)
        is_none = record_of(run).choice is not None
        assert topic.legend == (
            ("first", "chosen: no recalibration" if is_none else "no recalibration"),
            ("second", "before averaging"),
            *([] if is_none else [("third", "after averaging")]),
        )


def corruptions_of(run: Evaluated) -> Topic:
    shifted = papers_suite(ReportedRun("mine", run))
    assert shifted is not None
    topic = corruptions_topic(shifted, record_of(run))
    assert topic is not None
    return topic


def changes(run: Evaluated, name: str) -> dict[str, tuple[float, float]]:
    """Of each corruption the change of ECE and of NLL."""
    assert run.recalibrated is not None
    assert run.results.corrupted is not None
    corrupted = run.recalibrated.ways[name].corrupted
    assert corrupted is not None
    found = {}
    for corruption, cells in run.results.corrupted.cells.items():
        plain, scaled = pooled_figures(cells), corrupted.corruptions[corruption]
        found[corruption_label(corruption)] = scaled.ece_width15 - plain["ece_width15"], scaled.nll - plain["nll"]
    return found


@pytest.mark.parametrize(("has_choice", "name"), [(True, "by disagreement"), (False, UNCHOSEN)])
def test_each_corruption_with_the_worst_first(evaluated: Evaluated, has_choice: bool, name: str) -> None:
    run = evaluated if has_choice else changed(evaluated, "recalibrated.choice", None)
    (table,) = corruptions_of(run).tables
    expected = changes(run, name)
    assert [row.label for row in table.rows] == sorted(expected, key=lambda label: -expected[label][0])
    for row in table.rows:
        ece, nll = expected[row.label]
        without, with_it, difference, in_nll = (entry.text for entry in row.entries)
        assert difference == f"{100 * ece:+.2f}".replace("-", "−")
        assert float(with_it) - float(without) == pytest.approx(100 * ece, abs=0.011)
        assert in_nll.replace("−", "-") in (f"{nll:+.3f}", "0.000")


def test_those_that_get_worse_are_named(evaluated: Evaluated) -> None:
    (words,) = corruptions_of(evaluated).words
    found = sorted(((ece, label) for label, (ece, _) in changes(evaluated, "by disagreement").items()), reverse=True)
    worse = [f"{label} (+{100 * ece:.2f} points)" for ece, label in found if ece > 0.00005]
    assert 0 < len(worse) < 15
    assert words == (
        f"With “by disagreement”, the ECE is higher on {len(worse)} of the 15 corruptions: {', '.join(worse)}. These "
        "differences have no intervals."
    )


def test_where_none_gets_worse(evaluated: Evaluated) -> None:
    assert evaluated.recalibrated is not None
    corrupted = evaluated.recalibrated.ways["by disagreement"].corrupted
    assert corrupted is not None
    good = {name: changed(figures, "ece_width15", 0.0) for name, figures in corrupted.corruptions.items()}
    run = changed(evaluated, "recalibrated.ways.by disagreement.corrupted.corruptions", good)
    assert corruptions_of(run).words == ("With “by disagreement”, the ECE is higher on none of the 15 corruptions.",)
