"""From which confidence on a run can be trusted: the promise of its threshold, and where other images break it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.threshold import Checked, CheckedShift, Promise, Thresholded, Verdict
from counterpoint.report.numbers import or_dash, percent, percent_interval, with_sign
from counterpoint.report.recalibrations.words import NONE, parameters_in_words, quoted
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content
from counterpoint.report.suites import corruption_label
from counterpoint.report.tables import Column, Entry, Row, Table, plain_row

TITLE = "Threshold"
_COLUMNS = (
    Column("Images"),
    Column("Kept", "%"),
    Column("Error of these", "%"),
    Column("Promise"),
    Column("Worst", "%"),
)
_SAID: dict[Verdict, str] = {"holds": "holds", "unclear": "is unclear", "breaks": "breaks"}
_MARKS: dict[Verdict, str] = {"holds": "", "unclear": "? ", "breaks": "✗ "}
_FAINTEST = 15  # percent of the deepest colour, so that whatever is above the target can be seen
_MOST_NAMES = 6


@dataclass(frozen=True)
class RunThreshold:
    """The promise of one run, in words, and what other images say of it; None where there are none."""

    label: str
    words: tuple[str, ...]
    checks: Table | None
    cells: Table | None


@dataclass(frozen=True)
class Thresholds(Content):
    runs: tuple[RunThreshold, ...]

    def blocks(self) -> Iterator[Block]:
        return (Block(f"{TITLE}: {run.label}", (*run.words, run.checks, run.cells)) for run in self.runs)


def thresholds(runs: Sequence[ReportedRun]) -> Thresholds | None:
    """None where no run has a threshold. The maps of all runs share one scale of colour."""
    having = [(run, found) for run in runs if (found := run.evaluated.thresholded) is not None]
    deepest = max((highest_error(found) for _, found in having), default=0.0)
    of_runs = [
        RunThreshold(
            run.label,
            threshold_in_words(found, run.results.is_ensemble),
            checks_table(found, f"{run.label}: "),
            cells_table(found, f"{run.label}: ", deepest),
        )
        for run, found in having
    ]
    return Thresholds(tuple(of_runs)) if of_runs else None


def threshold_in_words(found: Thresholded, several: bool) -> tuple[str, ...]:
    """`several` says whether the run is an ensemble."""
    return (
        *_promise(found.promise),
        _rests_on(found.promise),
        _confidence(found, several),
        *([_under_shift(found)] if found.cells else []),
        *([_on_other_shifts(found)] if found.shifts else []),
        *([_on_outside(found)] if found.outside else []),
    )


def _promise(promise: Promise) -> tuple[str, str]:
    least = f"predictions with a confidence of {promise.chosen.threshold} or more"
    kept = "everything" if promise.refused is None else least
    interval = percent_interval(promise.coverage_low, promise.coverage_high)
    drawn = "" if promise.drawn_from is None else ", drawn one from each new group, such as a patient"
    return (
        f"Keep {kept}: with 95 % confidence, the error of what is kept is below {with_sign(promise.target)} on images "
        f"like the validation images{drawn}.",
        f"About {with_sign(promise.coverage)} of such images are kept (interval {interval}).",
    )


def _rests_on(promise: Promise) -> str:
    chosen, lower = promise.chosen, ""
    if promise.refused is not None:
        lower = f", and up to {with_sign(promise.refused.upper)} at {promise.refused.threshold}"
    drawn = ""
    if promise.drawn_from is not None:
        drawn = f", drawn one from each of {promise.images:,} groups with {promise.drawn_from:,} images in all"
    return (
        f"The threshold was chosen on {promise.images:,} validation images that no temperature was fitted on{drawn}. "
        f"It keeps {chosen.kept:,} of them, and {chosen.wrong:,} of these {'is' if chosen.wrong == 1 else 'are'} wrong "
        f"({with_sign(chosen.wrong / chosen.kept)}). "
        f"The true error could be up to {with_sign(chosen.upper)} at this threshold alone{lower}."
    )


def _confidence(found: Thresholded, several: bool) -> str:
    others = f"the other {found.fitted_images:,} validation images"
    if found.promise.drawn_from is not None:
        others = f"{found.fitted_images:,} validation images of other groups"
    if found.recalibration_name == NONE:
        return (
            f"The confidences are the network’s own. {others.capitalize()} only gave the threshold at which the search "
            "began."
        )
    name, parameters = quoted(found.recalibration_name, several), parameters_in_words(found.recalibration)
    return f"The confidences are recalibrated with {name}. Its parameters come from {others}: {parameters}."


def _under_shift(found: Thresholded) -> str:
    broken = {name: sum(cell.verdict == "breaks" for cell in cells) for name, cells in found.cells.items()}
    cells, spared = sum(map(len, found.cells.values())), [name for name, count in broken.items() if not count]
    if len(spared) == len(broken):
        where = f"in none of the {cells} cells."
    else:
        where = f"in {sum(broken.values())} of the {cells} cells. {_spared_in_words(spared, len(broken))}"
    return f"The promise is not made for corrupted images. There it breaks {where}"


def _on_other_shifts(found: Thresholded) -> str:
    """What became of the promise on each of the other sets of shifted images."""
    said = []
    for name, checked in found.shifts.items():
        breaks = [str(number) for number, cell in _numbered(checked) if cell.verdict == "breaks"]
        verdicts = {cell.verdict for cell in checked.cells}
        worst = next(verdict for verdict in reversed(_SAID) if verdict in verdicts)
        where = f" at severity {listed(breaks)}" if 0 < len(breaks) < len(checked.cells) else ""
        said.append(f"on {name} it {_SAID[worst]}{where}")
    also = (
        "It is not made for other shifted images either"
        if found.cells
        else "The promise is not made for shifted images"
    )
    return f"{also}: {'; '.join(said)}."


def _on_outside(found: Thresholded) -> str:
    """How many images of none of the classes are kept."""
    kept = [f"{with_sign(one.share)} of {name} ({one.kept:,} of {one.images:,})" for name, one in found.outside.items()]
    return f"Outside images belong to none of the classes, so none should be kept. The threshold keeps {listed(kept)}."


def _numbered(checked: CheckedShift) -> Iterator[tuple[int, Checked]]:
    return zip(checked.shift.severities, checked.cells, strict=True)


def _spared_in_words(spared: Sequence[str], corruptions: int) -> str:
    if not spared:
        return "It breaks under each corruption at least once."
    if len(spared) > _MOST_NAMES:
        return f"It never breaks under {len(spared)} of the {corruptions} corruptions."
    return f"It never breaks under {listed([*map(corruption_label, spared)])}."


def checks_table(found: Thresholded, start: str = "") -> Table | None:
    """What other images say of the promise; None where there are none. Corruptions are pooled at each severity.

    The caption begins with `start`.
    """
    shift, target = found.made_from.corrupted, with_sign(found.promise.target)
    each = f", {shift.images:,} under each corruption" if shift else ""
    caption = f"{start}the promise (below {target}) on test images{each}"
    rows = tuple(_rows(found))
    return Table(caption, _COLUMNS, rows) if rows else None


def cells_table(found: Thresholded, start: str = "", deepest: float = 1.0) -> Table | None:
    """The error of what is kept under each corruption at each severity, marked where it is above the target.

    None without corrupted images. `deepest` is the error that has the deepest colour.
    """
    shift = found.made_from.corrupted
    if shift is None:
        return None
    target = with_sign(found.promise.target)
    caption = (
        f"{start}error of what is kept, %; ✗\N{NO-BREAK SPACE}breaks: above {target} by more than chance, "
        "?\N{NO-BREAK SPACE}above it, perhaps by chance; nothing is kept:\N{NO-BREAK SPACE}–"
    )
    return Table(
        caption,
        (Column("Severity"), *(Column(str(number)) for number in shift.severities)),
        tuple(
            Row(corruption_label(name), tuple(_cell(cell, deepest) for cell in found.cells[name]))
            for name in shift.corruptions
        ),
    )


def highest_error(found: Thresholded) -> float:
    """Of what is kept in a cell; 0 where there are none."""
    return max((cell.error or 0.0 for cells in found.cells.values() for cell in cells), default=0.0)


def _cell(cell: Checked, deepest: float) -> Entry:
    """Only what is above the target has a colour."""
    if cell.error is None:
        return Entry("–", heat=0)
    text = f"{_MARKS[cell.verdict]}{100 * cell.error:.1f}"  # more digits would not fit on a phone
    return Entry(text, heat=0 if cell.verdict == "holds" else max(_FAINTEST, round(100 * cell.error / deepest)))


def _rows(found: Thresholded) -> Iterator[Row]:
    if found.test is not None:
        yield _row("clean", [found.test], found.test.verdict, "")
    shift = found.made_from.corrupted
    for place, severity in enumerate(shift.severities if shift else ()):
        cells = {name: of_name[place] for name, of_name in found.cells.items()}
        breaks = sum(cell.verdict == "breaks" for cell in cells.values())
        worst = max(cells, key=lambda name: cells[name].error or 0.0)
        label = f"{corruption_label(worst)} {or_dash(percent, cells[worst].error)}"
        yield _row(f"severity {severity}", list(cells.values()), f"breaks in {breaks} of {len(cells)}", label)
    for name, checked in found.shifts.items():
        for severity, cell in _numbered(checked):
            at = f", severity {severity}" if checked.shift.has_severities else ""
            yield _row(f"{name}{at}", [cell], cell.verdict, "")


def _row(label: str, sets: Sequence[Checked], verdict: str, worst: str) -> Row:
    images, kept, wrong = (sum(getattr(one, name) for one in sets) for name in ("images", "kept", "wrong"))
    error = or_dash(percent, wrong / kept if kept else None)
    return plain_row(label, percent(kept / images), error, verdict, worst)
