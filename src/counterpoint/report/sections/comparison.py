"""Runs less others on the same images, as `counterpoint compare` computed it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.compared import Comparison, Difference, MeanDifferences, with_folder
from counterpoint.report.drawing.rows import DifferenceRow, differences_chart
from counterpoint.report.metrics import BY_KEY, Metric, difference_text, shown_difference, with_ends
from counterpoint.report.numbers import DECIMAL_DIGITS
from counterpoint.report.pairs import ComparedPair, compared_pairs, differences_on, known_differences
from counterpoint.report.run import ReportedRun, drawn_over
from counterpoint.report.section import Block, Chart, Content
from counterpoint.report.suites import PAPERS, called, named_severities, papers_suite
from counterpoint.report.tables import Column, Row, Table, plain_row

_HEADLINES = {"error": "Error", "nll": "NLL", "brier": "Brier", "ece_width15_debiased": "ECE"}
_DEBIASED = "_debiased"  # calibration errors are compared by their debiased estimates
_VERDICTS = {"lower": "lower", "higher": "higher", "unclear": "not told apart"}


@dataclass(frozen=True)
class PairDifferences:
    """One run against another."""

    label: str
    words: tuple[str, ...]
    charts: tuple[Chart, ...]
    severities: Table | None
    outside: Table | None


@dataclass(frozen=True)
class Comparisons(Content):
    pairs: tuple[PairDifferences, ...]

    @property
    def has_cells(self) -> bool:
        return any(pair.severities for pair in self.pairs)

    @property
    def has_outside(self) -> bool:
        return any(pair.outside for pair in self.pairs)

    def blocks(self) -> Iterator[Block]:
        return (Block(pair.label, (*pair.words, *pair.charts, pair.severities, pair.outside)) for pair in self.pairs)


def comparisons(runs: Sequence[ReportedRun]) -> Comparisons | None:
    """None where no run was compared."""
    pairs = [_comparison(pair) for pair in compared_pairs(runs)]
    return Comparisons(tuple(pairs)) if pairs else None


def differences_table(ours: str, other: Comparison) -> Table:
    """The headline figures of the run that is called `ours` less those of the other.

    A calibration error under corruption is by-corruption.
    """
    shift, sets = other.made_from.corrupted, {"Clean": differences_on(other, "")}
    if shift or not other.made_from.given:  # of other models the file may have clean images alone
        sets[called(shift.source) if shift else "-C"] = differences_on(other, PAPERS)
    sets |= {name: differences_on(other, name) for name in other.shifts}
    lacking = {images: "not the same images" for images, found in sets.items() if not found}
    if shift is None and "-C" in lacking:
        lacking["-C"] = "not in both runs"
    columns = [Column(images, lacking.get(images, "")) for images in sets]
    groups = [other.made_from.clean.groups, *([shift.groups] if shift else [])]
    over = drawn_over(*groups, *(one.shift.groups for one in other.shifts.values()))
    return Table(
        f"{pair_name(ours, other)}, with 95 % intervals {over}; ECE debiased, 15 equal-width bins",
        (Column("Difference"), *columns),
        tuple(
            plain_row(
                f"{label}, {_unit(key)}".rstrip(", "),
                *(difference_text(found.get(key), _metric(key)) for found in sets.values()),
            )
            for key, label in _HEADLINES.items()
        ),
    )


def pair_name(ours: str, other: Comparison) -> str:
    return f"{ours} − {with_folder(other.called, other.run)}"


def outside_table(pair: str, other: Comparison) -> Table | None:
    """How much better or worse the first run of a pair tells outside images from known ones; None without any."""
    rows = []
    for name, found in other.outside.items():
        value, low, high = with_ends(found.auroc, DECIMAL_DIGITS)
        rows.append(plain_row(name, value, f"{low} to {high}"))
    caption = f"{pair}: AUROC by confidence, of known images against outside ones; higher is better"
    columns = (
        Column("Outside images"),
        Column("Difference"),
        Column("Interval", f"95 %, {drawn_over(other.made_from.clean.groups)}"),
    )
    return Table(caption, columns, tuple(rows)) if rows else None


def _comparison(pair: ComparedPair) -> PairDifferences:
    other, corrupted, of_cells = pair.other, pair.other.corrupted, pair.other.made_from.corrupted
    sets = [("clean images", differences_on(other, ""), other.made_from.clean.groups)]
    if corrupted:
        groups = of_cells.groups if of_cells else None
        by_corruption = known_differences(corrupted.by_corruption)
        sets += [
            ("corrupted images (each image’s mean over all cells)", known_differences(corrupted.mean), groups),
            ("corrupted images, by corruption (each image with all its cells)", by_corruption, groups),
        ]
    sets += [
        (f"the shifted images of “{name}”", differences_on(other, name), one.shift.groups)
        for name, one in other.shifts.items()
    ]
    shown = [(images, _differences(found), drawn_over(groups)) for images, found, groups in sets if found]
    return PairDifferences(
        label=pair.label,
        words=tuple(_in_words(pair, images, rows) for images, rows, _ in shown),
        charts=tuple(_chart(pair, *one) for one in shown),
        severities=_severities(pair, corrupted.severities) if corrupted else None,
        outside=outside_table(pair.label, other),
    )


def _differences(found: Mapping[str, Difference]) -> list[DifferenceRow]:
    return [_difference(key, one) for key, one in found.items()]


def _difference(key: str, found: Difference) -> DifferenceRow:
    metric = _metric(key)
    number, interval = shown_difference(found, metric)
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


def _metric(key: str) -> Metric:
    return BY_KEY[key.removesuffix(_DEBIASED)]


def _unit(key: str) -> str:
    if not _metric(key).is_decimal:
        return "points"
    return "nats" if key == "nll" else ""


def _in_words(pair: ComparedPair, images: str, rows: Sequence[DifferenceRow]) -> str:
    """A sentence for what is lower, for what is higher, and for what the images leave open."""
    if len(rows) > 1 and len({row.verdict for row in rows}) == 1:
        if rows[0].verdict == "unclear":
            return f"On {images} the two are not told apart in any figure: every interval holds 0."
        return f"On {images} every figure of {pair.run.label} is {rows[0].verdict} than that of {pair.name}."
    labels = {verdict: listed([row.label for row in rows if row.verdict == verdict]) for verdict in _VERDICTS}
    told = [f"a {verdict} {labels[verdict]}" for verdict in ("lower", "higher") if labels[verdict]]
    sentences = [f"On {images} {pair.run.label} has {listed(told)} than {pair.name}."] if told else []
    if labels["unclear"]:
        sentences.append(f"On {images} the two are not told apart in {labels['unclear']}: these intervals hold 0.")
    return " ".join(sentences)


def _chart(pair: ComparedPair, images: str, rows: Sequence[DifferenceRow], over: str) -> Chart:
    alternative = f"Differences on {images}, {pair.label}: {'; '.join(row.words for row in rows)}."
    table = _table(pair, images, [_row(row.label, row) for row in rows], over)
    return Chart(differences_chart(rows, alternative), f"On {images}", table)


def _table(pair: ComparedPair, images: str, rows: Sequence[Row], over: str) -> Table:
    columns = (Column("Metric"), Column("Difference"), Column("Interval", f"95 %, {over}"))
    return Table(f"{pair.label}: {images}", (*columns, Column(f"{pair.run.label} is")), tuple(rows))


def _row(label: str, row: DifferenceRow) -> Row:
    return plain_row(label, row.shown, row.interval, _VERDICTS[row.verdict])


def _severities(pair: ComparedPair, by_severity: Sequence[MeanDifferences]) -> Table | None:
    shifted = papers_suite(pair.run)
    if shifted is None:
        return None
    rows = [
        _row(f"{severity}: {row.label}", row)
        for severity, values in zip(named_severities(shifted), by_severity, strict=True)
        for row in _differences(known_differences(values))
    ]
    shift = pair.other.made_from.corrupted
    over = drawn_over(shift.groups if shift else None)
    return _table(pair, "at each severity (each image’s mean over all corruptions)", rows, over)
