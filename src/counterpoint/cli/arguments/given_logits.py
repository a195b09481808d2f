"""A run to evaluate, or in its place --logits FILE --out DIR."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.errors import InputError

MaybeRunArgument = Annotated[
    Path | None,
    typer.Argument(help="A run's folder, as `train --out` made it, or `evaluate --logits --out`.", show_default=False),
]
LogitsOption = Annotated[
    Path | None,
    typer.Option(
        "--logits",
        metavar="FILE",
        help="In place of a run: predictions of a model that was trained elsewhere, as an .npz file with the arrays "
        "logits or probs, and labels. It may also have those of validation images, and under shift.",
        show_default=False,
    ),
]
GivenOutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="The folder that --logits makes.", show_default=False)
]


def folder_to_evaluate(run: Path | None, logits: Path | None, out: Path | None, others: Mapping[str, object]) -> Path:
    """Where the results go. `others` are the options that need a network, with their values where they were given."""
    if logits is None:
        if run is None:
            raise InputError("name a run's folder, or a file of predictions with --logits FILE --out DIR")
        if out is not None:
            raise InputError(f"--out is for --logits FILE; the results of {run} go into its own folder")
        return run
    if run is not None:
        raise InputError(f"give a run ({run}) or --logits {logits}, and not both; the folder of --logits is --out DIR")
    if out is None:
        raise InputError(f"--logits {logits} needs --out DIR, the folder to be made")
    if surplus := [option for option, value in others.items() if value]:
        raise InputError(f"--logits takes predictions as they are; leave {', '.join(surplus)} out")
    return out
