"""`counterpoint evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.options import DataOption, DeviceOption, RunArgument
from counterpoint.cli.progress import TerminalWatcher, console
from counterpoint.cli.tables import evaluation_parts


def evaluate(
    run: RunArgument,
    cell_images: Annotated[
        int | None, typer.Option(min=1, help="Use the first N images of each corrupted cell.", show_default="all")
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute the figures again from the saved logits; needs no network.")
    ] = False,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Also with temperatures that are fitted on the validation images.")
    ] = False,
    temperatures_from: Annotated[
        Path | None,
        typer.Option(
            metavar="TWIN",
            help="Recalibrate a run trained on all images with the temperatures of TWIN: the evaluated run of the same "
            "experiment on the split.",
        ),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="OTHER",
            help="Add the differences from another evaluated run, with intervals; may be repeated. An evaluated RUN is "
            "not evaluated again, and earlier comparisons are replaced.",
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            help="Of the network: headline (fp32, convolutions in TF32 where the GPU has it), bf16 (fastest on a GPU, "
            "slow on a CPU) or strict (fp32 throughout)."
        ),
    ] = "headline",
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Compute a finished run's error, scores and calibration, clean and under 15 corruptions, into results.json.

    The corrupted test set is the official one if it is in the data folder; otherwise it is made there first.

    An interrupted evaluation goes on where it stopped.

    Earlier temperatures and comparisons are kept while the logits are the same; what is dropped is named.
    """
    from counterpoint.devices import check_precision
    from counterpoint.evaluation.pipeline import evaluate_run
    from counterpoint.runs.folder import load_run

    try:
        with TerminalWatcher() as watcher:
            results = evaluate_run(
                load_run(run),
                root,
                device=device,
                precision=check_precision(precision),
                cell_images=cell_images,
                recompute=recompute,
                recalibrate=recalibrate,
                twin=load_run(temperatures_from) if temperatures_from else None,
                against=against or (),
                watcher=watcher,
            )
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from there")
        raise typer.Exit(130) from None
    for part in evaluation_parts(results):
        console.print(part, highlight=False)
    console.print(f"written: {run / 'results.json'}; now `counterpoint report {run}`", soft_wrap=True)
