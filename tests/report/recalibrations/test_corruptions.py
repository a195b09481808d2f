import pytest

from counterpoint.records.files import Evaluated
from counterpoint.report.recalibrations.corruptions import corruptions_topic
from counterpoint.report.recalibrations.topic import Topic
from counterpoint.report.recalibrations.under_shift import pooled_figures
from counterpoint.report.run import ReportedRun
from counterpoint.report.suites import corruption_label, papers_suite
from tests.report.made import MakeEvaluated, changed


@pytest.fixture
def evaluated(make_evaluated: MakeEvaluated) -> Evaluated:
    return make_evaluated(members=3, shifted=True, more=True)


def topic_of(run: Evaluated) -> Topic:
    shifted = papers_suite(ReportedRun("mine", run))
    assert shifted is not None
    assert run.recalibrated is not None
    topic = corruptions_topic(shifted, run.recalibrated)
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


@pytest.mark.parametrize(("has_choice", "name"), [(True, "by disagreement"), (False, "before")])
def test_each_corruption_with_the_worst_first(evaluated: Evaluated, has_choice: bool, name: str) -> None:
    run = evaluated if has_choice else changed(evaluated, "recalibrated.choice", None)
    (table,) = topic_of(run).tables
    expected = changes(run, name)
    assert [row.label for row in table.rows] == sorted(expected, key=lambda label: -expected[label][0])
    for row in table.rows:
        ece, nll = expected[row.label]
        without, with_it, difference, in_nll = (entry.text for entry in row.entries)
        assert difference == f"{100 * ece:+.2f}".replace("-", "−")
        assert float(with_it) - float(without) == pytest.approx(100 * ece, abs=0.011)
        assert in_nll.replace("−", "-") in (f"{nll:+.3f}", "0.000")


def test_those_that_get_worse_are_named(evaluated: Evaluated) -> None:
    (words,) = topic_of(evaluated).words
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
    assert topic_of(run).words == ("With “by disagreement”, the ECE is higher on none of the 15 corruptions.",)
