"""Export a finished run: trace it, compare the result with PyTorch, and only then write the file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

import counterpoint
from counterpoint.evaluation.members import check_trusted
from counterpoint.export.card import check_card_path, model_card
from counterpoint.export.card_facts import CardFacts, known_of
from counterpoint.export.check import Agreement, check_images, compare, refuse_difference
from counterpoint.export.formats import format_of
from counterpoint.export.network import trace, whole_network
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import Correction, find_correction
from counterpoint.serving.network import load_corrected
from counterpoint.storage.files import check_file_path, write_atomically


@dataclass(frozen=True)
class Written:
    """What was written, how far it differs from PyTorch, and which of the run's records the card leaves out.

    >>> from dataclasses import fields
    >>> from counterpoint.export import Written
    >>> [field.name for field in fields(Written)]
    ['path', 'card', 'size', 'correction', 'agreement', 'notes']
    """

    path: Path
    card: Path
    size: int
    correction: Correction
    agreement: Agreement
    notes: tuple[str, ...]


def export_run(
    run: Run | Path | str,
    path: Path | str,
    root: Path | str | None = None,
    *,
    not_sure_below: str | float | None = None,
    trusted_model: str | None = None,
) -> Written:
    """Write the run as an .onnx or .pt2 file, with a model card beside it, which has the file's name and .md.

    `run` is a run, or its folder. Confidences are corrected as `predict` does with the same `not_sure_below`. If the
    file would give other probabilities than PyTorch, nothing is written. `trusted_model` is the name of the model, if
    it is a function of your own. Without it the function is not imported, because a name in the run's files is not
    enough. The test images for the comparison are read from `root`.

    >>> from pathlib import Path
    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load
    >>> from counterpoint.export import export_run
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> export_run("runs/mine", "model.pt2").card.name
    'model.pt2.md'
    """
    run, path, root = load_run(run), Path(path), Path(root) if root else None
    kind, card = format_of(path), path.with_name(f"{path.name}.md")
    check_file_path(path, f"model{path.suffix}")
    check_card_path(card)
    check_trusted(run, trusted_model)
    description, correction = run.description, find_correction(run.folder, not_sure_below)
    model = load_corrected(run, correction, torch.device("cpu"), trusted_model)
    weights = fingerprint(model.state_dict())
    images_NCHW, images = check_images(run, root)
    network = whole_network(model, description.normalisation, correction.recalibration)
    two_NHWC = images_NCHW[:2].permute(0, 2, 3, 1)
    content = kind.write(trace(network, two_NHWC, run.experiment.model), _facts(run, correction, weights))
    agreement = Agreement(compare(kind.read(content), model, run, correction, images_NCHW), images)
    refuse_difference(agreement, path)
    evaluated, notes = known_of(run.folder, weights)
    text = model_card(CardFacts(run, correction, weights, path.name, evaluated, agreement))
    write_atomically(path, content)
    write_atomically(card, text.encode())
    return Written(path, card, len(content), correction, agreement, notes)


def _facts(run: Run, correction: Correction, weights: str) -> Mapping[str, str]:
    """What the file says of itself."""
    sure = {} if correction.sure_from is None else {"sure_from": repr(correction.sure_from)}
    return {
        "classes": json.dumps(run.description.classes, ensure_ascii=False),
        "recalibration": correction.name,
        **sure,
        "experiment": run.experiment.name,
        "weights": weights,
        "counterpoint": counterpoint.__version__,
    }
