"""A run describes itself: what its network must know of the images it was trained on, and how long it is trained."""

from collections.abc import Iterator
from contextlib import contextmanager

from counterpoint.config import Experiment
from counterpoint.data import Parts
from counterpoint.errors import InputError
from counterpoint.model_names import library_of
from counterpoint.models import ModelFacts, describe_model, wanted_of
from counterpoint.nn import Ensemble
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run, keep_description
from counterpoint.training.network import WithWeights, as_it_is, build_model
from counterpoint.training.step import total_steps


def describe(experiment: Experiment, parts: Parts, facts: ModelFacts | None = None) -> Description:
    """What a run of the experiment has to keep. Without `facts` the library that the model is of is asked for them."""
    channels, height, width = parts.train.image_shape
    if facts is None:
        size = (height, width)
        facts = describe_model(wanted_of(experiment, len(parts.train.classes), channels, size, pretrained=False))
    images = len(parts.train)
    return Description(
        classes=parts.train.classes,
        channels=channels,
        height=height,
        width=width,
        training_images=images,
        total_steps=total_steps(experiment, images),
        normalisation=facts.normalisation,
        model_config=facts.configuration,
        images_key=parts.keys.get("train"),
    )


def describe_run(run: Run, parts: Parts) -> Run:
    """The run with its description in run.json, which is added where an earlier version began the run.

    Images that do not fit the description are refused. So is a run of a library's model without one, since the library
    would ask its hub, and a run is loaded from its own files.
    """
    is_described = "description" in run.record
    if not is_described and library_of(run.experiment.model):
        raise InputError(
            f"{run.folder / 'run.json'} does not describe the {run.experiment.model} that was trained; continue it "
            f"with `{run.command}`, which adds it"
        )
    return keep_description(run, describe(run.experiment, parts, _facts(run.description) if is_described else None))


def build_described(
    experiment: Experiment,
    description: Description,
    seed: int,
    *,
    restored: bool,
    trusted_model: str | None,
    with_weights: WithWeights = as_it_is,
) -> Ensemble:
    """The network that the description is of, made without asking anybody but the installed libraries."""
    return build_model(
        experiment,
        len(description.classes),
        description.channels,
        seed,
        size=(description.height, description.width),
        facts=_facts(description),
        restored=restored,
        trusted_model=trusted_model,
        with_weights=with_weights,
    )


@contextmanager
def fitting_weights(run: Run) -> Iterator[None]:
    """Inside, weights that do not fit say whose they are: another version of a library may make another network."""
    try:
        yield
    except RuntimeError as error:
        detail = str(error).strip().splitlines()[-1].strip()
        raise InputError(
            f"the weights in {run.folder} are not those of {run.experiment.model} as it is made now ({detail}); use "
            "what it was trained with: run.json has the versions under environment"
        ) from error


def _facts(description: Description) -> ModelFacts:
    return ModelFacts(description.normalisation, description.model_config)
