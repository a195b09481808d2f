"""Runs under suites of corruptions: what the report calls a suite, what it is made of, and its figures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Aggregate, CalibrationError, Estimate, Honest, Summary
from counterpoint.records.images import Source
from counterpoint.records.results import Shifted
from counterpoint.report.run import CALIBRATION, HEADLINE, ReportedRun, grouped, in_groups

PAPERS = "corrupted"
"""The name of the paper's suite, whose images everyone calls -C, and of given shifts."""
_SOURCES = {"official": "the official files", "given": "as given"}
_CONSTANTS = {"cifar-c": "CIFAR-C's", "imagenet-c": "ImageNet-C's"}
_SHORTER = {"elastic_transform": "Elastic", "jpeg_compression": "JPEG"}  # a heat map has to fit on a phone


@dataclass(frozen=True)
class ShiftedRun:
    """One run under one suite."""

    run: ReportedRun
    suite: str
    figures: Shifted

    @property
    def is_given(self) -> bool:
        """Whether nothing is known of the images, because only predictions for them were given."""
        return self.figures.source.kind == "given"

    @property
    def is_own(self) -> bool:
        """Whether the images were named with --shift."""
        return self.figures.source.kind == "own"

    @property
    def is_papers(self) -> bool:
        """Whether it is the paper's suite, or what stands in its place."""
        return self.suite == PAPERS

    @property
    def is_ours(self) -> bool:
        """Whether the shifts are corruptions that we know."""
        return not (self.is_given or self.is_own)

    @property
    def has_severities(self) -> bool:
        return self.figures.has_severities

    @property
    def cells(self) -> int:
        return len(self.figures.cells) * len(self.figures.severities)

    @property
    def called(self) -> str:
        return called(self.figures.source) if self.is_papers else self.suite

    @property
    def label(self) -> str:
        """The run's, with the suite where it is not the paper's."""
        return self.run.label if self.is_papers else f"{self.run.label} on {self.suite}"

    def shift_label(self, name: str) -> str:
        """A corruption in words. A user's own shift has the name that the user gave it."""
        return name if self.is_own else corruption_label(name)

    @property
    def kind(self) -> str:
        """What its images are, in a heading."""
        kind = "Corrupted images" if self.is_ours else "Shifted images"
        return kind if self.called == kind.lower() else f"{kind} ({self.called})"

    @property
    def dataset(self) -> str:
        """A user's own shift is the same images whatever a run was trained on."""
        dataset = self.run.results.evaluated_on.dataset
        if self.is_own:
            return self.called
        return f"{dataset}-{self.called.removeprefix('-')}" if self.is_ours else f"{dataset}, {self.called}"

    @property
    def images(self) -> str:
        part = "" if self.figures.part == "test" else f"{self.figures.part} "
        together = in_groups(self.figures.groups)
        images = self.made_of if self.is_own else f"{self.figures.images:,} {part}images per cell{together}"
        return f"{self.dataset}, {self.source}, {images}"

    @property
    def source(self) -> str:
        """Where the shifted images come from."""
        source = self.figures.source
        if source.kind == "own":
            return f"named with --shift (key {(source.key or '')[:8]})"
        if source.kind in _SOURCES:
            return _SOURCES[source.kind]
        assert source.constants is not None
        constants = _CONSTANTS[source.constants]
        frost = "photographs" if source.frost == "photographs" else "a made texture"
        return f"regenerated with {constants} constants, seed {source.seed} (generator {source.version})" + (
            f", frost from {frost}" if "frost" in self.figures.cells else ""
        )

    @property
    def made_of(self) -> str:
        kinds, severities = len(self.figures.cells), len(self.figures.severities)
        if self.is_own:
            images = counted(self.figures.images, "image") + in_groups(self.figures.groups)
            return f"{images} at each of {severities} severities" if self.has_severities else images
        shifts = counted(kinds, "shift") if self.is_given else f"{counted(kinds, 'kind')} of corruption"
        if not self.has_severities:
            return shifts
        each = f"each at {counted(severities, 'severity', 'severities')}"
        return f"{shifts}, {each}: {counted(kinds * severities, 'cell')}"

    @property
    def is_for_choices(self) -> bool:
        """Whether they are validation images, on which recalibrations are fitted and chosen."""
        return self.figures.part == "validation"

    @property
    def clean_is_severity_0(self) -> bool:
        """Whether the clean figures are of the very images that were corrupted."""
        on, shifted = self.run.results.evaluated_on, self.figures
        return (on.part, on.images) == (shifted.part, shifted.images) and shifted.source.key is None

    def aggregate(self, name: Aggregate) -> Summary:
        """A summary over all cells. Cells hold equally many images, so every kind has the same disagreement."""
        found = self.figures.aggregates
        return Summary(
            ensemble=found.ensemble[name],
            members=tuple(member[name] for member in found.members),
            disagreement=found.disagreement,
            pairwise_kl=found.pairwise_kl,
            honest=Honest(dict(self._estimates())) if name == HEADLINE else None,
        )

    def _estimates(self) -> Iterator[tuple[CalibrationError, Estimate]]:
        """Of the headline; none of results that an earlier version made."""
        figures, intervals = self.figures.aggregates.ensemble[HEADLINE], self.figures.aggregates.intervals
        for key in CALIBRATION if intervals else ():
            value, floor = getattr(figures, key), getattr(figures, f"{key}_floor")
            debiased = getattr(intervals, f"{key}_debiased")
            if floor is not None:
                yield key, Estimate(floor, value - floor, debiased.value, debiased.low, debiased.high)


