"""`counterpoint views`: a picture of what each member sees."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import (
    DataOption,
    ModelOption,
    SeedOption,
    SetOption,
    model_assignments,
)
from counterpoint.cli.arguments.own_images import (
    ImagesOption,
    MaybeExperimentArgument,
    SkipBadOption,
    check_settings,
    choose_data,
)
from counterpoint.cli.terminal.progress import TerminalWatcher, console


def views(
    experiment: MaybeExperimentArgument = None,
    images: ImagesOption = None,
    out: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("views.png"),
    count: Annotated[int, typer.Option("--count", min=1, metavar="N", help="Number of images to show.")] = 8,
    model: ModelOption = None,
    seed: SeedOption = 0,
    epoch: Annotated[
        int, typer.Option(min=0, metavar="N", help="Epoch whose views are drawn. The first one is 0.")
    ] = 0,
    set_: SetOption = None,
    skip_bad: SkipBadOption = False,
    root: DataOption = None,
) -> None:
    """Draw what each member sees in training: a row per image, a column per member.

    An adversarial perturbation, if the experiment has one, is drawn for the initial weights.
    """
    assignments = model_assignments(model, set_)
    check_settings(experiment, images, assignments, skip_bad=skip_bad)

    from counterpoint.images.sources import check_not_inside
    from counterpoint.pictures.member_views import draw_views
    from counterpoint.pictures.sheet import check_picture_path

    check_picture_path(out)
    if images is not None:
        check_not_inside(out, images)
    with TerminalWatcher() as watcher:
        chosen, data = choose_data(experiment, images, assignments, root, skip_bad=skip_bad, watcher=watcher)
    draw_views(chosen, data, out, images=count, seed=seed, epoch=epoch)
    console.print(f"views: {out}", soft_wrap=True)
