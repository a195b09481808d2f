"""What recalibrations change under shift: at each severity of -C, on each corruption, and on other shifted images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from counterpoint.records.compared import Difference
from counterpoint.records.figures import Figures, Summary
from counterpoint.records.recalibrated import Recalibrated, ScaledCorrupted
from counterpoint.report.bins import binned_ece, pool_bins, reliability_of
from counterpoint.report.drawing.plots import Line, Scale, lines_chart
from counterpoint.report.metrics import BY_KEY, difference_text
from counterpoint.report.numbers import percent, signed, signed_number, with_sign
from counterpoint.report.pairs import known_differences
from counterpoint.report.recalibrations import Topic
from counterpoint.report.recalibrations.words import LINES, NONE, compared_ways, is_ensemble, label_of, quoted
from counterpoint.report.run import HEADLINE
from counterpoint.report.section import Chart
from counterpoint.report.suites import ShiftedRun, corruption_label, counted, named_severities
from counterpoint.report.tables import Column, Entry, Row, Table, plain_row

_ECE = "ece_width15"
_KEYS = {_ECE: f"{_ECE}_debiased", "nll": "nll", "brier": "brier"}
"""The figures that are shown, and the names of their differences."""
_COLUMNS = (
    Column("Images"),
    *(BY_KEY[key].column for key in _KEYS),
    Column("ECE − without", "debiased, points"),
    Column("NLL − without", "nats"),
    Column("Brier − without"),
)
_CLEAN_IMAGES = "Clean"
_DIFFERENCES = (
    "A difference is the figure with a recalibration minus the figure without, with its 95 % interval. "
    "Differences in ECE are between debiased values, so that noise alone makes no difference. They can differ from "
    "what the two ECEs in the table differ by."
)


@dataclass(frozen=True)
class _Shown:
    """ECE, NLL and Brier score, and their differences from no recalibration where these are known."""

    figures: Mapping[str, float]
    differences: Mapping[str, Difference] = field(default_factory=dict)


_Ways = dict[str, _Shown]
"""The figures on some images without recalibration and with some."""


def pooled_figures(cells: Sequence[Summary]) -> dict[str, float]:
    """Of the images of some cells together, without recalibration. Cells have equally many images."""
    means = {key: sum(getattr(cell.ensemble, key) for cell in cells) / len(cells) for key in ("nll", "brier")}
    return {_ECE: binned_ece(pool_bins([reliability_of(cell).width15 for cell in cells])), **means}


def severities_topic(shifted: ShiftedRun, found: Recalibrated) -> Topic:
    """Without recalibration, with a temperature of clean images, and with the chosen one."""
    sets = dict(_sets(shifted, found))
    corruptions = counted(len(shifted.figures.cells), "corruption")
    pooled = f"The figures at a severity are of the images of {corruptions} together."
    return Topic(
        "At each severity",
        words=(_headline(shifted, found, sets[shifted.called]), f"{pooled} {_DIFFERENCES}"),
        chart=_chart(shifted, found, sets),
        legend=tuple(zip(LINES, (label_of(name, found) for name in sets[shifted.called]), strict=False)),
    )


def shift_topic(shifted: ShiftedRun, found: Recalibrated) -> Topic | None:
    """What becomes of another set of shifted images; None where no recalibration was tried on it."""
    if any(found.ways[name].on(shifted.suite) is None for name in compared_ways(found)):
        return None
    sets = dict(_sets(shifted, found))
    words = (f"{_headline(shifted, found, sets[shifted.called])} {_DIFFERENCES}",)
    return Topic(f"On {shifted.called}", words=words, tables=(_table(shifted, found, sets),))


def _sets(shifted: ShiftedRun, found: Recalibrated) -> Iterator[tuple[str, _Ways]]:
    """The figures on clean images, at each severity if there are some, and over all shifted images."""
    scaled = {name: found.ways[name] for name in compared_ways(found)}
    ways = {
        name: _Shown(_figures(one.clean.ensemble), known_differences(one.clean.differences))
        for name, one in scaled.items()
    }
    yield _CLEAN_IMAGES, {NONE: _Shown(_figures(shifted.run.clean.ensemble)), **ways}
    corrupted = {name: figures for name, one in scaled.items() if (figures := one.on(shifted.suite))}
    by_severity = zip(*shifted.figures.cells.values(), strict=True)
    named = zip(named_severities(shifted), by_severity, strict=True) if shifted.has_severities else ()
    for i, (severity, cells) in enumerate(named):
        ways = {name: _at_severity(one, i) for name, one in corrupted.items()}
        yield severity, {NONE: _Shown(pooled_figures(cells)), **ways}
    ways = {name: _over_all(one) for name, one in corrupted.items()}
    yield shifted.called, {NONE: _Shown(_figures(shifted.aggregate(HEADLINE).ensemble)), **ways}


def _figures(figures: Figures) -> dict[str, float]:
    return {key: getattr(figures, key) for key in _KEYS}


def _at_severity(corrupted: ScaledCorrupted, i: int) -> _Shown:
    means = corrupted.differences.severities[i] if corrupted.differences else None
    calibration = corrupted.calibration_differences[i] if corrupted.calibration_differences else None
    return _Shown(_figures(corrupted.severities[i]), known_differences(means, calibration))


def _over_all(corrupted: ScaledCorrupted) -> _Shown:
    differences = corrupted.differences
    known = known_differences(differences.mean, differences.by_corruption) if differences else {}
    return _Shown(_figures(corrupted.ensemble[HEADLINE]), known)


def _headline(shifted: ShiftedRun, found: Recalibrated, ways: _Ways) -> str:
    others = " and ".join(
        f"{with_sign(shown.figures[_ECE])} with {quoted(name, is_ensemble(found))}"
        + (" (chosen)" if found.choice and found.choice.chosen == name else "")
        for name, shown in ways.items()
        if name != NONE
    )
    aggregate = f" ({HEADLINE})" if shifted.cells > 1 else ""
    without = with_sign(ways[NONE].figures[_ECE])
    return f"On {shifted.called}{aggregate} the ECE is {without} without recalibration, {others}."


def _chart(shifted: ShiftedRun, found: Recalibrated, sets: Mapping[str, _Ways]) -> Chart:
    shown = [name for name in sets if name != shifted.called and (name != _CLEAN_IMAGES or shifted.clean_is_severity_0)]
    lines = [
        Line(label_of(way, found), kind, [sets[images][way].figures[_ECE] for images in shown])
        for kind, way in zip(LINES, sets[shifted.called], strict=False)
    ]
    ends = "; ".join(
        f"{line.label}: from {with_sign(line.values[0])} to {with_sign(line.values[-1])}" for line in lines
    )
    alternative = f"ECE of {shifted.run.label} against severity. {ends}."
    return Chart(
        lines_chart("ece-severity", shown, lines, Scale("ECE", True, with_sign), alternative),
        f"ECE in 15 equal-width bins, from {shown[0].lower()} to {shown[-1].lower()}.",
        _table(shifted, found, sets),
    )


def _table(shifted: ShiftedRun, found: Recalibrated, sets: Mapping[str, _Ways]) -> Table:
    aggregate = f"; {shifted.called} {HEADLINE}" if shifted.cells > 1 else ""
    rows = [row for images, ways in sets.items() for row in _rows(images, found, ways)]
    return Table(f"{shifted.run.label}: {shifted.images}{aggregate}", _COLUMNS, tuple(rows))


def _rows(images: str, found: Recalibrated, ways: _Ways) -> Iterator[Row]:
    """The best of some images is marked, compared as it is shown."""
    best = {key: BY_KEY[key].show(min(shown.figures[key] for shown in ways.values())) for key in _KEYS}
    for name, shown in ways.items():
        texts = {key: BY_KEY[key].show(shown.figures[key]) for key in _KEYS}
        figures = [Entry(text, best=text == best[key]) for key, text in texts.items()]
        differences = [
            Entry(difference_text(shown.differences.get(difference), BY_KEY[key])) for key, difference in _KEYS.items()
        ]
        label, kind = (
            (f"{images}, {label_of(name, found)}", "run") if name == NONE else (label_of(name, found), "member")
        )
        yield Row(label, (*figures, *differences), kind)


@dataclass(frozen=True)
class _Changed:
    """One corruption, all severities together, without and with a recalibration."""

    label: str
    without: float
    ece: float
    nll_difference: float

    @property
    def shown(self) -> str:
        return signed(self.ece - self.without)


def corruptions_topic(shifted: ShiftedRun, found: Recalibrated) -> Topic | None:
    """What the recalibration that `predict` uses changes. The worst comes first."""
    name = compared_ways(found)[-1]
    corrupted = found.ways[name].corrupted
    if corrupted is None:
        return None
    changed = []
    for corruption, cells in shifted.figures.cells.items():
        without, figures = pooled_figures(cells), corrupted.corruptions[corruption]
        label = corruption_label(corruption)
        changed.append(_Changed(label, without[_ECE], figures.ece_width15, figures.nll - without["nll"]))
    changed.sort(key=lambda one: one.without - one.ece)
    columns = (
        Column("Corruption"),
        Column("ECE without", "%"),
        Column("ECE with", f"{label_of(name, found)}, %"),
        Column("Difference", "points"),
        Column("Difference in NLL", "nats"),
    )
    rows = [
        plain_row(one.label, percent(one.without), percent(one.ece), one.shown, signed_number(one.nll_difference, 3))
        for one in changed
    ]
    caption = f"{shifted.run.label}: {shifted.images}; each corruption, its severities together"
    words = _where_worse(quoted(name, is_ensemble(found)), changed)
    return Topic("On each corruption", words=(words,), tables=(Table(caption, columns, tuple(rows)),))


def _where_worse(name: str, changed: Sequence[_Changed]) -> str:
    worse = [f"{one.label} ({one.shown} points)" for one in changed if one.shown.startswith("+")]
    if not worse:
        return f"With {name}, the ECE is higher on none of the {len(changed)} corruptions."
    return (
        f"With {name}, the ECE is higher on {len(worse)} of the {len(changed)} corruptions: {', '.join(worse)}. These "
        "differences have no intervals."
    )
