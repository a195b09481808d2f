"""Whether the weights that a run starts from have learned from images that the run validates or tests on."""

from pathlib import Path

from counterpoint.config import Experiment
from counterpoint.data import DataSet, UserImages
from counterpoint.errors import InputError
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.run_images import data_of_run
from counterpoint.training.starting_weights import weights_hash
from counterpoint.watching import SILENT, Watcher


def check_unseen_by(
    start: Run,
    experiment: Experiment,
    data: DataSet | UserImages,
    root: Path | None = None,
    watcher: Watcher = SILENT,
) -> None:
    """Raise if `start`, or a run that it started from, learned from images that the new run would validate or test on.

    Images of another data set are new. A note says so where a run or its images are gone or have changed, so that
    nobody can tell.
    """
    if isinstance(data, UserImages):
        if start.experiment.images is not None:
            _check_contents(start, data, root, watcher)
    else:
        _check_split(start, experiment)
    if start.experiment.starts_from is None:
        return
    if (earlier := _started_from(start)) is None:
        watcher.noted(f"{_not_known(start)}: it started from another run, which is gone or has changed")
    else:
        check_unseen_by(earlier, experiment, data, root, watcher)


def _check_split(start: Run, experiment: Experiment) -> None:
    before = start.experiment
    if before.dataset == experiment.dataset and (before.train_on, experiment.train_on) == ("all", "split"):
        raise InputError(
            f"{start.folder} was trained on all images of {before.dataset}, and so on those that the new run would "
            "validate on; start from a run on the split, or train with --set train_on=all"
        )


def _check_contents(start: Run, data: UserImages, root: Path | None, watcher: Watcher) -> None:
    try:
        theirs = data_of_run(start, root, None, watcher)
    except InputError as problem:
        watcher.noted(f"{_not_known(start)}: {problem}")
        return
    assert isinstance(theirs, UserImages)
    if theirs.keys.get("train") != start.description.images_key:
        watcher.noted(f"{_not_known(start)}: the images at {theirs.source} have changed since")
        return
    trained, held = theirs.contents["train"], {**data.contents["validation"], **data.contents["test"]}
    both = [content for content in held if content in trained]
    if both:
        raise InputError(
            f"{start.folder} was trained on {trained[both[0]]}, and the new run would validate or test on the same "
            f"image, {held[both[0]]} ({len(both):,} such images in all); split the images as in that run (train_on, "
            "images.val, images.test and images.split_seed), or leave --from out"
        )


def _started_from(start: Run) -> Run | None:
    """The run whose weights `start` began with; None where its folder is gone, or holds other weights now."""
    try:
        earlier = load_run(Path(str(start.record.get("from"))))
        return earlier if weights_hash(earlier) == start.experiment.starts_from else None
    except InputError:
        return None


def _not_known(start: Run) -> str:
    return f"it is not known whether {start.folder} has learned from images that are validated or tested on here"
