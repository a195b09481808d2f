"""What is served, as the page and /about say it: the network, and how often predictions of a confidence were right."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from counterpoint import __version__
from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES
from counterpoint.errors import InputError
from counterpoint.evaluation.logits import read_about, read_clean
from counterpoint.metrics.summary import equal_bins
from counterpoint.recalibration.apply import recalibrated_scores
from counterpoint.recalibration.choose import NONE
from counterpoint.records.figures import Bin
from counterpoint.records.files import RESULTS, read_results
from counterpoint.records.images import Images
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.limits import MOST_BYTES, MOST_PIXELS

BINS = 15
_EVALUATE = "counterpoint evaluate RUN makes it"
_LOGITS = "counterpoint evaluate RUN makes them"


@dataclass(frozen=True)
class Diagram:
    """Equal-width bins of the ensemble's confidence, those that hold images, and on which images they were counted."""

    bins: tuple[Bin, ...]
    images: Images
    recalibrated: bool


def find_diagram(run: Run, correction: Correction, weights: str) -> Diagram | str:
    """The diagram of a run's clean images with this correction, or why there is none.

    results.json has the bins of the network's own confidences. With a recalibration they are counted again, from the
    members' logits that `evaluate` left: bins of other confidences would not fit those that are served.
    """
    file = run.folder / RESULTS
    if not file.exists():
        return f"There is no results.json; {_EVALUATE}."
    results = read_results(file)
    if results.evaluation.weights not in (None, weights):  # the first results did not keep them
        return f"results.json is of other weights than the run has now; {_EVALUATE} again."
    if correction.recalibration != NONE:
        return _recalibrated(run, correction, weights)
    if results.clean.reliability is None:
        return f"results.json has no bins; {_EVALUATE} again."
    return Diagram(results.clean.reliability.width15, results.evaluated_on, recalibrated=False)


def bin_of(confidence: float) -> int:
    """The number, from 0, of the equal-width bin (low, high] that a confidence falls into."""
    return int(np.searchsorted(np.arange(1, BINS) / BINS, confidence, side="left"))


def _recalibrated(run: Run, correction: Correction, weights: str) -> Diagram | str:
    try:
        about, clean = read_about(run), read_clean(run)
    except InputError:
        return f"results.json has no bins of recalibrated confidence, and there are no logits to count them; {_LOGITS}."
    if about.weights != weights:
        return f"The logits are of other weights than the run has now; {_LOGITS}."
    bins = equal_bins(recalibrated_scores(correction.recalibration, clean), "width")
    return Diagram(bins, about.clean, recalibrated=True)


@dataclass(frozen=True)
class Facts:
    """What the server tells about a run. The run's folder is left out, because clients must not learn it."""

    experiment: str
    model: str
    classes: tuple[str, ...]
    members: int
    size: int
    grey: bool
    recalibration: str
    members_recalibrated: bool
    """A recalibration after averaging is not the members' own."""
    sure_from: float | None
    diagram: Diagram | str
    """Or why there is none."""


def find_facts(run: Run, predictor: Predictor) -> Facts:
    """What a run is, with the confidences that the predictor gives."""
    correction = predictor.correction
    return Facts(
        run.experiment.name,
        run.experiment.model,
        tuple(predictor.classes),
        run.experiment.members,
        predictor.decoding.size,
        predictor.decoding.grey,
        correction.name,
        correction.recalibration.acts != "after",
        correction.sure_from,
        find_diagram(run, correction, predictor.weights),
    )


def facts_as_json(facts: Facts) -> dict[str, Any]:
    """Everything that a program needs to know, with the limits of what may be asked."""
    values = {key: value for key, value in asdict(facts).items() if key != "diagram"}
    return {
        "counterpoint": __version__,
        **values,
        "corruptions": [*CORRUPTIONS, *EXTRA_CORRUPTIONS],
        "severities": [0, *SEVERITIES],
        "most_bytes": MOST_BYTES,
        "most_pixels": MOST_PIXELS,
        "reliability": asdict(facts.diagram) if isinstance(facts.diagram, Diagram) else None,
        "no_reliability": facts.diagram if isinstance(facts.diagram, str) else None,
    }


def facts_in_words(facts: Facts) -> str:
    """One line of what the network is and what it takes."""
    who = f"{facts.members} members of {facts.model}" if facts.members > 1 else f"one {facts.model}"
    colour = "in grey" if facts.grey else "in colour"
    return f"{who}, {len(facts.classes):,} classes, images of {facts.size} × {facts.size} pixels {colour}"
