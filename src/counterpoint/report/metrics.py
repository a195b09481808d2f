"""The metrics of the tables: how each is called and shown, and tables and differences of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from counterpoint.records.compared import Difference
from counterpoint.records.figures import Summary
from counterpoint.report.numbers import DECIMAL_DIGITS, POINTS_DIGITS, decimal, or_dash, percent, shown_together, signed
from counterpoint.report.run import Scores, models
from counterpoint.report.tables import Column, Entry, Row, Table

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


def with_ends(found: Difference, digits: int, scale: float = 1.0) -> list[str]:
    """A difference and both ends of its interval."""
    numbers = [scale * number for number in (found.difference, found.low, found.high)]
    return shown_together(numbers, numbers[1:], digits)


def shown_difference(found: Difference, metric: Metric) -> tuple[str, str]:
    """A difference between two values of a metric, and its interval."""
    digits, scale = (DECIMAL_DIGITS, 1) if metric.is_decimal else (POINTS_DIGITS, 100)
    value, low, high = with_ends(found, digits, scale)
    return value, f"{low} to {high}"


def difference_text(found: Difference | None, metric: Metric) -> str:
    """Both, or a dash where the difference is not known."""
    return "{} ({})".format(*shown_difference(found, metric)) if found else "–"


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
