"""`counterpoint recalibrate`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import EvaluatedRunArgument
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.errors import one_of
from counterpoint.storage.folders import quoted


def recalibrate(
    run: EvaluatedRunArgument,
    twin: Annotated[
        Path | None,
        typer.Option(
            metavar="TWIN",
            help="Folder of the twin, for a run that was trained on all images. The twin is the same experiment, "
            "trained on the split and evaluated. Its held-out images give the recalibration.",
            show_default=False,
        ),
    ] = None,
    choose: Annotated[
        bool,
        typer.Option(
            "--choose",
            help="Choose one recalibration. Each one is fitted without one extra corruption and judged on that "
            "corruption. The simplest that is as good as the best, within noise, is chosen. Needs `evaluate --sets "
            "validation-extra`.",
        ),
    ] = False,
    care: Annotated[
        str,
        typer.Option(help="Images for which a recalibration under shift should be right: clean, shift or both."),
    ] = "both",
) -> None:
    """Correct the confidence of an evaluated run with temperatures, and show what that changes.

    The temperatures are fitted on validation images, and never on test images. There are several kinds: one temperature
    before the members are averaged, one after, or one per member.

    After `evaluate --sets validation-extra` there are more kinds. They are fitted on corrupted validation images too,
    and some of them follow how much the members differ.

    The command needs the saved logits, and no network. It writes recalibrated.json and leaves results.json as it is.
    """
    from typing import get_args

    from counterpoint.cli.terminal.tables import recalibrated_parts
    from counterpoint.evaluation.recalibration import recalibrate_run
    from counterpoint.records.files import RESULTS, read_results
    from counterpoint.records.recalibrated import Care
    from counterpoint.report.recalibrations.words import used_in_words
    from counterpoint.runs.folder import load_run
    from counterpoint.runs.imported import ImportedRun, load_any_run

    chosen_care: Care = one_of("--care", care, get_args(Care))
    with TerminalWatcher() as watcher:
        loaded = load_any_run(run)
        recalibrated = recalibrate_run(
            loaded, load_run(twin) if twin else None, care=chosen_care, choosing=choose, watcher=watcher
        )
    print_parts(recalibrated_parts(recalibrated, read_results(run / RESULTS)))
    if not isinstance(loaded, ImportedRun):
        console.print(used_in_words(recalibrated), highlight=False)
    console.print(
        f"written: {run / 'recalibrated.json'}; next: `counterpoint report {quoted(run)}`, or `counterpoint threshold "
        f"{quoted(run)} --error 1%` to find which predictions to keep",
        soft_wrap=True,
    )
