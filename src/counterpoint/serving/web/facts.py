"""What is served, as the page and /about say it."""

from dataclasses import asdict, dataclass
from typing import Any

from counterpoint import __version__
from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES
from counterpoint.runs.folder import Run
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.asking import MOST_PIXELS
from counterpoint.serving.web.diagram import Diagram, find_diagram
from counterpoint.serving.web.uploads import MOST_BYTES


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
