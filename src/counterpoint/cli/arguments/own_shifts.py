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
        help="Shifted images of your own, under a name that you choose. PATH is a folder with one folder per class of "
        "the run, a folder with 1, 2, 3, … (the severities of the shift) that each have one folder per class, a .csv "
        "file of paths and labels, or an .npz file. May be given several times.",
        show_default=False,
    ),
]


def named_shifts(arguments: Sequence[str], *, skip_bad: bool) -> dict[str, Path]:
    """The path of each shift."""
    if skip_bad and not arguments:
        raise InputError("--skip-bad works only with --shift NAME=PATH; add a shift, or leave --skip-bad out")
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
