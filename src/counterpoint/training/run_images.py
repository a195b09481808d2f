"""The images of a run: read as it wants them, named, and told apart from those that its weights learned from before."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from counterpoint.config import Experiment
from counterpoint.data import DATASETS, DataSet, Parts, UserImages, load, load_images, parts_of
from counterpoint.errors import InputError, shown
from counterpoint.images.splits import Split
from counterpoint.own_images import OwnImages
from counterpoint.runs.folder import Run, load_run
from counterpoint.runs.split_file import read_split
from counterpoint.training.starting_weights import weights_hash
from counterpoint.watching import SILENT, Watcher


def read_images(
    experiment: Experiment,
    source: Path,
    root: Path | None = None,
    *,
    skip_bad: bool = False,
    split: Split | None = None,
    with_added: bool = False,
    watcher: Watcher = SILENT,
) -> UserImages:
    """The user's images as the experiment wants them, decoded into `root` unless that was done before.

    `split` is that of an earlier run, and `with_added` whether images are taken that were added since.
    """
    settings = _settings(experiment)
    assert settings is not None
    return load_images(
        source,
        settings.size,
        grey=settings.grey,
        val=settings.val,
        test=settings.test,
        seed=settings.split_seed,
        split=split,
        with_added=with_added,
        cache=root and root / "images",
        skip_bad=skip_bad,
        watcher=watcher,
    )


def _settings(experiment: Experiment) -> OwnImages | None:
    """How the user's own images are read for the experiment; with train_on=all none are split off to validate on."""
    if experiment.images is None or experiment.train_on == "split":
        return experiment.images
    return replace(experiment.images, val=0.0)


