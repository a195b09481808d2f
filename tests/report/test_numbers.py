import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.report.numbers import percent_interval, shown_together, signed

REAL = st.floats(-1e6, 1e6, allow_nan=False)


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.1234, "+12.34"), (-0.05, "−5.00"), (0.0, "0.00"), (-0.00004, "0.00"), (0.00004, "0.00")]
)
def test_signed(fraction: float, text: str) -> None:
    assert signed(fraction) == text


def read(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.parametrize(
    ("numbers", "digits", "texts"),
    [
        ((0.6, 0.04, 1.2), 1, ["+0.60", "+0.04", "+1.20"]),
        ((0.6, 0.05, 1.2), 1, ["+0.6", "+0.1", "+1.2"]),
        ((0.6, 0.0, 1.2), 1, ["+0.6", "0.0", "+1.2"]),
        ((-0.2, -0.4, -0.0003), 2, ["−0.2000", "−0.4000", "−0.0003"]),
        ((0.001, -1.0, 1.0), 2, ["0.00", "−1.00", "+1.00"]),
        ((3e-9, 2e-9, 4.0), 2, ["+3e−09", "+2e−09", "+4.000000"]),
    ],
)
def test_as_many_digits_as_the_ends_need(numbers: tuple[float, ...], digits: int, texts: list[str]) -> None:
    assert shown_together(numbers, numbers[1:], digits) == texts


def test_the_ends_of_an_interval_of_shares_in_percent() -> None:
    assert percent_interval(0.00004, 0.02) == "0.004 to 2.000"
    assert percent_interval(0.0, 0.793, digits=1) == "0.0 to 79.3"


@given(st.tuples(REAL, REAL, REAL).map(sorted), st.integers(0, 3))
def test_an_interval_never_contradicts_its_label(ordered: list[float], digits: int) -> None:
    low, value, high = ordered
    texts = shown_together((low, value, high), (low, high), digits)
    shown = [read(text) for text in texts]
    assert shown == sorted(shown)
    for number, read_again in zip((low, high), (shown[0], shown[2]), strict=True):
        assert (read_again > 0, read_again < 0) == (number > 0, number < 0)
    if low > 0 or high < 0:
        assert shown[1] != 0
    assert all(text[0] in "+−" or read(text) == 0 for text in texts)
