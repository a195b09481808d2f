"""What a model card is made from: the run, its correction, and those of its records that belong to these weights."""

from dataclasses import dataclass
from pathlib import Path

from counterpoint.export.check import Agreement
from counterpoint.recalibration.choose import NONE
from counterpoint.records.figures import Summary
from counterpoint.records.files import RESULTS, Evaluated, read_evaluated
from counterpoint.records.recalibrated import Recalibrated, Scaled
from counterpoint.records.threshold import Thresholded
from counterpoint.report.run import HEADLINE, ReportedRun, aggregate_summary, clean_summary
from counterpoint.report.suites import suites_of
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction
from counterpoint.storage.folders import quoted


@dataclass(frozen=True)
class Measured:
    """The figures on one set of images, what that set is called in a table, and what it is."""

    called: str
    dataset: str
    part: str
    images: str
    summary: Summary


@dataclass(frozen=True)
class CardFacts:
    run: Run
    correction: Correction
    weights: str
    file_name: str
    evaluated: Evaluated | None
    agreement: Agreement

    @property
    def members(self) -> int:
        return self.run.experiment.members

    @property
    def reported(self) -> ReportedRun | None:
        return None if self.evaluated is None else ReportedRun(self.run.experiment.name, self.evaluated)

    @property
    def recalibrated(self) -> Recalibrated | None:
        return None if self.evaluated is None else self.evaluated.recalibrated

    @property
    def way(self) -> Scaled | None:
        """The run's recalibration that the file has."""
        ways = () if self.recalibrated is None else self.recalibrated.ways.values()
        return next((way for way in ways if way.recalibration == self.correction.recalibration), None)

    @property
    def thresholded(self) -> Thresholded | None:
        return None if self.evaluated is None else self.evaluated.thresholded

    @property
    def is_promised(self) -> bool:
        """Whether a threshold's promise is for exactly the confidences that the file gives."""
        found = self.thresholded
        return found is not None and found.recalibration == self.correction.recalibration

    def measured(self) -> tuple[Measured, ...]:
        """The figures of exactly the confidences that the file gives; none if these were not measured."""
        if self.reported is None:
            return ()
        run, on = self.reported, self.reported.results.evaluated_on
        if self.correction.recalibration == NONE:
            clean, shifted = run.clean, [(one, one.aggregate(HEADLINE)) for one in suites_of(run)]
        elif self.way is not None:
            scaled = [(one, self.way.on(one.suite)) for one in suites_of(run)]
            clean = clean_summary(self.way)
            shifted = [(one, aggregate_summary(figures, HEADLINE)) for one, figures in scaled if figures]
        else:
            return ()
        return (
            Measured("clean", on.dataset, on.part, run.images, clean),
            *(Measured(one.called, one.dataset, one.figures.part, one.images, found) for one, found in shifted),
        )


def known_of(folder: Path, weights: str) -> tuple[Evaluated | None, tuple[str, ...]]:
    """What is known of a run with these weights, and a note for each record that is of others."""
    if not (folder / RESULTS).exists():
        return None, ()
    evaluated = read_evaluated(folder)
    if evaluated.results.evaluation.weights != weights:
        note = (
            f"left out of the card: {folder / RESULTS} is not of the weights that {folder} has now; "
            f"`counterpoint evaluate {quoted(folder)}` makes it anew"
        )
        return None, (note,)
    return evaluated, evaluated.notes
