"""Intervals as text. One function decides how many digits, so that no interval contradicts what is said of it."""

from collections.abc import Sequence

from counterpoint.report.tables import Metric, decimal, signed_number

_POINTS_DIGITS, _DECIMAL_DIGITS = 2, 3
_MOST_DIGITS = 6


def shown_together(numbers: Sequence[float], ends: Sequence[float], digits: int) -> list[str]:
    """Signed numbers with equally many digits: `digits`, or as many more as an end needs that is not 0.

    An interval of 0.04 to 1.20 has 0 outside. With one digit it would begin at 0.0, and seem to have it inside.
    """
    enough = (more for more in range(digits, _MOST_DIGITS) if not any(_looks_like_0(end, more) for end in ends))
    digits = next(enough, _MOST_DIGITS)
    return [_text(number, digits) for number in numbers]


def shown_difference(difference: float, low: float, high: float, metric: Metric) -> tuple[str, str]:
    """A difference between two values of a metric, and its interval."""
    is_decimal = metric.show is decimal
    numbers = [number if is_decimal else 100 * number for number in (difference, low, high)]
    value, first, last = shown_together(numbers, numbers[1:], _DECIMAL_DIGITS if is_decimal else _POINTS_DIGITS)
    return value, f"{first} to {last}"


def percent_interval(low: float, high: float, digits: int = _POINTS_DIGITS) -> str:
    """An interval of shares that cannot be below 0, in percent."""
    ends = [100 * low, 100 * high]
    return " to ".join(text.lstrip("+") for text in shown_together(ends, ends, digits))


def _looks_like_0(number: float, digits: int) -> bool:
    """Whether a number that is not 0 would have no sign."""
    return number != 0 and signed_number(number, digits)[0] not in "+−"


def _text(number: float, digits: int) -> str:
    if digits == _MOST_DIGITS and _looks_like_0(number, digits):
        return f"{number:+.0e}".replace("-", "−")
    return signed_number(number, digits)
