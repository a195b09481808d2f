"""Experiments less others over seeds, as `counterpoint compare` computed it: what is decided in words, and tables.

The first experiment is A and the other one is B, because names are too long for headings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from counterpoint.errors import listed, some
from counterpoint.records.compared import with_folder
from counterpoint.records.over_seeds import SeedsComparison, SeedsDifference, TrainedExperiment
from counterpoint.records.settings import differing, settings_of, value_text
from counterpoint.report.numbers import shown_together
from counterpoint.report.tables import Column, Row, Table, plain_row

_FEW = 5  # pairs. With fewer the intervals are very long


@dataclass(frozen=True)
class _Figure:
    """How a figure is shown."""

    label: str
    unit: str = ""
    digits: int = 3
    scale: int = 1

    @property
    def heading(self) -> str:
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def points(self) -> str:
        """The heading of a difference."""
        return self.heading.replace("%", "points")

    def signed(self, *numbers: float, ends: Sequence[float] = ()) -> list[str]:
        return shown_together([self.scale * one for one in numbers], [self.scale * one for one in ends], self.digits)

    def plain(self, *numbers: float) -> list[str]:
        return [text.lstrip("+") for text in self.signed(*numbers)]


_FIGURES = {
    "error": _Figure("error", "%", 2, 100),
    "nll": _Figure("NLL", "nats"),
    "brier": _Figure("Brier"),
    "ece_width15_debiased": _Figure("ECE", "%", 2, 100),
    "ece_width15": _Figure("ECE (not debiased)", "%", 2, 100),
    "auroc": _Figure("AUROC"),
}


@dataclass(frozen=True)
class _Set:
    """The differences on one set of images, by what is shown of them."""

    heading: str
    images: str
    found: Mapping[_Figure, SeedsDifference]


def comparison_in_words(ours: TrainedExperiment, comparison: SeedsComparison) -> Iterator[str]:
    """What is compared, and what the seeds decide."""
    other = comparison.other
    same_name = ours.experiment == other.experiment
    for letter, one in (("A", ours), ("B", other)):
        name = with_folder(one.experiment, one.place) if same_name else one.experiment
        left_out = f" (left out, not evaluated yet: {some(one.without_results)})" if one.without_results else ""
        yield f"{letter}: {name}, {_seeds(one)}{left_out}"
    yield _settings_apart(ours, other)
    if not _has_pairs(comparison):
        yield "A and B do not have the same seeds, so their runs are not paired: they are two groups."
    yield from _not_shared(ours, comparison)
    for one_set in _sets(comparison):
        yield from _set_in_words(one_set)
    if few := _few_seeds(ours, comparison):
        yield few


def comparison_over_seeds(ours: TrainedExperiment, comparison: SeedsComparison) -> Iterator[Table]:
    """The means of both experiments and their differences, and what stands behind them: each pair, or each run."""
    sets = list(_sets(comparison))
    how = "in pairs of equal seeds" if _has_pairs(comparison) else "as two groups of seeds (Welch)"
    yield Table(
        f"A − B over seeds, {how}; mean ± standard deviation; ECE with 15 equal-width bins, debiased if not said "
        "otherwise",
        (Column(""), Column("A"), Column("B"), Column("A − B"), Column("Interval", "95 %, over seeds")),
        tuple(_row(one_set, figure, found) for one_set in sets for figure, found in one_set.found.items()),
    )
    for one_set in sets:
        yield _pairs_table(one_set, ours.seeds) if _has_pairs(comparison) else _runs_table(one_set, ours, comparison)


def _has_pairs(comparison: SeedsComparison) -> bool:
    return comparison.pairing == "pairs of equal seeds"


def _sets(comparison: SeedsComparison) -> Iterator[_Set]:
    shifts = {name: one.differences for name, one in comparison.shifts.items()}
    for heading, images, differences in (
        ("clean", "clean images", comparison.clean),
        ("-C", "corrupted images", comparison.corrupted),
        *((name, f"the shifted images of “{name}”", found) for name, found in shifts.items()),
    ):
        hidden = "ece_width15" if "ece_width15_debiased" in differences else ""
        found = {figure: differences[key] for key, figure in _FIGURES.items() if key in differences and key != hidden}
        if found:
            yield _Set(heading, images, found)
    for name, one in comparison.outside.items():
        yield _Set(name, f"the outside images of “{name}”", {_FIGURES["auroc"]: one.auroc})


def _seeds(one: TrainedExperiment) -> str:
    """Runs of seeds without a gap are shortened: there may be many."""
    first, last = one.seeds[0], one.seeds[-1]
    whole = len(one.seeds) > 3 and last - first == len(one.seeds) - 1
    return f"seeds {first} to {last}" if whole else f"seeds {listed([str(seed) for seed in one.seeds])}"


def _settings_apart(ours: TrainedExperiment, other: TrainedExperiment) -> str:
    settings = [settings_of(one.config) for one in (ours, other)]
    keys = differing(settings)
    texts = [f"{key} ({value_text(key, settings[0])}, {value_text(key, settings[1])})" for key in keys]
    return f"A and B differ in {some(texts)}." if texts else "A and B have the same settings."


def _not_shared(ours: TrainedExperiment, comparison: SeedsComparison) -> Iterator[str]:
    """The sets of images that both have, but not the same ones."""
    have_cells = all(one.runs[0].made_from.corrupted for one in (ours, comparison.other))
    lacking = {"clean": not comparison.clean, "corrupted": have_cells and not comparison.corrupted}
    for images, is_lacking in lacking.items():
        if is_lacking:
            yield f"A and B were not evaluated on the same {images} images, so these are left out."


def _set_in_words(one_set: _Set) -> Iterator[str]:
    labels: dict[str, list[str]] = {"lower": [], "higher": [], "not decided": [], "no interval": []}
    for figure, found in one_set.found.items():
        labels[_verdict(found)].append(figure.label)
    told = [f"a {verdict} {listed(labels[verdict])}" for verdict in ("lower", "higher") if labels[verdict]]
    if told:
        yield f"On {one_set.images} A has {listed(told)} than B, over seeds."
    if unclear := labels["not decided"]:
        yield (
            f"On {one_set.images} the seeds do not decide {listed(unclear)}: "
            f"{'its interval holds' if len(unclear) == 1 else 'these intervals hold'} 0."
        )
    if equal := labels["no interval"]:
        yield f"On {one_set.images} all seeds agree in {listed(equal)}, so nothing says how far others would differ."


def _verdict(found: SeedsDifference) -> str:
    if found.low is None or found.high is None:
        return "no interval"
    return "lower" if found.high < 0 else "higher" if found.low > 0 else "not decided"


def _few_seeds(ours: TrainedExperiment, comparison: SeedsComparison) -> str:
    """How far an interval reaches with few seeds. Empty where there are enough of them, or no interval."""
    counts = len(ours.seeds), len(comparison.other.seeds)
    found = [one for one_set in _sets(comparison) for one in one_set.found.values()]
    reaches = [_reach(one, *counts) for one in found if one.low is not None]
    if min(counts) >= _FEW or not reaches:
        return ""
    shortest, longest = f"{min(reaches):.1f}", f"{max(reaches):.1f}"
    reach = longest if shortest == longest else f"{shortest} to {longest}"
    seeds = f"{counts[0]} pairs of seeds" if _has_pairs(comparison) else f"{counts[0]} and {counts[1]} seeds"
    return (
        f"With {seeds} an interval reaches {reach} standard errors to each side, so only a difference far above its "
        f"spread is decided. With {_FEW} pairs it reaches 2.8. More seeds also make the standard errors smaller."
    )


def _reach(found: SeedsDifference, ours: int, other: int) -> float:
    """How many standard errors an interval reaches to each side."""
    assert found.low is not None
    if found.by_seed:
        return (found.difference - found.low) / (found.deviation / sqrt(ours))
    return (found.difference - found.low) / sqrt(found.ours.deviation**2 / ours + found.other.deviation**2 / other)


def _row(one_set: _Set, figure: _Figure, found: SeedsDifference) -> Row:
    ends = [end for end in (found.low, found.high) if end is not None]
    value, *interval = figure.signed(found.difference, *ends, ends=ends)
    (deviation,) = figure.plain(found.deviation)
    return plain_row(
        f"{one_set.heading}: {figure.heading}",
        *(" ± ".join(figure.plain(one.mean, one.deviation)) for one in (found.ours, found.other)),
        f"{value} ± {deviation}",
        " to ".join(interval) or "none",
    )


def _pairs_table(one_set: _Set, seeds: Sequence[int]) -> Table:
    columns = {figure.points: figure.signed(*found.by_seed) for figure, found in one_set.found.items()}
    return _seeds_table(f"A − B of each pair on {one_set.images}", columns, [str(seed) for seed in seeds])


def _runs_table(one_set: _Set, ours: TrainedExperiment, comparison: SeedsComparison) -> Table:
    names = [f"{letter}, {seed}" for letter, one in (("A", ours), ("B", comparison.other)) for seed in one.seeds]
    columns = {
        figure.heading: figure.plain(*found.ours.values, *found.other.values) for figure, found in one_set.found.items()
    }
    return _seeds_table(f"Each run on {one_set.images}", columns, names)


def _seeds_table(caption: str, columns: Mapping[str, Sequence[str]], names: Sequence[str]) -> Table:
    rows = zip(names, zip(*columns.values(), strict=True), strict=True)
    return Table(caption, (Column("seed"), *map(Column, columns)), tuple(plain_row(name, *row) for name, row in rows))
