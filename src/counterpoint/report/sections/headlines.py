"""The main figures of all runs: one table for each set of images, with the differences between compared runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.errors import listed
from counterpoint.records.compared import Difference
from counterpoint.records.figures import Summary
from counterpoint.report.metrics import BY_KEY, Metric, shown_difference
from counterpoint.report.numbers import or_dash, percent, signed
from counterpoint.report.pairs import ComparedPair, compared_pairs, differences_on
from counterpoint.report.run import HEADLINE, ReportedRun, by_images, drawn_over, in_groups, models, whole_scores
from counterpoint.report.section import Block, Content
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, suites_of
from counterpoint.report.tables import Column, Entry, Row, Table, plain_row

TITLE = "Main figures"
# Page and terminal say which bins the ECE has, so that its columns can be narrow.
_ERROR_AND_ECE = (
    BY_KEY["error"],
    Metric("ece_width15", Column("ECE", "%"), percent),
    Metric("ece_width15_floor", Column("Noise floor", "%"), percent),
)
_TERMINAL = (
    *_ERROR_AND_ECE,
    Metric("ece_width15_excess", Column("Excess", "points"), signed),
    Metric("ece_rms_width15", Column("ECE-rms", "%"), percent),
)
# The most important ones first: a phone shows three of them beside the names.
_MAIN = (*_ERROR_AND_ECE, *(BY_KEY[key] for key in ("overconfidence", "nll", "brier", "mean_confidence")))
_COMPARED = {"error": "error", "ece_width15": "ece_width15_debiased", "nll": "nll", "brier": "brier"}


@dataclass(frozen=True)
class Headlines(Content):
    kinds: tuple[str, ...]  # what each run is, in words
    tables: tuple[Table, ...]
    has_differences: bool
    has_cells: bool

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, (*self.kinds, *self.tables))


def headlines(runs: Sequence[ReportedRun]) -> Headlines:
    """Clean images first, then each set of shifted images. Figures of different images are never in one table."""
    pairs = compared_pairs(runs)
    tables = [
        _table(f"Clean images: {images}", [(run, run.clean) for run in group], _on(pairs, group, ""))
        for images, group in by_images(runs)
    ]
    suites = list(by_suite(runs).values())
    # Corrupted validation images are for choices, not for results.
    for suite in [suite for suite in suites if not suite[0].is_for_choices] or suites:
        for images, together in by_cells(suite):
            found = _on(pairs, [one.run for one in together], together[0].suite)
            rows = [(one.run, one.aggregate(HEADLINE)) for one in together]
            tables.append(_table(f"{_set_name(together[0])}: {images}", rows, found))
    return Headlines(
        tuple(words for run in runs for words in (_kind_in_words(run), *_groups_in_words(run))),
        tuple(tables),
        has_differences=bool(pairs),
        has_cells=any(one.cells > 1 for suite in suites for one in suite),
    )


def _set_name(shifted: ShiftedRun) -> str:
    if not shifted.is_ours:
        return "Shifted images"
    return "Corrupted images" if shifted.figures.part == "test" else f"Corrupted {shifted.figures.part} images"


Found = tuple[ComparedPair, dict[str, Difference]]
"""Two runs, and the differences between them on one set of images."""


def _on(pairs: Sequence[ComparedPair], group: Sequence[ReportedRun], suite: str) -> list[Found]:
    """The differences on a set of images, clean ones where `suite` is empty."""
    return [(pair, found) for pair in pairs if pair.run in group and (found := differences_on(pair.other, suite))]


def _table(caption: str, summaries: Sequence[tuple[ReportedRun, Summary]], differences: Sequence[Found]) -> Table:
    scores = [(run.label, whole_scores(summary)) for run, summary in summaries]
    known = [metric for metric in _MAIN if any(of_run.get(metric.key) is not None for _, of_run in scores)]
    rows = [
        plain_row(label, *(or_dash(metric.show, of_run.get(metric.key)) for metric in known), kind="run")
        for label, of_run in scores
    ]
    for pair, found in differences:
        rows.append(Row(pair.label, tuple(_difference(metric.key, found) for metric in known), "member"))
    return Table(caption, (Column("Run"), *(metric.column for metric in known)), tuple(rows))


def _difference(key: str, found: dict[str, Difference]) -> Entry:
    one = found.get(_COMPARED.get(key, ""))
    if one is None:
        return Entry("–")
    value, interval = shown_difference(one, BY_KEY[key])
    return Entry(value, below=interval)


def headline_table(run: ReportedRun) -> Table:
    """The ensemble's and its members' figures on clean images, and on each suite, averaged over its corruptions."""
    on, called = run.results.evaluated_on, [shifted.called for shifted in suites_of(run)]
    suites = f", and on {listed(called)}" if called else ""
    sets = {"clean": run.clean} | {shifted.called: shifted.aggregate(HEADLINE) for shifted in suites_of(run)}
    by_model = zip(*(models(summary) for summary in sets.values()), strict=True)
    images = f"{on.images:,} {on.dataset} {on.part} images{in_groups(on.groups)}"
    return Table(
        f"{run.label} on {images}{suites}; 15 equal-width bins",
        (Column("Model"), Column("Images"), *(metric.column for metric in _TERMINAL)),
        tuple(
            plain_row(
                _model(run, name) if images == "clean" else "",
                images,
                *(or_dash(metric.show, scores.get(metric.key)) for metric in _TERMINAL),
            )
            for of_model in by_model
            for images, (name, scores) in zip(sets, of_model, strict=True)
        ),
    )


def suites_in_words(run: ReportedRun) -> list[str]:
    """What each suite is made of, and how its cells become one figure."""
    averaged = [shifted for shifted in suites_of(run) if shifted.cells > 1]
    words = []
    for shifted in suites_of(run):
        images = "" if shifted.is_own else f" of {shifted.figures.images:,} {shifted.figures.part} images"
        images += "" if shifted.is_own else in_groups(shifted.figures.groups)
        words.append(f"{shifted.called}: {shifted.made_of}{images}, {shifted.source}.")
    if averaged:
        kind = "corruption" if all(shifted.is_ours for shifted in averaged) else "shift"
        words.append(
            f"On {listed([shifted.called for shifted in averaged])} each figure is computed per {kind}, over its "
            f"severities together, and then averaged over the {kind}s."
        )
    return [*words, *_groups_in_words(run)]


def _groups_in_words(run: ReportedRun) -> Iterator[str]:
    """Where images belong together, what that means for the intervals."""
    of_sets = {"clean images": (run.results.evaluated_on.groups, run.clean.honest is not None)}
    for shifted in suites_of(run):
        of_sets[shifted.called] = shifted.figures.groups, shifted.figures.aggregates.intervals is not None
    having = {name: groups for name, (groups, has_intervals) in of_sets.items() if groups and has_intervals}
    if having:
        yield (
            f"Intervals and noise floors on {listed([*having])} are {drawn_over(*having.values())} of images that "
            "belong together: a group is one draw."
        )
    if lacking := [name for name, (groups, has_intervals) in of_sets.items() if groups and not has_intervals]:
        yield (
            f"There are no intervals and no noise floors on {listed(lacking)}: they need at least 10 groups, none of "
            "which has more than half of the images."
        )


def _model(run: ReportedRun, name: str) -> str:
    """What was trained elsewhere need not be a network."""
    return "model" if run.results.imported and name == "network" else name


def _kind_in_words(run: ReportedRun) -> str:
    """With the settings that its name leaves out."""
    kind = f"a single {_model(run, 'network')}"
    if run.results.is_ensemble:
        kind = f"an ensemble of {len(run.clean.members)} {'separate networks' if run.results.is_deep else 'members'}"
    elsewhere = " that was trained elsewhere" if run.results.imported else ""
    settings = "" if run.settings in run.label else f" ({run.settings})"
    return f"{run.label} is {kind}{elsewhere}{settings}."
