"""Options and arguments that several commands share."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from counterpoint.config import Experiment

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder that holds the data sets.", envvar="COUNTERPOINT_DATA", show_default="user's cache"
    ),
]
DeviceOption = Annotated[
    str, typer.Option(help="Device to use: auto, cpu, cuda or cuda:N. auto takes the GPU if there is one.")
]
SeedOption = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Seed of the initial weights, the order of the images and the augmentation."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a setting, such as --set epochs=20. May be given several times. `counterpoint settings` lists all "
        "settings.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Network to train: resnext29, resnet, vit, wide-resnet-DEPTH-WIDENING (such as wide-resnet-28-10), "
        "timm/NAME, torchvision/NAME, hf/NAME-OR-FOLDER, or MODULE:FUNCTION for your own code. Set its options with "
        "--set model_options.KEY=VALUE.",
        show_default="the experiment's",
    ),
]
RunsModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Network of the run. You must name it if it is your own code (MODULE:FUNCTION), because a run's files "
        "alone never make counterpoint import code.",
        show_default="the run's",
    ),
]
RunsArgument = Annotated[
    list[Path], typer.Argument(help="Folders of evaluated runs, or their results.json files.", show_default=False)
]
RunArgument = Annotated[Path, typer.Argument(help="Folder of the run, which `train --out` made.", show_default=False)]
EvaluatedRunArgument = Annotated[
    Path,
    typer.Argument(
        help="Folder of an evaluated run, which `train --out` or `evaluate --logits --out` made.", show_default=False
    ),
]


def model_assignments(model: str | None, assignments: Sequence[str] | None) -> list[str]:
    """All settings of the command line. --model NAME is short for --set model=NAME."""
    return [*([f"model={model}"] if model else []), *(assignments or [])]


def choose_experiment(name: str, assignments: Sequence[str]) -> "Experiment":
    """The experiment of that name with what the command line changes."""
    from counterpoint.config import override
    from counterpoint.experiments import find_experiment

    chosen = override(find_experiment(name), assignments)
    find_modules_here(chosen.model)
    return chosen


def find_modules_here(model: str | None) -> None:
    """Let a MODULE:FUNCTION that the user typed be found in the current folder, as `python -m` would."""
    from counterpoint.model_names import is_function

    if model and is_function(model) and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