def check_images_of(experiment: Experiment, data: DataSet | UserImages) -> None:
    """Raise unless these are the experiment's images, read as it says: `evaluate` will read them again as it says."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"the experiment is {shown(repr(experiment))}; it must be one, such as find_experiment gives")
    if not isinstance(data, DataSet | UserImages):
        raise InputError(f"the data are {shown(repr(data))}; they must be what data.load or load_images gives")
    is_own = isinstance(data, UserImages)
    is_another = not is_own and data.name in DATASETS and data.name != experiment.dataset
    if is_own != (experiment.dataset == "images") or is_another:
        raise InputError(
            f"dataset is {experiment.dataset}, and the data are {'your own images, ' if is_own else ''}{data.name}; "
            "give the experiment the data that it names, or name these"
        )
    wanted = _settings(experiment)
    if isinstance(data, UserImages) and wanted is not None and data.settings != wanted:
        raise InputError(
            f"the images of {data.name} were loaded with {_as_arguments(data.settings)}, and the experiment wants "
            f"{_as_arguments(wanted)}; load them as it wants, or set its images and train_on"
        )


def _as_arguments(settings: OwnImages) -> str:
    """As `load_images` takes them."""
    return (
        f"size={settings.size}, grey={settings.grey}, val={settings.val}, test={settings.test} and "
        f"seed={settings.split_seed}"
    )


def parts_of_run(run: Run, root: Path | None = None, source: Path | None = None, watcher: Watcher = SILENT) -> Parts:
    """What the run is trained, validated and tested on. `source` is where its images are now, if that has changed."""
    data = data_of_run(run, root, source, watcher)
    if isinstance(data, UserImages) and data.added:
        watcher.noted(
            f"{data.added:,} images of {data.name} were added since {run.folder} was begun: they are left out"
        )
    return parts_of(data, run.experiment)


def data_of_run(run: Run, root: Path | None, source: Path | None, watcher: Watcher) -> DataSet | UserImages:
    """The run's data set, or the user's images that it was begun with."""
    if run.experiment.images is None:
        if source is not None:
            raise InputError(
                f"{run.folder} was trained on {run.experiment.dataset}; leave the images (--images, "
                "or source in Python) out"
            )
        return load(run.experiment.dataset, root)
    begun_with = run.record.get("images")
    if not isinstance(begun_with, dict) or not isinstance(begun_with.get("source"), str):
        raise InputError(f"{run.folder / 'run.json'} does not say where its images were; train the run again")
    skip_bad = begun_with.get("skip_bad") is True
    if source is None and not Path(begun_with["source"]).exists():
        raise InputError(
            f"the images of {run.folder} are no longer at {begun_with['source']}; say where they are (--images PATH, "
            "or source=PATH in Python)"
        )
    place = source or Path(begun_with["source"])
    split = read_split(run.folder)
    return read_images(run.experiment, place, root, skip_bad=skip_bad, split=split, watcher=watcher)


def data_name(run: Run) -> str:
    """What the run's images are called. A user's own have the name of their folder or file."""
    begun_with = run.record.get("images")
    if run.experiment.images is None or not isinstance(begun_with, dict):
        return run.experiment.dataset
    source = Path(str(begun_with.get("source", "")))
    return source.stem if source.suffix.lower() in (".csv", ".npz") else source.name


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
    for run in _lineage(start, watcher):
        if not isinstance(data, UserImages):
            _check_split(run, experiment)
        elif run.experiment.images is not None:
            _check_contents(run, data, root, watcher)


def learned_before(run: Run, root: Path | None = None, watcher: Watcher = SILENT) -> dict[Path, Mapping[str, str]]:
    """The user's images that the weights learned from before `run` began with them, for each run that did so.

    They are the images' names, by the hashes of their contents. A note says so where a run or its images are gone.
    """
    earlier = [one for one in _lineage(run, watcher) if one is not run and one.experiment.images is not None]
    found = {one.folder: _trained_on(one, root, watcher) for one in earlier}
    return {folder: contents for folder, contents in found.items() if contents is not None}


def _lineage(run: Run, watcher: Watcher) -> Iterator[Run]:
    """The run, the one that it started from, and so on."""
    yield run
    while run.experiment.starts_from is not None:
        earlier = _started_from(run)
        if earlier is None:
            watcher.noted(f"{_not_known(run)}: it started from another run, which is gone or has changed")
            return
        yield (run := earlier)


def _check_split(start: Run, experiment: Experiment) -> None:
    before = start.experiment
    if before.dataset == experiment.dataset and (before.train_on, experiment.train_on) == ("all", "split"):
        raise InputError(
            f"{start.folder} was trained on all images of {before.dataset}, and so on those that the new run would "
            "validate on; start from a run on the split, or train with train_on=all"
        )


def _check_contents(start: Run, data: UserImages, root: Path | None, watcher: Watcher) -> None:
    trained, held = _trained_on(start, root, watcher) or {}, {**data.contents["validation"], **data.contents["test"]}
    both = [content for content in held if content in trained]
    if both:
        raise InputError(
            f"{start.folder} was trained on {held[both[0]]}, and the new run would validate or test on it "
            f"({len(both):,} such images in all); split the images as in that run (train_on, images.val, images.test "
            "and images.split_seed), or do not start from that run (--from)"
        )


def _trained_on(start: Run, root: Path | None, watcher: Watcher) -> Mapping[str, str] | None:
    """The names of the images that the run was trained on, by the hashes of their contents; None if nobody knows them.

    Where the images are gone or have changed, their contents are still known from the split that the run keeps.
    """
    split = read_split(start.folder)
    try:
        theirs = data_of_run(start, root, None, watcher)
        assert isinstance(theirs, UserImages)
        if theirs.keys.get("train") == start.description.images_key:
            return theirs.contents["train"]
        problem = f"the images at {theirs.source} have changed since"
    except InputError as error:
        problem = str(error)
    if split is not None:
        return dict.fromkeys(split.of("train"), "another")
    watcher.noted(f"{_not_known(start)}: {problem}")
    return None


def _started_from(start: Run) -> Run | None:
    """The run whose weights `start` began with; None where its folder is gone, or holds other weights now."""
    try:
        earlier = load_run(Path(str(start.record.get("from"))))
        return earlier if weights_hash(earlier) == start.experiment.starts_from else None
    except InputError:
        return None


def _not_known(start: Run) -> str:
    return f"it is not known whether {start.folder} has learned from images that are validated or tested on here"
