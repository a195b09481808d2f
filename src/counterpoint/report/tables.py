"""The report's tables as plain values: what a cell says and which value is best, not how it looks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """One run as the page shows it."""

    label: str
    results: dict[str, Any]

    @property
    def clean(self) -> dict[str, Any]:
        return self.results["clean"]

    @property
    def is_ensemble(self) -> bool:
        return len(self.clean["members"]) > 1

    @property
    def images(self) -> str:
        on = self.results["evaluated_on"]
        return f"{on['dataset']}, {on['part']} part, {on['images']:,} images"


@dataclass(frozen=True)
class Cell:
    text: str
    best: bool = False


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]
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


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def with_sign(fraction: float) -> str:
    return f"{percent(fraction)}\N{NO-BREAK SPACE}%"


def decimal(value: float) -> str:
    return f"{value:.3f}"


@dataclass(frozen=True)
class Metric:
    key: str
    column: Column
    show: Callable[[float], str]
    lower_is_better: bool = True


METRICS = (
    Metric("error", Column("Error", "%"), percent),
    Metric("nll", Column("NLL", "nats"), decimal),
    Metric("brier", Column("Brier", "0 to 2"), decimal),
    Metric("ece_width15", Column("ECE", "equal-width 15, %"), percent),
    Metric("ece_rms_width15", Column("ECE-rms", "equal-width 15, %"), percent),
    Metric("ece_mass15", Column("ECE", "equal-mass 15, %"), percent),
    Metric("ece_rms_mass15", Column("ECE-rms", "equal-mass 15, %"), percent),
    Metric("mean_confidence", Column("Mean confidence", "%"), percent, lower_is_better=False),
    Metric("disagreement", Column("Members disagree", "%"), percent, lower_is_better=False),
)


def metrics_tables(runs: Sequence[Run]) -> list[Table]:
    """One table for each set of images: figures of different images are not compared."""
    by_images: dict[str, list[Run]] = {}
    for run in runs:
        by_images.setdefault(run.images, []).append(run)
    return [_metrics_table(images, group) for images, group in by_images.items()]


def _metrics_table(images: str, runs: Sequence[Run]) -> Table:
    lines = [line for run in runs for line in _lines(run)]
    columns = [_column_cells(metric, [scores for _, _, scores in lines]) for metric in METRICS]
    return Table(
        caption=f"All metrics on {images}",
        columns=(Column("Model"), *(metric.column for metric in METRICS)),
        rows=tuple(Row(lines[i][0], cells, lines[i][1]) for i, cells in enumerate(zip(*columns, strict=True))),
    )


def _lines(run: Run) -> Iterator[tuple[str, str, dict[str, float | None]]]:
    """A run's row headings, kinds and scores: the run itself, then its members if it has several."""
    yield run.label, "run", {**run.clean["ensemble"], "disagreement": run.clean["disagreement"]}
    if run.is_ensemble:
        for number, scores in enumerate(run.clean["members"], start=1):
            yield f"member {number}", "member", scores


def _column_cells(metric: Metric, scores: Sequence[dict[str, float | None]]) -> list[Cell]:
    values = [one.get(metric.key) for one in scores]
    shown = [None if value is None else metric.show(value) for value in values]
    known = [value for value in values if value is not None]
    # Compared as shown, so that two equal numbers on the page are never marked differently.
    best = metric.show(min(known)) if metric.lower_is_better and len(known) > 1 else None
    return [Cell("–") if text is None else Cell(text, best=text == best) for text in shown]


def bins_table(caption: str, bins: Sequence[dict[str, Any]]) -> Table:
    """The numbers behind a reliability diagram."""
    return Table(
        caption=caption,
        columns=(
            Column("Bin", "%"),
            Column("Images"),
            Column("Confidence", "mean, %"),
            Column("Accuracy", "%"),
            Column("Gap", "points"),
        ),
        rows=tuple(
            Row(
                f"{percent(row['low'])}–{percent(row['high'])}",
                (
                    Cell(f"{row['count']:,}"),
                    Cell(percent(row["confidence"])),
                    Cell(percent(row["accuracy"])),
                    Cell(f"{100 * (row['accuracy'] - row['confidence']):+.2f}".replace("-", "−")),
                ),
            )
            for row in bins
        ),
    )
