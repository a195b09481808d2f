"""What a recalibration changes on each corruption, and where it makes the ECE higher."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.recalibrations.topic import Topic
from counterpoint.report.recalibrations.under_shift import ECE, compared_ways, label_of, pooled_figures
from counterpoint.report.recalibrations.words import is_ensemble, quoted
from counterpoint.report.suites import ShiftedRun, corruption_label
from counterpoint.report.tables import Column, Entry, Row, Table, percent, signed, signed_decimal


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
    """What the chosen one changes, or without a choice a temperature of clean images. The worst comes first."""
    name = compared_ways(found)[-1]
    corrupted = found.ways[name].corrupted
    if corrupted is None:
        return None
    plain = {corruption: pooled_figures(cells) for corruption, cells in shifted.figures.cells.items()}
    changed = [
        _Changed(
            corruption_label(corruption),
            figures[ECE],
            corrupted.corruptions[corruption].ece_width15,
            corrupted.corruptions[corruption].nll - figures["nll"],
        )
        for corruption, figures in plain.items()
    ]
    changed.sort(key=lambda one: one.without - one.ece)
    caption = f"{shifted.run.label}: {shifted.images}; each corruption, its severities together"
    return Topic(
        "On each corruption",
        words=(_in_words(quoted(name, is_ensemble(found)), changed),),
        tables=(_table(caption, label_of(name, found), changed),),
    )


def _in_words(name: str, changed: Sequence[_Changed]) -> str:
    worse = [f"{one.label} ({one.shown} points)" for one in changed if one.shown.startswith("+")]
    if not worse:
        return f"With {name}, the ECE is higher on none of the {len(changed)} corruptions."
    return (
        f"With {name}, the ECE is higher on {len(worse)} of the {len(changed)} corruptions: {', '.join(worse)}. These "
        "differences have no intervals."
    )


def _table(caption: str, label: str, changed: Sequence[_Changed]) -> Table:
    columns = (
        Column("Corruption"),
        Column("ECE without", "%"),
        Column("ECE with", f"{label}, %"),
        Column("Difference", "points"),
        Column("Difference in NLL", "nats"),
    )
    rows = [
        Row(
            one.label,
            (
                Entry(percent(one.without)),
                Entry(percent(one.ece)),
                Entry(one.shown),
                Entry(signed_decimal(one.nll_difference)),
            ),
        )
        for one in changed
    ]
    return Table(caption, columns, tuple(rows))
