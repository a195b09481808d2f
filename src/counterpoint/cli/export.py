"""`counterpoint export`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import DataOption, RunArgument, RunsModelOption, find_modules_here
from counterpoint.cli.terminal.progress import console, say


def export(
    run: RunArgument,
    out: Annotated[
        Path,
        typer.Option(help="File to write: .onnx, or .pt2 for torch.export. The model card has the same name and .md."),
    ] = Path("model.onnx"),
    not_sure_below: Annotated[
        str | None,
        typer.Option(
            metavar="CONFIDENCE",
            help=(
                "Confidence below which a prediction counts as not sure: 0.9, 90%, or the word "
                "threshold. That word takes what `counterpoint threshold` found, and the recalibration "
                "that its promise is for. The file and its model card record the confidence."
            ),
            show_default=False,
        ),
    ] = None,
    model: RunsModelOption = None,
    root: DataOption = None,
) -> None:
    """Write a finished run as one file that works without counterpoint, with a model card beside it.

    The input is pixels (uint8, N × height × width × channels), in batches of any size. The outputs are the
    probabilities of the ensemble and of each member.

    The file contains the normalisation, all members and the recalibration that `predict` applies.

    The command compares the file with PyTorch first. It refuses to write a file whose probabilities differ by more than
    0.0001.

    An .onnx file needs: pip install 'counterpoint\\[export]'.
    """
    from counterpoint.export import export_run
    from counterpoint.report.recalibrations.words import named
    from counterpoint.runs.folder import load_run

    find_modules_here(model)
    loaded = load_run(run)
    with console.status("tracing the network, writing the file and comparing it with PyTorch"):
        written = export_run(loaded, out, root, not_sure_below=not_sure_below, trusted_model=model)
    for note in written.notes:
        say(note)
    agreement = written.agreement
    for line in (
        f"largest difference from PyTorch: {agreement.difference:.1e}, on {agreement.words}",
        f"recalibration: {named(written.correction.name, loaded.experiment.members > 1)}",
        f"written: {written.path} ({written.size / 1e6:,.1f} MB) and {written.card}",
    ):
        say(line)
