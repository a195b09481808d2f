"""`counterpoint compare`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.terminal.progress import console, print_parts
from counterpoint.storage.folders import quoted

_NOT_WRITTEN = "not written to a file; --out FILE keeps the differences"
_CONDENSED = (
    "A row's result has condensed scores. With them the interval of the ECE under corruption is to first order: as "
    "long as from the runs' folders, or somewhat longer."
)


_OVER_SEEDS = (
    "These intervals are over seeds, on these images: they say what other trainings would show. `counterpoint compare` "
    "with two runs has intervals over images."
)


def compare(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of an evaluated run, or a row's result in results/. To compare over seeds, the folder that "
            "holds the runs of an experiment, or their name without the seed.",
            show_default=False,
        ),
    ],
    others: Annotated[
        list[Path],
        typer.Argument(help="Others of the same kind, evaluated on the same images.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write the differences to.",
            show_default="compared.json in the first run's folder, if all are folders of runs",
        ),
    ] = None,
) -> None:
    """Compare an evaluated run with others on the same images, with 95 % intervals over images. Or compare experiments
    that were trained with several seeds, with 95 % intervals over seeds.

    Two runs: name their folders. The command needs results.json and scores.npz of each, and no network. In place of a
    folder you can name a row's result, such as results/cifar100/batch-ensemble/paper-0.json, if its condensed scores,
    paper-0.npz, are beside it. The intervals of calibration errors under corruption are then somewhat longer.

    Several seeds: name all runs of an experiment at once. Give the folder that holds them, such as
    results/cifar100/single, or their name without the seed, such as results/cifar100/single/paper. The runs of a sweep
    have a name such as s/cifar10-single__epochs=50. The command needs only their results.json. If the experiments have
    the same seeds, runs of equal seeds are compared in pairs.
    """
    from counterpoint.records.trainings import find_trainings

    if any(find_trainings(place) for place in (run, *others)):
        _compare_experiments(run, others, out)
    else:
        _compare_runs(run, others, out)


def _compare_runs(run: Path, others: list[Path], out: Path | None) -> None:
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
        console.print(_NOT_WRITTEN)


def _compare_experiments(experiment: Path, others: list[Path], out: Path | None) -> None:
    from counterpoint.cli.terminal.tables import over_seeds_parts
    from counterpoint.evaluation.over_seeds import compare_experiments

    compared = compare_experiments(experiment, others, out)
    for comparison in compared.against:
        print_parts([*over_seeds_parts(compared.ours, comparison), ""])
    console.print(_OVER_SEEDS, highlight=False)
    console.print(f"written: {out}" if out else _NOT_WRITTEN, soft_wrap=True)