def suites_of(run: ReportedRun) -> list[ShiftedRun]:
    """The run under each suite that it was evaluated on, the paper's first."""
    return [ShiftedRun(run, name, figures) for name, figures in run.results.suites.items()]


def is_folded(shifted: ShiftedRun, beside: Iterable[ShiftedRun]) -> bool:
    """Whether the page folds its figures away: those of validation images, beside figures of test images."""
    return shifted.is_for_choices and not all(one.is_for_choices for one in beside)


def papers_suite(run: ReportedRun) -> ShiftedRun | None:
    corrupted = run.results.corrupted
    return None if corrupted is None else ShiftedRun(run, PAPERS, corrupted)


def papers_suites(runs: Iterable[ReportedRun]) -> list[ShiftedRun]:
    """The runs that were evaluated on the paper's suite."""
    return [shifted for run in runs if (shifted := papers_suite(run))]


def by_suite(runs: Iterable[ReportedRun]) -> dict[str, list[ShiftedRun]]:
    """All runs under each suite, the paper's first."""
    every = [shifted for run in runs for shifted in suites_of(run)]
    groups = grouped(every, lambda shifted: shifted.called if shifted.is_given else shifted.suite)
    return dict(sorted(groups.items(), key=lambda group: not group[1][0].is_papers))


def by_cells(shifted: Iterable[ShiftedRun]) -> list[tuple[str, list[ShiftedRun]]]:
    """The runs that may be compared: under the same corruptions of the same images. With each group, its images."""
    groups = grouped(shifted, same_cells)
    return [(group[0].images, group) for group in groups.values()]


def same_cells(one: ShiftedRun) -> tuple[object, ...]:
    """What two runs have in common if they were evaluated on the same cells."""
    figures, clean = one.figures, one.run.results.evaluated_on
    if one.is_own:  # whatever they were trained on
        return figures.source.key, figures.severities
    return one.images, clean.key, figures.source.key, tuple(figures.cells), figures.severities


def called(source: Source) -> str:
    """What the images of the paper's suite are called, and those that stand in its place."""
    return "shifted images" if source.kind == "given" else "-C"


def corruption_label(name: str) -> str:
    words = name.replace("_", " ")
    return _SHORTER.get(name, words[:1].upper() + words[1:])


def counted(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def named_severities(shifted: ShiftedRun) -> Sequence[str]:
    if not shifted.has_severities:
        return ["All images"]
    return [f"Severity {number}" for number in shifted.figures.severities]
