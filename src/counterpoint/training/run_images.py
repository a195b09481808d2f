"""The images of a run: those that the user names, or those that its run.json names."""

from pathlib import Path

from counterpoint.config import Experiment
from counterpoint.data import DataSet, Parts, UserImages, load, load_images, parts_of
from counterpoint.errors import InputError
from counterpoint.runs.folder import Run
from counterpoint.watching import SILENT, Watcher


def read_images(
    experiment: Experiment,
    source: Path,
    root: Path | None = None,
    *,
    skip_bad: bool = False,
    watcher: Watcher = SILENT,
) -> UserImages:
    """The user's images as the experiment wants them, decoded into `root` unless that was done before."""
    settings = experiment.images
    assert settings is not None
    return load_images(
        source,
        settings.size,
        grey=settings.grey,
        val=settings.val if experiment.train_on == "split" else 0,
        test=settings.test,
        seed=settings.split_seed,
        cache=root and root / "images",
        skip_bad=skip_bad,
        watcher=watcher,
    )


def parts_of_run(run: Run, root: Path | None = None, source: Path | None = None, watcher: Watcher = SILENT) -> Parts:
    """What the run is trained, validated and tested on. `source` is where its images are now, if that has changed."""
    return parts_of(data_of_run(run, root, source, watcher), run.experiment)


def data_of_run(run: Run, root: Path | None, source: Path | None, watcher: Watcher) -> DataSet | UserImages:
    """The run's data set, or the user's images that it was begun with."""
    if run.experiment.images is None:
        if source is not None:
            raise InputError(f"{run.folder} was trained on {run.experiment.dataset}; leave --images out")
        return load(run.experiment.dataset, root)
    begun_with = run.record.get("images")
    if not isinstance(begun_with, dict) or not isinstance(begun_with.get("source"), str):
        raise InputError(f"{run.folder / 'run.json'} does not say where its images were; train the run again")
    skip_bad = begun_with.get("skip_bad") is True
    if source is None and not Path(begun_with["source"]).exists():
        raise InputError(
            f"the images of {run.folder} are no longer at {begun_with['source']}; say where they are with --images PATH"
        )
    return read_images(run.experiment, source or Path(begun_with["source"]), root, skip_bad=skip_bad, watcher=watcher)


def data_name(run: Run) -> str:
    """What the run's images are called. A user's own have the name of their folder or file."""
    begun_with = run.record.get("images")
    if run.experiment.images is None or not isinstance(begun_with, dict):
        return run.experiment.dataset
    source = Path(str(begun_with.get("source", "")))
    return source.stem if source.suffix.lower() in (".csv", ".npz") else source.name
