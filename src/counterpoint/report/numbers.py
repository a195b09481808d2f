"""Numbers as text."""

from collections.abc import Callable, Sequence

POINTS_DIGITS, DECIMAL_DIGITS = 2, 3
_MOST_DIGITS = 6


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def with_sign(fraction: float) -> str:
    return f"{percent(fraction)}\N{NO-BREAK SPACE}%"


def decimal(value: float) -> str:
    return f"{value:.3f}"


def signed_number(value: float, digits: int) -> str:
    """A number with its sign, and none for zero as shown."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text.lstrip("+−") if float(text.lstrip("+−")) == 0 else text


def signed(fraction: float, digits: int = 2) -> str:
    """Percentage points with their sign."""
    return signed_number(100 * fraction, digits)


def shown_together(numbers: Sequence[float], ends: Sequence[float], digits: int) -> list[str]:
    """Signed numbers with equally many digits: `digits`, or as many more as an end needs that is not 0.

    An interval of 0.04 to 1.20 has 0 outside. With one digit it would begin at 0.0, and seem to have it inside.
    """
    enough = (more for more in range(digits, _MOST_DIGITS) if not any(_looks_like_0(end, more) for end in ends))
    digits = next(enough, _MOST_DIGITS)
    return [
        f"{number:+.0e}".replace("-", "−")
        if digits == _MOST_DIGITS and _looks_like_0(number, digits)
        else signed_number(number, digits)
        for number in numbers
    ]


def _looks_like_0(number: float, digits: int) -> bool:
    """Whether a number that is not 0 would have no sign."""
    return number != 0 and signed_number(number, digits)[0] not in "+−"


def percent_interval(low: float, high: float, digits: int = POINTS_DIGITS) -> str:
    """An interval of shares that cannot be below 0, in percent."""
    ends = [100 * low, 100 * high]
    return " to ".join(text.lstrip("+") for text in shown_together(ends, ends, digits))


def or_dash(show: Callable[[float], str], value: float | None) -> str:
    return "–" if value is None else show(value)
