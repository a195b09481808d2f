"""`counterpoint export`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import DataOption, RunArgument, RunsModelOption, find_modules_here
from counterpoint.cli.terminal.progress import console


def export(
    run: RunArgument,
    out: Annotated[
        Path, typer.Option(help="The file to write: .onnx, or .pt2 for torch.export. Its card ends in .md.")
    ] = Path("model.onnx"),
    not_sure_below: Annotated[
        str | None,
        typer.Option(
            metavar="CONFIDENCE",
            help="Let the file and its card say below which confidence nobody should be sure: 0.9, 90%, or the word "
            "threshold for what `counterpoint threshold` found, with the confidences that its promise is for.",
            show_default=False,
        ),
    ] = None,
    model: RunsModelOption = None,
    root: DataOption = None,
) -> None:
    """Write a finished run as one file that needs no counterpoint, and a model card beside it.

    Pixels go in (uint8, N × height × width × channels), and the ensemble's and each member's probabilities come out.

    Normalisation, all members and the recalibration that `predict` applies are inside, for batches of any size.

    Before the file is there it is compared with PyTorch, and refused if any probability is more than 0.0001 off.

    For .onnx: pip install 'counterpoint\\[export]'.
    """
    from counterpoint.export import export_run
    from counterpoint.runs.folder import load_run

    find_modules_here(model)
    loaded = load_run(run)
    with console.status("finding the graph, writing it and comparing it with PyTorch"):
        written = export_run(loaded, out, root, not_sure_below=not_sure_below, said=model)
    for note in written.notes:
        console.print(note, highlight=False, soft_wrap=True)
    agreement = written.agreement
    for line in (
        f"largest difference from PyTorch: {agreement.difference:.1e}, on {agreement.words}",
        f"recalibration: {written.correction.name}",
        f"written: {written.path} ({written.size / 1e6:,.1f} MB) and {written.card}",
    ):
        console.print(line, highlight=False, soft_wrap=True)
