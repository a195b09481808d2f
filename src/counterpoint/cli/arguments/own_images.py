"""Turn --images and the settings into an experiment and its images."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.arguments.options import choose_experiment, find_modules_here
from counterpoint.errors import InputError, listed, some
from counterpoint.storage.folders import quoted

if TYPE_CHECKING:
    from counterpoint.config import Experiment
    from counterpoint.data import DataSet, UserImages
    from counterpoint.images.splits import Split
    from counterpoint.watching import Watcher

_UNEQUAL = 3
"""The largest class has this many times the images of the smallest where a note is worth its line."""
MaybeExperimentArgument = Annotated[
    str | None,
    typer.Argument(
        help="Name of an experiment, which `counterpoint experiments` lists. With --images you may leave it out, or "
        "name one whose settings are used for your images.",
        show_default=False,
    ),
]
ImagesOption = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="PATH",
        help="Your own images: a folder with one folder per class, a folder with train, val and test that each have "
        "one folder per class, a .csv file of paths and labels, or an .npz file. --set images.size=N sets the size "
        "that they are resized to.",
        show_default=False,
    ),
]
SkipBadOption = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="Leave out files that cannot be read as images. Without it the command lists them and ends."
    ),
]
PretrainedOption = Annotated[
    bool,
    typer.Option("--pretrained", help="Start from the model's published weights. Short for --set pretrained=true."),
]


def choose_data(
    name: str | None,
    images: Path | None,
    assignments: Sequence[str],
    root: Path | None,
    *,
    skip_bad: bool,
    fine_tuned: bool = False,
    size: int | None = None,
    split: "Split | None" = None,
    with_added: bool = False,
    watcher: "Watcher",
) -> tuple["Experiment", "DataSet | UserImages"]:
    """The experiment with what the command line changes, and its images. `check_settings` found nothing wrong.

    `size` is theirs if it is not set. `split` is that of an earlier run, and `with_added` whether images are taken that
    were added since.
    """
    from counterpoint.data import load
    from counterpoint.experiments.own import with_warmup
    from counterpoint.training.run_images import read_images

    if images is None:
        assert name is not None
        chosen = choose_experiment(name, assignments)
        return chosen, load(chosen.dataset, root)
    chosen = _on_own_images(name, images, assignments, fine_tuned=fine_tuned, size=size)
    data = read_images(chosen, images, root, skip_bad=skip_bad, split=split, with_added=with_added, watcher=watcher)
    watcher.noted(describe_images(data, split if with_added else None))
    return (chosen if name else with_warmup(chosen, len(data.train), assignments)), data


def check_settings(name: str | None, images: Path | None, assignments: Sequence[str], *, skip_bad: bool) -> None:
    """Raise if an experiment or a setting is wrong. This needs no torch, whose import takes seconds."""
    check_names([name] if name else [], images, skip_bad=skip_bad)
    if images is None:
        assert name is not None
        choose_experiment(name, assignments)
    else:
        _settings_on(images, name, assignments)


def check_names(names: Sequence[str], images: Path | None, *, skip_bad: bool) -> None:
    """Raise unless there is an experiment or --images, or if a path of images is given as an experiment."""
    from counterpoint.experiments import EXPERIMENTS

    if images is not None:
        return
    if not names:
        raise InputError(
            "name an experiment (`counterpoint experiments` lists them), or give your own images with --images PATH"
        )
    if skip_bad:
        raise InputError("--skip-bad works only with your own images; add --images PATH, or leave --skip-bad out")
    for name in names:
        if name not in EXPERIMENTS and Path(name).exists():
            raise InputError(
                f"{name!r} is a path, and no experiment; for your own images write --images {quoted(name)}"
            )


def experiments_on(
    images: Path, root: Path | None, *, skip_bad: bool, watcher: "Watcher"
) -> "Callable[[str | None, Sequence[str]], Experiment]":
    """A function that gives what `train --images` would train, from the name of a recipe, or None, and the settings.

    It reads the images, and so decodes them if that was not done before: once for each way in which settings want them.
    """
    from counterpoint.experiments.own import with_warmup
    from counterpoint.training.run_images import read_images

    read: dict[object, UserImages] = {}

    def find(name: str | None, assignments: Sequence[str]) -> "Experiment":
        chosen = _on_own_images(name, images, assignments)
        way = (chosen.images, chosen.train_on)
        if way not in read:
            read[way] = read_images(chosen, images, root, skip_bad=skip_bad, watcher=watcher)
            watcher.noted(describe_images(read[way]))
        return chosen if name else with_warmup(chosen, len(read[way].train), assignments)

    return find


def images_title(images: Path) -> str:
    """What a user's images are called: as their folder, or their file without its ending."""
    return images.resolve().stem if images.is_file() else images.resolve().name


