"""`counterpoint threshold`."""

from typing import Annotated

import typer

from counterpoint.cli.arguments.options import RunArgument
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.errors import InputError


def threshold(
    run: RunArgument,
    error: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="The error that what is kept must stay below: 1% or 0.01. Decide on it before you look: the promise "
            "is for one target, and to try several until one is reached makes it worth less.",
            show_default=False,
        ),
    ],
) -> None:
    """Find the lowest confidence from which on an evaluated run's predictions can be kept, at an error below a target.

    The promise holds with 95 % confidence for images like the validation images, and comes with the share to be kept.

    It is chosen on validation images that no temperature saw; a target that these cannot show is refused.

    How it fares on test images is shown beside it. Under shift, where nothing promises it, it often breaks.

    Needs the saved logits and no network. It writes threshold.json; after `recalibrate` it is for such confidences.
    """
    from counterpoint.cli.terminal.tables import threshold_parts
    from counterpoint.evaluation.threshold import threshold_run
    from counterpoint.records.files import RESULTS, read_results
    from counterpoint.runs.imported import load_any_run

    target = parse_share(error)
    with TerminalWatcher() as watcher:
        thresholded = threshold_run(load_any_run(run), target, watcher=watcher)
    print_parts(threshold_parts(thresholded, read_results(run / RESULTS).is_ensemble))
    console.print(f"written: {run / 'threshold.json'}", soft_wrap=True)


def parse_share(text: str) -> float:
    """A share between 0 and 1, from 1% or 0.01."""
    number, is_percent = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        share = float(number) / (100 if is_percent else 1)
    except ValueError:
        raise InputError(f"--error {text}: it must be a share such as 1% or 0.01") from None
    if not 0 < share < 1:
        meant = f"; for {number} percent write {number}%" if not is_percent and 1 <= share < 100 else ""
        raise InputError(f"--error {text}: it must be above 0% and below 100%, such as 1% or 0.01{meant}")
    return share
