"""`counterpoint corrupt`: corrupted test sets, and an atlas of the corruptions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

import typer

from counterpoint.cli.arguments.options import DataOption
from counterpoint.cli.terminal.progress import TerminalWatcher, console
from counterpoint.cli.terminal.signals import ended_by_ctrl_c
from counterpoint.errors import InputError, listed, one_of


def corrupt(
    dataset: Annotated[
        str | None,
        typer.Argument(
            help="Data set to corrupt: cifar10, cifar100 or digits. An atlas of a picture file needs none.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the corrupted set.", show_default="regenerated/… in the data folder")
    ] = None,
    atlas: Annotated[
        Path | None,
        typer.Option(help="Draw every corruption of one image into this PNG or JPEG file, instead of making a set."),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="Image for the atlas: its number in the test set, or the path of a picture. Without it, number 0.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random corruptions.")] = 0,
    constants: Annotated[
        str | None,
        typer.Option(
            help="Constants of the severities: cifar-c or imagenet-c.",
            show_default="cifar-c up to 64 pixels, imagenet-c above",
        ),
    ] = None,
    extra: Annotated[
        bool, typer.Option("--extra", help="Also make the four extra corruptions, which are for validation.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of processes.", show_default="one per core")
    ] = None,
    root: DataOption = None,
) -> None:
    """Make a corrupted test set: 15 corruptions × 5 severities, in the layout of CIFAR-C.

    Finished corruptions are kept, so an interrupted command continues where it stopped.

    --atlas draws one image under every corruption. A photograph is reduced to 224 pixels for it, the size that
    ImageNet-C's corruptions were made for.
    """
    from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, Constants
    from counterpoint.data import data_root, load
    from counterpoint.evaluation.suites import CORRUPTED, make_corrupted_set
    from counterpoint.pictures.atlas import draw_image_atlas
    from counterpoint.pictures.sheet import check_picture_path

    _check_options(atlas, image, {"--out": out, "--extra": extra, "--workers": workers})
    severities: Constants | None = one_of("--constants", constants, get_args(Constants)) if constants else None
    folder = root or data_root()
    if atlas:
        check_picture_path(atlas)
        with TerminalWatcher() as watcher:
            draw_image_atlas(
                image or "0", dataset, atlas, seed=seed, constants=severities, root=folder, watcher=watcher
            )
        console.print(f"atlas: {atlas}", soft_wrap=True)
        return
    if dataset is None:
        raise InputError("name a data set to corrupt (cifar10, cifar100 or digits), or draw an atlas with --atlas FILE")
    data = load(dataset, folder)
    names = CORRUPTIONS + EXTRA_CORRUPTIONS if extra else CORRUPTIONS
    suite = replace(CORRUPTED, corruptions=names)
    stopped = "stopped; finished corruptions are kept, and the same command continues from there"
    with ended_by_ctrl_c(stopped), TerminalWatcher() as watcher:
        made = make_corrupted_set(
            data, folder, suite, out=out, seed=seed, constants=severities, workers=workers, watcher=watcher
        )
    console.print(
        f"corrupted set: {made.folder} ({made.source.constants}, frost from {made.source.frost})", soft_wrap=True
    )


def _check_options(atlas: Path | None, image: str | None, of_sets: Mapping[str, object]) -> None:
    """Raise if an option is given that has no effect."""
    given = [name for name, value in of_sets.items() if value]
    if atlas and given:
        raise InputError(f"{listed(given)} cannot be used with --atlas, which makes no corrupted set; leave one out")
    if image is not None and not atlas:
        raise InputError("--image works only for an atlas; add --atlas FILE, or leave it out")
