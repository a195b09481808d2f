"""`counterpoint views`: a picture of what each member sees."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.options import (
    DataOption,
    ExperimentArgument,
    ModelOption,
    SeedOption,
    SetOption,
    choose_experiment,
)
from counterpoint.cli.progress import console


def views(
    experiment: ExperimentArgument,
    out: Annotated[Path, typer.Option(help="The PNG to write.")] = Path("views.png"),
    images: Annotated[int, typer.Option(min=1, help="How many images to show.")] = 8,
    model: ModelOption = None,
    seed: SeedOption = 0,
    epoch: Annotated[int, typer.Option(min=0, help="Of which epoch, counted from 0.")] = 0,
    set_: SetOption = None,
    root: DataOption = None,
) -> None:
    """Draw the views that each member would be trained on: rows are images, columns the members.

    The adversarial perturbation, if the experiment has one, is that of the initial weights.
    """
    from counterpoint.data import load
    from counterpoint.pictures.member_views import draw_views
    from counterpoint.pictures.sheet import check_png

    check_png(out)
    chosen = choose_experiment(experiment, model, set_)
    draw_views(chosen, load(chosen.dataset, root), out, images=images, seed=seed, epoch=epoch)
    console.print(f"views: {out}", soft_wrap=True)
