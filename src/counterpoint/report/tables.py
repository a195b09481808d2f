"""The report's tables as plain values, and numbers as text: what an entry says and which is best, not how it looks."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from counterpoint.records.compared import Difference
from counterpoint.records.figures import Summary
from counterpoint.report.run import ReportedRun, Scores, grouped, models

_POINTS_DIGITS, _DECIMAL_DIGITS = 2, 3
_MOST_DIGITS = 6


@dataclass(frozen=True)
class Entry:
    text: str
    best: bool = False
    heat: int | None = None  # percent of a heat map's deepest colour; below zero, of the other colour
    below: str = ""  # in small letters under the text

    @property
    def in_one_line(self) -> str:
        return f"{self.text} ({self.below})" if self.below else self.text


@dataclass(frozen=True)
class Row:
    label: str
    entries: tuple[Entry, ...]
    kind: str = ""


@dataclass(frozen=True)
class Column:
    label: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    caption: str
    columns: tuple[Column, ...]  # the first is the row headings'
    rows: tuple[Row, ...]


def plain_row(label: str, *texts: str, kind: str = "") -> Row:
    return Row(label, tuple(map(Entry, texts)), kind)


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


def percent_interval(low: float, high: float, digits: int = _POINTS_DIGITS) -> str:
    """An interval of shares that cannot be below 0, in percent."""
    ends = [100 * low, 100 * high]
    return " to ".join(text.lstrip("+") for text in shown_together(ends, ends, digits))


def or_dash(show: Callable[[float], str], value: float | None) -> str:
    return "–" if value is None else show(value)


Line = tuple[str, str, Scores]
"""A row's label and kind, and what it shows."""


@dataclass(frozen=True)
class Metric:
    key: str
    column: Column
    show: Callable[[float], str]
    lower_is_better: bool = True

    @property
    def is_decimal(self) -> bool:
        """Whether it is shown as it is, and not in percent."""
        return self.show is decimal


METRICS = (
    Metric("error", Column("Error", "%"), percent),
    Metric("nll", Column("NLL", "nats"), decimal),
    Metric("brier", Column("Brier", "0 to 2"), decimal),
    Metric("ece_width15", Column("ECE", "equal-width 15, %"), percent),
    Metric("ece_rms_width15", Column("ECE-rms", "equal-width 15, %"), percent),
    Metric("ece_mass15", Column("ECE", "equal-mass 15, %"), percent),
    Metric("ece_rms_mass15", Column("ECE-rms", "equal-mass 15, %"), percent),
    Metric("mean_confidence", Column("Mean confidence", "%"), percent, lower_is_better=False),
    Metric("overconfidence", Column("Over-confidence", "points"), signed, lower_is_better=False),
    Metric("aurc", Column("AURC", "%"), percent),
    Metric("disagreement", Column("Members disagree", "%"), percent, lower_is_better=False),
    Metric("pairwise_kl", Column("Members’ KL", "nats"), decimal, lower_is_better=False),
)
BY_KEY = {metric.key: metric for metric in METRICS}


def shown_difference(found: Difference, metric: Metric) -> tuple[str, str]:
    """A difference between two values of a metric, and its interval."""
    numbers = [number if metric.is_decimal else 100 * number for number in (found.difference, found.low, found.high)]
    digits = _DECIMAL_DIGITS if metric.is_decimal else _POINTS_DIGITS
    value, low, high = shown_together(numbers, numbers[1:], digits)
    return value, f"{low} to {high}"


def difference_text(found: Difference | None, metric: Metric) -> str:
    """Both, or a dash where the difference is not known."""
    return "{} ({})".format(*shown_difference(found, metric)) if found else "–"


def by_images(runs: Iterable[ReportedRun]) -> list[tuple[str, list[ReportedRun]]]:
    """The runs on the same images, with what these are. Two sets can have one name and not the same images."""
    return [(group[0].images, group) for group in grouped(runs, lambda run: run.results.evaluated_on).values()]


def metrics_table(caption: str, summaries: Iterable[tuple[str, Summary]]) -> Table:
    """All metrics of each summary, under the label given with it."""
    return scores_table(caption, "Model", [line for label, summary in summaries for line in lines(label, summary)])


def lines(label: str, summary: Summary) -> list[Line]:
    """The ensemble under `label`, and below it each member."""
    (_, scores), *members = models(summary)
    return [(label, "run", scores), *((name, "member", of_member) for name, of_member in members)]


def scores_table(caption: str, heading: str, lines: Sequence[Line]) -> Table:
    """A row for each line, and a column for each metric that one of them has."""
    known = [metric for metric in METRICS if any(scores.get(metric.key) is not None for _, _, scores in lines)]
    columns = [_column_entries(metric, [scores for _, _, scores in lines]) for metric in known]
    return Table(
        caption=caption,
        columns=(Column(heading), *(metric.column for metric in known)),
        rows=tuple(
            Row(label, entries, kind)
            for (label, kind, _), entries in zip(lines, zip(*columns, strict=True), strict=True)
        ),
    )


def _column_entries(metric: Metric, scores: Sequence[Scores]) -> list[Entry]:
    values = [of_line.get(metric.key) for of_line in scores]
    known = [value for value in values if value is not None]
    # Compared as shown, so that two equal numbers on the page are never marked differently.
    best = metric.show(min(known)) if metric.lower_is_better and len(known) > 1 else None
    return [Entry(text, best=text == best) for text in (or_dash(metric.show, value) for value in values)]
