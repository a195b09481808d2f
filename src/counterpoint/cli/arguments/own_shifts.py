"""Shifted images of the user's own: --shift NAME=PATH."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.errors import InputError

ShiftOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shift",
        metavar="NAME=PATH",
        help="Shifted images of your own under a name of your choice: a folder with a folder per class of the run, or "
        "with such folders in 1, 2, 3, … for severities; a .csv of paths and labels, or an .npz file. May be given "
        "several times.",
        show_default=False,
    ),
]


def named_shifts(arguments: Sequence[str], *, skip_bad: bool) -> dict[str, Path]:
    """The path of each shift."""
    if skip_bad and not arguments:
        raise InputError("--skip-bad is for the images of --shift NAME=PATH; name some, or leave it out")
    shifts: dict[str, Path] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise InputError(f"--shift {argument}: it must be NAME=PATH, such as --shift fog=photos-in-fog")
        if name in shifts:
            raise InputError(
                f"--shift {name} is given twice, with {shifts[name]} and {path}; give each a name of its own"
            )
        shifts[name] = Path(path)
    return shifts
