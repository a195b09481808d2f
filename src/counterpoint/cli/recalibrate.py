"""`counterpoint recalibrate`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import RunArgument
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.errors import unknown
from counterpoint.storage.folders import quoted


def recalibrate(
    run: RunArgument,
    twin: Annotated[
        Path | None,
        typer.Option(
            metavar="TWIN",
            help="For a run trained on all images: the evaluated run of the same experiment on the split, whose "
            "held-out images are fitted on.",
            show_default=False,
        ),
    ] = None,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose",
            help="Choose one on held-out images: fitted without one of the extra corruptions and judged on it, the "
            "simplest within the noise is taken. Needs `evaluate --sets validation-extra`.",
        ),
    ] = False,
    care: Annotated[
        str, typer.Option(help="What counts in fitting under shift and in choosing: clean, both or shift.")
    ] = "both",
) -> None:
    """Correct an evaluated run's confidence: fit recalibrations on its validation images, and compute its figures.

    Temperatures are fitted on clean validation images: before or after averaging the members, or one per member.

    After `evaluate --sets validation-extra` also on images under shift, and so that they follow how members differ.

    Never on test images. Needs the saved logits and no network. It writes recalibrated.json; results.json stays.
    """
    from typing import get_args

    from counterpoint.cli.terminal.tables import recalibrated_parts
    from counterpoint.evaluation.recalibration import recalibrate_run
    from counterpoint.records.recalibrated import Care
    from counterpoint.runs.folder import load_run
    from counterpoint.runs.imported import load_any_run

    cares: dict[str, Care] = {known: known for known in get_args(Care)}
    if care not in cares:
        raise unknown("--care", care, cares)
    with TerminalWatcher() as watcher:
        recalibrated = recalibrate_run(
            load_any_run(run), load_run(twin) if twin else None, care=cares[care], choosing=choose, watcher=watcher
        )
    print_parts(recalibrated_parts(recalibrated))
    console.print(f"written: {run / 'recalibrated.json'}; now `counterpoint report {quoted(run)}`", soft_wrap=True)
