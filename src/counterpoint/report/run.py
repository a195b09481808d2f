"""A run as the report shows it: its name on the page, the images it was measured on, and its figures.

The clean set, a cell and an aggregate over cells are all a `Summary`, so that tables, headlines and files treat them
alike.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar, get_args

from counterpoint.errors import InputError
from counterpoint.records.figures import Aggregate, CalibrationError, Estimates, Figures, Honest, Summary
from counterpoint.records.files import Evaluated
from counterpoint.records.images import InGroups
from counterpoint.records.recalibrated import Scaled, ScaledCorrupted
from counterpoint.records.results import Results
from counterpoint.report.naming import joined_labels, run_labels, settings_apart

AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
HEADLINE = AGGREGATES[0]
CALIBRATION: tuple[CalibrationError, ...] = get_args(CalibrationError)

Scores = dict[str, float | None]
"""The figures of one model by name, with its honest estimates; None or missing where there is no such figure."""

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class ReportedRun:
    label: str
    evaluated: Evaluated
    place: int = 0  # among the runs of a page, from 0; it gives the run its colour and its marker
    settings: str = ""  # those that differ from other runs of its name

    @property
    def results(self) -> Results:
        return self.evaluated.results

    @property
    def clean(self) -> Summary:
        return self.results.clean

    @property
    def images(self) -> str:
        on = self.results.evaluated_on
        return f"{on.dataset}, {on.part} part, {on.images:,} images{in_groups(on.groups)}"

    @property
    def commands(self) -> tuple[str, ...]:
        """All that was done to the run, in order. A program that did several of these is named once."""
        begun, evaluation = self.results.run or self.results.imported, self.results.evaluation
        added = (self.evaluated.recalibrated, self.evaluated.compared, self.evaluated.thresholded)
        commands = [begun.command if begun else "", *evaluation.earlier_commands, evaluation.command]
        commands += [record.command for record in added if record]
        return tuple(dict.fromkeys(filter(None, commands)))


def in_groups(groups: InGroups | None) -> str:
    """What is to be added to a number of images, if they are in groups."""
    return f" in {groups.count:,} groups" if groups else ""


def drawn_over(*groups: InGroups | None) -> str:
    """What the intervals of some sets of images are over: images, or groups of images that belong together."""
    counts = sorted({one.count for one in groups if one})
    if not counts:
        return "over images"
    if None in groups:
        return "over images, or groups of images"
    return f"over {' to '.join(f'{count:,}' for count in dict.fromkeys((counts[0], counts[-1])))} groups"


def label_runs(evaluated: Sequence[Evaluated]) -> list[ReportedRun]:
    """The runs, each by its experiment's name, with what tells it apart where names are equal."""
    if not evaluated:
        raise InputError("there is no run to report; give at least one run folder")
    all_results = [run.results for run in evaluated]
    labels = run_labels(all_results, [run.folder for run in evaluated])
    named = zip(labels, evaluated, settings_apart(all_results), strict=True)
    return [ReportedRun(label, of_run, place, settings) for place, (label, of_run, settings) in enumerate(named)]


def page_title(runs: Sequence[ReportedRun]) -> str:
    if len(runs) > 3:
        return f"{len(runs)} runs compared"
    return joined_labels([run.results.experiment for run in runs], [run.label for run in runs])


def models(summary: Summary) -> Iterator[tuple[str, Scores]]:
    """The scores of the ensemble and then of each member, or of the one network."""
    several = len(summary.members) > 1
    honest = summary.honest or Honest({})
    between = {"disagreement": summary.disagreement, "pairwise_kl": summary.pairwise_kl}
    yield "ensemble" if several else "network", _scores(summary.ensemble, honest.ensemble) | between
    if several:
        estimates = honest.members or len(summary.members) * ({},)
        for number, (figures, of_member) in enumerate(zip(summary.members, estimates, strict=True), start=1):
            yield f"member {number}", _scores(figures, of_member)


def whole_scores(summary: Summary) -> Scores:
    """The scores of the ensemble, or of the one network."""
    return next(models(summary))[1]


def clean_summary(scaled: Scaled) -> Summary:
    """The figures with a recalibration on clean images."""
    return Summary(ensemble=scaled.clean.ensemble, members=scaled.clean.members, disagreement=None)


def aggregate_summary(corrupted: ScaledCorrupted, aggregate: Aggregate) -> Summary:
    """The figures with a recalibration over all cells."""
    members = tuple(member[aggregate] for member in corrupted.members)
    return Summary(ensemble=corrupted.ensemble[aggregate], members=members, disagreement=None)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by their key, in the order in which the keys come."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_images(runs: Iterable[ReportedRun]) -> list[tuple[str, list[ReportedRun]]]:
    """The runs on the same images, with what these are. Two sets can have one name and not the same images."""
    return [(group[0].images, group) for group in grouped(runs, lambda run: run.results.evaluated_on).values()]


def _scores(figures: Figures, honest: Estimates) -> Scores:
    """With the honest estimates beside each calibration error; an aggregate over cells has only its noise floor."""
    scores: Scores = asdict(figures)
    for key in CALIBRATION:
        value, floor = scores[key], scores.get(f"{key}_floor")
        if value is not None and floor is not None:
            scores[f"{key}_excess"] = value - floor
    estimates = {f"{key}_{part}": value for key, parts in honest.items() for part, value in asdict(parts).items()}
    return scores | estimates
