"""The arguments of `evaluate`: a run, or --logits FILE --out DIR instead."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.errors import InputError

MaybeRunArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Folder of the run, which `train --out` or `evaluate --logits --out` made.", show_default=False
    ),
]
LogitsOption = Annotated[
    Path | None,
    typer.Option(
        "--logits",
        metavar="FILE",
        help="Evaluate a file of predictions instead of a run. The model may come from anywhere. The .npz file has the "
        "array logits or probs, and the array labels. It may also have predictions for validation images and for "
        "shifted images.",
        show_default=False,
    ),
]
GivenOutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Folder to make for --logits.", show_default=False)
]


def folder_to_evaluate(run: Path | None, logits: Path | None, out: Path | None, others: Mapping[str, object]) -> Path:
    """Where the results go. `others` are the options that need a network, with their values where they were given."""
    if logits is None:
        if run is None:
            raise InputError("name the folder of a run, or give a file of predictions with --logits FILE --out DIR")
        if out is not None:
            raise InputError(
                f"--out works only with --logits FILE; leave it out: the results of {run} go into its own folder"
            )
        return run
    if run is not None:
        raise InputError(
            f"give either a run ({run}) or --logits {logits}, not both; --out DIR names the folder for --logits"
        )
    if out is None:
        raise InputError(f"--logits {logits} needs --out DIR, the folder for its results")
    if surplus := [option for option, value in others.items() if value]:
        raise InputError(f"--logits evaluates predictions as they are; leave {', '.join(surplus)} out")
    return out
