"""`counterpoint compare`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import EvaluatedRunArgument
from counterpoint.cli.terminal.progress import console, print_parts
from counterpoint.storage.folders import quoted


def compare(
    run: EvaluatedRunArgument,
    others: Annotated[
        list[Path],
        typer.Argument(
            metavar="OTHER...", help="Folders of other runs that were evaluated on the same images.", show_default=False
        ),
    ],
) -> None:
    """Compare an evaluated run with others on the same images, with 95 % intervals over images.

    The command needs results.json and scores.npz of each run, and no network.

    It writes the differences to compared.json in the first run's folder, and replaces earlier ones.
    """
    from counterpoint.cli.terminal.tables import comparison_table
    from counterpoint.evaluation.comparison import compare_run
    from counterpoint.records.compared import with_folder
    from counterpoint.records.files import results_file

    compared = compare_run(run, others)
    ours = with_folder(compared.called, results_file(run).parent.resolve().name)
    print_parts([comparison_table(ours, comparison) for comparison in compared.against])
    rest = " ".join(map(quoted, others))
    console.print(f"written: {run / 'compared.json'}; next: `counterpoint report {quoted(run)} {rest}`", soft_wrap=True)
