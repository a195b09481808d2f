import pytest

from counterpoint.report.tables import METRICS, signed


def test_the_units_say_which_figures_are_percentages() -> None:
    assert {metric.key for metric in METRICS if not metric.column.unit.endswith("%")} == {
        "nll",
        "brier",
        "overconfidence",
        "pairwise_kl",
    }


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.1234, "+12.34"), (-0.05, "−5.00"), (0.0, "0.00"), (-0.00004, "0.00"), (0.00004, "0.00")]
)
def test_signed(fraction: float, text: str) -> None:
    assert signed(fraction) == text
