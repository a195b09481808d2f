"""Without recalibration, with a temperature of clean images, and with the chosen one: at each severity of -C."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from counterpoint.records.compared import CalibrationDifferences, Difference, MeanDifferences
from counterpoint.records.figures import Figures, Summary
from counterpoint.records.recalibrated import Recalibrated, ScaledClean, ScaledCorrupted
from counterpoint.report.bins import binned_ece, pool_bins, reliability_of
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.lines import Line, Scale, lines_chart
from counterpoint.report.intervals import shown_difference
from counterpoint.report.recalibrations.topic import Topic
from counterpoint.report.recalibrations.words import CLEAN, NONE, is_ensemble, quoted, way_name
from counterpoint.report.run import HEADLINE
from counterpoint.report.suites import ShiftedRun, counted, named_severities
from counterpoint.report.tables import (
    BY_KEY,
    Column,
    Entry,
    Row,
    Table,
    with_sign,
)

ECE = "ece_width15"
_KEYS = (ECE, "nll", "brier")
_CLEAN_IMAGES = "Clean"
_DIFFERENCES = (
    "A difference is the figure with a recalibration minus the figure without, with its 95 % interval over images. "
    "Differences in ECE are between debiased values, so that noise alone makes no difference. They can differ from "
    "what the two ECEs in the table differ by."
)
LINES = ("first", "second", "third")
"""The lines of a chart as the style sheet knows them."""


@dataclass(frozen=True)
class _Shown:
    """ECE, NLL and Brier score, and their differences from no recalibration where these are known."""

    figures: Mapping[str, float]
    differences: Mapping[str, Difference] = field(default_factory=dict)


_Ways = dict[str, _Shown]
"""The figures on some images without recalibration and with some."""


def compared_ways(found: Recalibrated) -> list[str]:
    """A temperature of clean images and what was chosen, as far as they are there, or else the first of all."""
    names = (CLEAN, found.choice.chosen if found.choice else CLEAN)
    return list(dict.fromkeys(name for name in names if name in found.ways)) or [next(iter(found.ways))]


def label_of(name: str, found: Recalibrated) -> str:
    chosen = "chosen: " if found.choice and found.choice.chosen == name else ""
    return chosen + way_name(name, is_ensemble(found))


def pooled_figures(cells: Sequence[Summary]) -> dict[str, float]:
    """Of the images of some cells together, without recalibration. Cells have equally many images."""
    means = {key: sum(getattr(cell.ensemble, key) for cell in cells) / len(cells) for key in ("nll", "brier")}
    return {ECE: binned_ece(pool_bins([reliability_of(cell).width15 for cell in cells])), **means}


def severities_topic(shifted: ShiftedRun, found: Recalibrated) -> Topic:
    sets = dict(_sets(shifted, found, compared_ways(found)))
    return Topic(
        "At each severity",
        words=(_headline(shifted, found, sets[shifted.called]), *_notes(shifted)),
        chart=_chart(shifted, found, sets),
        legend=tuple(zip(LINES, (label_of(name, found) for name in sets[shifted.called]), strict=False)),
    )


def shift_topic(shifted: ShiftedRun, found: Recalibrated) -> Topic | None:
    """What becomes of another set of shifted images; None where no recalibration was tried on it."""
    names = compared_ways(found)
    if any(found.ways[name].on(shifted.suite) is None for name in names):
        return None
    sets = dict(_sets(shifted, found, names))
    words = (f"{_headline(shifted, found, sets[shifted.called])} {_DIFFERENCES}",)
    return Topic(f"On {shifted.called}", words=words, tables=(_sets_table(shifted, found, sets),))


def _sets(shifted: ShiftedRun, found: Recalibrated, names: Sequence[str]) -> Iterator[tuple[str, _Ways]]:
    """The figures on clean images, at each severity if there are some, and over all shifted images."""
    scaled = {name: found.ways[name] for name in names}
    clean = {name: _Shown(_figures(one.clean.ensemble), _on_clean(one.clean)) for name, one in scaled.items()}
    yield _CLEAN_IMAGES, {NONE: _Shown(_figures(shifted.run.clean.ensemble)), **clean}
    corrupted = {name: figures for name, one in scaled.items() if (figures := one.on(shifted.suite))}
    by_severity = zip(*shifted.figures.cells.values(), strict=True)
    named = zip(named_severities(shifted), by_severity, strict=True) if shifted.has_severities else ()
    for i, (severity, cells) in enumerate(named):
        ways = {name: _Shown(_figures(one.severities[i]), _at_severity(one, i)) for name, one in corrupted.items()}
        yield severity, {NONE: _Shown(pooled_figures(cells)), **ways}
    ways = {name: _Shown(_figures(one.ensemble[HEADLINE]), _over_all(one)) for name, one in corrupted.items()}
    yield shifted.called, {NONE: _Shown(_figures(shifted.aggregate(HEADLINE).ensemble)), **ways}


def _figures(figures: Figures) -> dict[str, float]:
    return {key: getattr(figures, key) for key in _KEYS}


def _on_clean(clean: ScaledClean) -> dict[str, Difference]:
    return _differences(clean.differences, clean.differences)


def _at_severity(corrupted: ScaledCorrupted, i: int) -> dict[str, Difference]:
    means = corrupted.differences.severities[i] if corrupted.differences else None
    calibration = corrupted.calibration_differences[i] if corrupted.calibration_differences else None
    return _differences(means, calibration)


def _over_all(corrupted: ScaledCorrupted) -> dict[str, Difference]:
    differences = corrupted.differences
    return _differences(differences.mean, differences.by_corruption) if differences else {}


def _differences(means: MeanDifferences | None, calibration: CalibrationDifferences | None) -> dict[str, Difference]:
    ece = calibration and calibration.ece_width15_debiased
    return ({"nll": means.nll, "brier": means.brier} if means else {}) | ({ECE: ece} if ece else {})


def _headline(shifted: ShiftedRun, found: Recalibrated, ways: _Ways) -> str:
    several = is_ensemble(found)
    others = " and ".join(
        f"{with_sign(shown.figures[ECE])} with {quoted(name, several)}"
        + (" (chosen)" if found.choice and found.choice.chosen == name else "")
        for name, shown in ways.items()
        if name != NONE
    )
    aggregate = f" ({HEADLINE})" if shifted.cells > 1 else ""
    without = with_sign(ways[NONE].figures[ECE])
    return f"On {shifted.called}{aggregate} the ECE is {without} without recalibration, {others}."


def _notes(shifted: ShiftedRun) -> Sequence[str]:
    corruptions = counted(len(shifted.figures.cells), "corruption")
    pooled = f"The figures at a severity are of the images of {corruptions} together."
    return (f"{pooled} {_DIFFERENCES}",)


def _chart(shifted: ShiftedRun, found: Recalibrated, sets: Mapping[str, _Ways]) -> Chart:
    shown = [name for name in sets if name != shifted.called and (name != _CLEAN_IMAGES or shifted.clean_is_severity_0)]
    lines = [
        Line(label_of(way, found), kind, [sets[images][way].figures[ECE] for images in shown])
        for kind, way in zip(LINES, sets[shifted.called], strict=False)
    ]
    ends = "; ".join(
        f"{line.label}: from {with_sign(line.values[0])} to {with_sign(line.values[-1])}" for line in lines
    )
    label = shifted.run.label
    return Chart(
        lines_chart(
            "ece-severity", shown, lines, Scale("ECE", True, with_sign), f"ECE of {label} against severity. {ends}."
        ),
        f"ECE in 15 equal-width bins, from {shown[0].lower()} to {shown[-1].lower()}.",
        _sets_table(shifted, found, sets),
    )


def _sets_table(shifted: ShiftedRun, found: Recalibrated, sets: Mapping[str, _Ways]) -> Table:
    aggregate = f"; {shifted.called} {HEADLINE}" if shifted.cells > 1 else ""
    return _table(f"{shifted.run.label}: {shifted.images}{aggregate}", found, sets)


def _table(caption: str, found: Recalibrated, sets: Mapping[str, _Ways]) -> Table:
    differences = [
        Column("ECE − without", "debiased, points"),
        Column("NLL − without", "nats"),
        Column("Brier − without"),
    ]
    rows = [row for images, ways in sets.items() for row in _rows(images, found, ways)]
    return Table(caption, (Column("Images"), *(BY_KEY[key].column for key in _KEYS), *differences), tuple(rows))


def _rows(images: str, found: Recalibrated, ways: _Ways) -> Iterator[Row]:
    """The best of some images is marked, compared as it is shown."""
    best = {key: BY_KEY[key].show(min(shown.figures[key] for shown in ways.values())) for key in _KEYS}
    for name, shown in ways.items():
        texts = {key: BY_KEY[key].show(shown.figures[key]) for key in _KEYS}
        figures = [Entry(text, best=text == best[key]) for key, text in texts.items()]
        differences = [Entry(_difference(key, shown.differences.get(key))) for key in _KEYS]
        label = label_of(name, found)
        yield Row(
            f"{images}, {label}" if name == NONE else label,
            (*figures, *differences),
            "run" if name == NONE else "member",
        )


def _difference(key: str, found: Difference | None) -> str:
    if found is None:
        return "–"
    return "{} ({})".format(*shown_difference(found.difference, found.low, found.high, BY_KEY[key]))