def _on_own_images(
    name: str | None, images: Path, assignments: Sequence[str], *, fine_tuned: bool = False, size: int | None = None
) -> "Experiment":
    """The experiment on the images, apart from what depends on how many there are. There is such a network."""
    chosen = _settings_on(images, name, assignments, fine_tuned=fine_tuned, size=size)
    find_modules_here(chosen.model)
    _check_model(chosen)
    return chosen


def _settings_on(
    images: Path, name: str | None, assignments: Sequence[str], *, fine_tuned: bool = False, size: int | None = None
) -> "Experiment":
    from counterpoint.experiments import find_experiment
    from counterpoint.experiments.own import own_experiment

    recipe = None if name is None else find_experiment(name)
    return own_experiment(images_title(images), recipe, assignments, fine_tuned=fine_tuned, size=size)


def _check_model(experiment: "Experiment") -> None:
    """Raise if there is no such network, before thousands of images are decoded for it."""
    from counterpoint.models import check_model, wanted_of

    settings = experiment.images
    assert settings is not None
    channels, size = 1 if settings.grey else 3, (settings.size, settings.size)
    classes = 2  # how many there are is not known yet
    check_model(wanted_of(experiment, classes, channels, size, pretrained=False))


def slow_on_cpu(experiment: "Experiment", device: str) -> str | None:
    """What large images mean without a GPU, before somebody waits for hours; None where there is nothing to say."""
    from counterpoint.experiments.own import SMALL

    size = experiment.images.size if experiment.images else 0
    if device != "cpu" or size <= SMALL:
        return None
    return (
        f"training on images of {size} × {size} pixels takes long on a CPU; for a first try, --set images.size={SMALL} "
        f"has 1/{(size / SMALL) ** 2:.0f} of the pixels per image"
    )


def describe_images(data: "UserImages", split: "Split | None" = None) -> str:
    """The images that were found, in words. `split` is that of the run before this one."""
    from counterpoint.images.listing import SHOWN, printable

    counts = [f"{len(data.train):,} to train on"]
    counts += [f"{len(data.val):,} to validate on"] if data.val is not None else []
    counts += [f"{len(data.test):,} to test on"] if data.test is not None else []
    classes = [printable(name) for name in data.train.classes]
    named = ", ".join(classes[:8]) + (", …" if len(classes) > 8 else "")
    lines = [f"{data.name}: images {listed(counts)}; {len(classes)} classes: {named}"]
    if data.split_off:
        parts = [{"val": "to validate on", "test": "to test on"}[part] for part in data.split_off]
        lines.append(f"the images {listed(parts)} were drawn at random")
    if split is not None and (stayed := len(set(split.contents) & set(data.split.contents))):
        several = "images stay in the parts" if stayed > 1 else "image stays in the part"
        lines.append(f"{stayed:,} different {several} that the earlier run has them in")
    if data.added:
        lines.append(f"{data.added:,} images were added since the run was begun: they are left out")
    if data.skipped:
        lines.append(f"left out: {some([printable(bad.name) for bad in data.skipped], most=SHOWN)}")
    lines += [*data.notes, *_on_class_sizes(data), *_on_missing_parts(data)]
    return "\n".join(lines)


def _on_class_sizes(data: "UserImages") -> Iterator[str]:
    """Where classes differ much in size, a low error may come from guessing the largest one."""
    from counterpoint.images.listing import printable

    sizes_K = data.train.labels_N.bincount(minlength=len(data.train.classes))
    least, most = int(sizes_K.argmin()), int(sizes_K.argmax())
    if sizes_K[most] < _UNEQUAL * sizes_K[least]:
        return
    rare, common = (printable(data.train.classes[label]) for label in (least, most))
    yield (
        f"the classes differ in size: of the images to train on, {sizes_K[least]:,} are of {rare} and "
        f"{sizes_K[most]:,} of {common}"
    )
    if data.test is not None:
        wrong = float((data.test.labels_N != most).float().mean())
        yield (
            f"always guessing {common} is wrong on {100 * wrong:.1f} % of the images to test on: compare the error "
            "with that"
        )


def _on_missing_parts(data: "UserImages") -> Iterator[str]:
    if data.val is None:
        yield "there are no images to validate on, so `recalibrate` and `threshold` will refuse the run"
    if data.test is None:
        yield "there are no images to test on, so `evaluate` will refuse the run until you add some"
