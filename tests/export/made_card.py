"""What a model card is made from, as values: a card can be tested without an export."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.config import to_dict
from counterpoint.experiments import find_experiment
from counterpoint.export.card_facts import CardFacts
from counterpoint.export.check import Agreement
from counterpoint.policy import MemberPolicy
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import Evaluated
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction
from tests.made_results import make_recalibrated, make_results, make_thresholded

RECALIBRATED_RUN, PROMISED = make_recalibrated(), make_thresholded()
EVALUATED = Evaluated(make_results(), RECALIBRATED_RUN, None, PROMISED)
CHOSEN = Correction(RECALIBRATED_RUN.ways["by both"].recalibration, "by both")
PLAIN = Correction(NONE, "none")
OF_THRESHOLD = Correction(PROMISED.recalibration, "before", PROMISED.promise.chosen.threshold)


def made_run(folder: Path = Path("/somewhere/runs/mine"), **changes: Any) -> Run:
    plain = replace(find_experiment("digits/quickstart"), policy=MemberPolicy(), init_std=0.5)
    experiment = replace(plain, num_members=2, train_on="split", **changes)
    description = {
        "classes": ["ant", "a_b *c*", "bee|wasp"],
        "channels": 1,
        "height": 8,
        "width": 12,
        "training_images": 1234,
        "total_steps": 5678,
        "normalisation": {"mean": 0.5, "std": 0.5},
    }
    record = {"schema": 1, "experiment": to_dict(experiment), "seed": 3, "description": description}
    return Run(folder, experiment, record)


def made_facts(
    correction: Correction = PLAIN,
    evaluated: Evaluated | None = EVALUATED,
    file_name: str = "model.onnx",
    **changes: Any,
) -> CardFacts:
    agreement = Agreement(3e-7, "5 images")
    return CardFacts(made_run(**changes), correction, "0123456789abcdef", file_name, evaluated, agreement)
