"""Runs less others on the same images, as `counterpoint compare` computed it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.compared import (
    CalibrationDifferences,
    Comparison,
    CorruptedDifferences,
    Difference,
    MeanDifferences,
    with_folder,
)
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.rows import DifferenceRow, differences_chart
from counterpoint.report.intervals import shown_difference
from counterpoint.report.pairs import ComparedPair, compared_pairs
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.suites import called, named_severities, papers_suite
from counterpoint.report.tables import BY_KEY, Column, Entry, Row, Table, decimal

_COLUMNS = (Column("Metric"), Column("Difference"), Column("Interval", "95 %, over images"))
_HEADLINES = {"error": "Error", "nll": "NLL", "brier": "Brier", "ece_width15_debiased": "ECE"}
_DEBIASED = "_debiased"  # calibration errors are compared by their debiased estimates
_VERDICTS = {"lower": "lower", "higher": "higher", "unclear": "not told apart"}
Found = Mapping[str, Difference]
"""The differences that there are, by the name of their figure."""


@dataclass(frozen=True)
class PairDifferences:
    """One run against another."""

    label: str
    words: tuple[str, ...]
    charts: tuple[Chart, ...]
    severities: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for chart in self.charts), *([self.severities] if self.severities else []))


@dataclass(frozen=True)
class Comparisons(Content):
    pairs: tuple[PairDifferences, ...]

    @property
    def has_cells(self) -> bool:
        return any(pair.severities for pair in self.pairs)

    def blocks(self) -> Iterator[Block]:
        return (Block(pair.label, (*pair.words, *pair.tables)) for pair in self.pairs)


def comparisons(runs: Sequence[ReportedRun]) -> Comparisons | None:
    """None where no run was compared."""
    pairs = [_comparison(pair) for pair in compared_pairs(runs)]
    return Comparisons(tuple(pairs)) if pairs else None


def differences_table(ours: str, other: Comparison) -> Table:
    """The headline figures of the run that is called `ours` less those of the other.

    A calibration error under corruption is by-corruption.
    """
    shift, corrupted, sets = other.made_from.corrupted, other.corrupted, {"Clean": _found(other.clean)}
    if shift or not other.made_from.given:  # of other models the file may have clean images alone
        by_cells = _joined(corrupted) if corrupted else {}
        sets[called(shift.source) if shift else "-C"] = by_cells
    sets |= {name: _joined(one.differences) for name, one in other.shifts.items()}
    lacking = {images: "not the same images" for images, found in sets.items() if not found}
    if shift is None and "-C" in lacking:
        lacking["-C"] = "the other run has none"
    columns = [Column(images, lacking.get(images, "")) for images in sets]
    theirs = with_folder(other.called, other.run)
    return Table(
        f"{ours} − {theirs}, with 95 % intervals over images; ECE debiased, 15 equal-width bins",
        (Column("Difference"), *columns),
        tuple(
            Row(_with_unit(label, _unit(key)), tuple(_headline(key, found.get(key)) for found in sets.values()))
            for key, label in _HEADLINES.items()
        ),
    )


def _headline(key: str, found: Difference | None) -> Entry:
    if found is None:
        return Entry("–")
    row = _difference(key, found)
    return Entry(f"{row.number} ({row.interval})")


def _with_unit(label: str, unit: str) -> str:
    return f"{label}, {unit}" if unit else label


def _found(differences: MeanDifferences | CalibrationDifferences | None) -> dict[str, Difference]:
    values = {} if differences is None else vars(differences)
    return {key: value for key, value in values.items() if value is not None}


def _joined(differences: CorruptedDifferences) -> dict[str, Difference]:
    """Those of means, and those of calibration errors."""
    return _found(differences.mean) | _found(differences.by_corruption)


def _comparison(pair: ComparedPair) -> PairDifferences:
    other, corrupted = pair.other, pair.other.corrupted
    sets = {"clean images": _found(other.clean)}
    if corrupted:
        sets["corrupted images (each image’s mean over all cells)"] = _found(corrupted.mean)
        sets["corrupted images, by corruption (each image with all its cells)"] = _found(corrupted.by_corruption)
    sets |= {f"the shifted images of “{name}”": _joined(one.differences) for name, one in other.shifts.items()}
    rows_of = {images: _differences(found) for images, found in sets.items() if found}
    return PairDifferences(
        label=pair.label,
        words=tuple(_in_words(pair, images, rows) for images, rows in rows_of.items()),
        charts=tuple(_chart(pair, images, rows) for images, rows in rows_of.items()),
        severities=_severities(pair, corrupted.severities) if corrupted else None,
    )


def _differences(found: Found) -> list[DifferenceRow]:
    return [_difference(key, one) for key, one in found.items()]


def _difference(key: str, found: Difference) -> DifferenceRow:
    metric = BY_KEY[key.removesuffix(_DEBIASED)]
    number, interval = shown_difference(found.difference, found.low, found.high, metric)
    binning = metric.column.unit.removesuffix(", %") if metric.key.startswith("ece") else ""
    return DifferenceRow(
        label=f"{metric.column.label} ({binning}, debiased)" if binning else metric.column.label,
        value=found.difference,
        low=found.low,
        high=found.high,
        number=number,
        unit=_unit(key),
        interval=interval,
    )


def _unit(key: str) -> str:
    if BY_KEY[key.removesuffix(_DEBIASED)].show is decimal:
        return "nats" if key == "nll" else ""
    return "points"


def _in_words(pair: ComparedPair, images: str, rows: Sequence[DifferenceRow]) -> str:
    """A sentence for what is lower, for what is higher, and for what the images leave open."""
    if len(verdicts := {row.verdict for row in rows}) == 1 and len(rows) > 1:
        return _all_alike(pair, images, verdicts.pop())
    labels = {verdict: listed([row.label for row in rows if row.verdict == verdict]) for verdict in _VERDICTS}
    told = [f"a {verdict} {labels[verdict]}" for verdict in ("lower", "higher") if labels[verdict]]
    sentences = [f"On {images} {pair.run.label} has {listed(told)} than {pair.name}."] if told else []
    if labels["unclear"]:
        sentences.append(f"On {images} the two are not told apart in {labels['unclear']}: these intervals hold 0.")
    return " ".join(sentences)


def _all_alike(pair: ComparedPair, images: str, verdict: str) -> str:
    if verdict == "unclear":
        return f"On {images} the two are not told apart in any figure: every interval holds 0."
    return f"On {images} every figure of {pair.run.label} is {verdict} than that of {pair.name}."


def _chart(pair: ComparedPair, images: str, rows: Sequence[DifferenceRow]) -> Chart:
    alternative = f"Differences on {images}, {pair.label}: {'; '.join(row.words for row in rows)}."
    table = Table(f"{pair.label}: {images}", _columns(pair), tuple(Row(row.label, _entries(row)) for row in rows))
    return Chart(differences_chart(rows, alternative), f"On {images}", table)


def _columns(pair: ComparedPair) -> tuple[Column, ...]:
    return *_COLUMNS, Column(f"{pair.run.label} is")


def _entries(row: DifferenceRow) -> tuple[Entry, ...]:
    return Entry(row.shown), Entry(row.interval), Entry(_VERDICTS[row.verdict])


def _severities(pair: ComparedPair, by_severity: Sequence[MeanDifferences]) -> Table | None:
    shifted = papers_suite(pair.run)
    if shifted is None:
        return None
    rows = [
        Row(f"{severity}: {row.label}", _entries(row))
        for severity, values in zip(named_severities(shifted), by_severity, strict=True)
        for row in _differences(_found(values))
    ]
    caption = f"{pair.label}: at each severity (each image’s mean over all corruptions)"
    return Table(caption, _columns(pair), tuple(rows))


SECTION = Section("comparison", "Differences between runs", comparisons, "sections/comparison.html")
