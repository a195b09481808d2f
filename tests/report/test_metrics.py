from counterpoint.records.compared import Difference
from counterpoint.report.metrics import BY_KEY, METRICS, difference_text, shown_difference


def test_the_units_say_which_figures_are_percentages() -> None:
    assert {metric.key for metric in METRICS if not metric.column.unit.endswith("%")} == {
        "nll",
        "brier",
        "overconfidence",
        "pairwise_kl",
    }


def test_a_difference_is_in_the_unit_of_its_metric() -> None:
    assert shown_difference(Difference(0.0123, 0.00004, 0.02), BY_KEY["error"]) == ("+1.230", "+0.004 to +2.000")
    assert shown_difference(Difference(0.008, 0.0001, 0.016), BY_KEY["brier"]) == ("+0.0080", "+0.0001 to +0.0160")
    assert difference_text(Difference(0.0123, 0.00004, 0.02), BY_KEY["error"]) == "+1.230 (+0.004 to +2.000)"
    assert difference_text(None, BY_KEY["error"]) == "–"
