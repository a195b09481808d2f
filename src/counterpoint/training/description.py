"""A run describes itself: what its network must know of the images it was trained on, and how long it is trained."""

from counterpoint.data.sets import DataSet
from counterpoint.data.split import count_training_images
from counterpoint.normalisation import NORMALISATION
from counterpoint.runs.folder import Description, Run, keep_description
from counterpoint.training.step import total_steps


def describe_run(run: Run, data: DataSet) -> Run:
    """The run with its description in run.json, which is added where an earlier version began the run.

    Data that do not fit the description are refused.
    """
    channels, height, width = data.train.images_NCHW.shape[1:]
    images = count_training_images(data, run.experiment)
    description = Description(
        classes=data.train.classes,
        channels=channels,
        height=height,
        width=width,
        training_images=images,
        total_steps=total_steps(run.experiment, images),
        normalisation=NORMALISATION,
    )
    return keep_description(run, description)
