"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder with the data sets.", envvar="COUNTERPOINT_DATA", show_default="user's cache"),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N; auto is the GPU if there is one.")]
ExperimentArgument = Annotated[
    str, typer.Argument(help="A name that `counterpoint experiments` lists.", show_default=False)
]
SeedOption = Annotated[int, typer.Option(min=0, help="Decides initial weights, order and augmentation.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, e.g. --set epochs=20.")
]
RunsArgument = Annotated[list[Path], typer.Argument(help="Run folders (or their results.json).", show_default=False)]
RunArgument = Annotated[Path, typer.Argument(help="A run's folder, as `train --out` made it.", show_default=False)]
