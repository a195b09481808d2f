"""`counterpoint experiments`: what can be trained."""

from typing import Annotated

import typer

from counterpoint.cli.terminal.progress import console
from counterpoint.cli.terminal.tables import EXPERIMENTS_LEGEND, experiments_table


def experiments(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Show only names that contain all of these words. A whole name shows that experiment alone."
        ),
    ] = None,
) -> None:
    """List the experiments that `train` can run."""
    from counterpoint.experiments import select_experiments

    found = select_experiments(" ".join(words or []).split())
    console.print(experiments_table(found))
    console.print(f"\n{EXPERIMENTS_LEGEND}", highlight=False)
