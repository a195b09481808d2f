"""`counterpoint threshold`."""

from typing import Annotated

import typer

from counterpoint.cli.arguments.options import EvaluatedRunArgument
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.errors import InputError
from counterpoint.setting_types import parse_fraction
from counterpoint.storage.folders import quoted


def threshold(
    run: EvaluatedRunArgument,
    error: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Target: the highest error that the kept predictions may have, such as 1% or 0.01. Decide on it "
            "before you look. The promise is for one target, and it is weaker if you try several.",
            show_default=False,
        ),
    ],
) -> None:
    """Find the lowest confidence from which the error of the predictions stays below a target.

    The command promises, with 95 % confidence, that the error of the kept predictions is below the target. The promise
    is for images like the validation images. The command also says what share of such images will be kept.

    The threshold is chosen on validation images that no temperature was fitted on. If there are too few of them to
    prove the target, the command refuses it.

    The table shows how the threshold does on test images. Under shift there is no promise, and the error is often above
    the target.

    The command needs the saved logits, and no network. It writes threshold.json. If the run was recalibrated, the
    threshold is for the corrected confidence.
    """
    from counterpoint.cli.terminal.tables import threshold_parts
    from counterpoint.evaluation.threshold import threshold_run
    from counterpoint.records.files import RESULTS, read_results
    from counterpoint.runs.imported import ImportedRun, load_any_run

    target = parse_share(error)
    with TerminalWatcher() as watcher:
        loaded = load_any_run(run)
        thresholded = threshold_run(loaded, target, watcher=watcher)
    print_parts(threshold_parts(thresholded, read_results(run / RESULTS).is_ensemble))
    command = f"`counterpoint predict {quoted(run)} PICTURES --not-sure-below threshold`"
    if isinstance(loaded, ImportedRun):  # there is no network to predict with
        command = f"`counterpoint report {quoted(run)}`"
    console.print(f"written: {run / 'threshold.json'}; next: {command}", soft_wrap=True)


def parse_share(text: str) -> float:
    """A share between 0 and 1, from 1% or 0.01."""
    try:
        share = parse_fraction(text)
    except ValueError:
        raise InputError(f"--error {text}: it must be a share such as 1% or 0.01") from None
    if not 0 < share < 1:
        meant = f"; for {text} percent write {text}%" if "%" not in text and 1 <= share < 100 else ""
        raise InputError(f"--error {text}: it must be above 0% and below 100%, such as 1% or 0.01{meant}")
    return share
