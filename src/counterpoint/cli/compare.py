"""`counterpoint compare`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.terminal.progress import console, print_parts
from counterpoint.storage.folders import quoted

_CONDENSED = (
    "A row's result has condensed scores. With them the interval of the ECE under corruption is to first order: as "
    "long as from the runs' folders, or somewhat longer."
)


def compare(
    run: Annotated[
        Path,
        typer.Argument(help="Folder of an evaluated run, or a row's result in results/.", show_default=False),
    ],
    others: Annotated[
        list[Path],
        typer.Argument(
            metavar="OTHER...",
            help="Others that were evaluated on the same images: folders, results.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write the differences to.",
            show_default="compared.json in the first run's folder, if all are folders",
        ),
    ] = None,
) -> None:
    """Compare an evaluated run with others on the same images, with 95 % intervals over images.

    The command needs results.json and scores.npz of each run, and no network.

    A row that `counterpoint reproduce` keeps needs no run: give its file, such as
    results/cifar100/batch-ensemble/paper-0.json. It needs the condensed scores beside it, paper-0.npz. The intervals of
    calibration errors under corruption are then somewhat longer.
    """
    from counterpoint.cli.terminal.tables import comparison_tables
    from counterpoint.evaluation.comparison import compare_run, compared_file
    from counterpoint.evaluation.scored import place_name
    from counterpoint.records.compared import with_folder

    compared = compare_run(run, others, out)
    ours = with_folder(compared.called, place_name(run))
    print_parts([table for comparison in compared.against for table in comparison_tables(ours, comparison)])
    if any(comparison.scores == "condensed" and comparison.corrupted for comparison in compared.against):
        console.print(_CONDENSED, highlight=False)
    if out:
        console.print(f"written: {out}", soft_wrap=True)
    elif written := compared_file([run, *others]):
        rest = " ".join(map(quoted, others))
        console.print(f"written: {written}; next: `counterpoint report {quoted(run)} {rest}`", soft_wrap=True)
    else:
        console.print("not written to a file; --out FILE keeps the differences")
