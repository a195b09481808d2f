"""Images of the user's own beside those of a run: --shift NAME=PATH and --outside NAME=PATH."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.errors import InputError

_SUCH_AS = {"--shift": "fog=photos-in-fog", "--outside": "animals=photos-of-animals"}
ShiftOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shift",
        metavar="NAME=PATH",
        help="Shifted images of your own, under a name that you choose. PATH is a folder with one folder per class of "
        "the run, a folder with 1, 2, 3, … (the severities of the shift) that each have one folder per class, a .csv "
        "file of paths and labels, or an .npz file. May be given several times.",
        show_default=False,
    ),
]
OutsideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--outside",
        metavar="NAME=PATH",
        help="Outside images, which belong to none of the run's classes, under a name that you choose. PATH is a "
        "folder of pictures, at any depth, or an .npz file with the array images. May be given several times.",
        show_default=False,
    ),
]


def named_paths(option: str, arguments: Sequence[str] | None) -> dict[str, Path]:
    """The path of each name that was given with the option."""
    paths: dict[str, Path] = {}
    for argument in arguments or ():
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise InputError(f"{option} {argument}: it must be NAME=PATH, such as {option} {_SUCH_AS[option]}")
        if name in paths:
            raise InputError(
                f"{option} {name} is given twice, with {paths[name]} and {path}; give each a name of its own"
            )
        paths[name] = Path(path)
    return paths
