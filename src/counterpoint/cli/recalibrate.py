"""`counterpoint recalibrate`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.options import RunArgument
from counterpoint.cli.progress import console, print_parts


def recalibrate(
    run: RunArgument,
    twin: Annotated[
        Path | None,
        typer.Option(
            metavar="TWIN",
            help="For a run trained on all images: the evaluated run of the same experiment on the split, whose "
            "held-out images give the temperatures.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fit temperatures on an evaluated run's validation images, and compute its figures with them.

    Three kinds are fitted: one temperature before or after averaging the members, and one per member.

    Needs the saved logits and no network. Temperatures and figures go to recalibrated.json; results.json stays.
    """
    from counterpoint.cli.tables import recalibrated_table
    from counterpoint.evaluation.temperatures import recalibrate_run
    from counterpoint.runs.folder import load_run

    recalibrated = recalibrate_run(load_run(run), load_run(twin) if twin else None)
    print_parts([recalibrated_table(recalibrated)])
    console.print(f"written: {run / 'recalibrated.json'}; now `counterpoint report {run}`", soft_wrap=True)
