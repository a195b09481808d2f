"""`counterpoint demo`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import DeviceOption
from counterpoint.cli.terminal.progress import console


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the three runs and the report.")] = Path("demo"),
    device: DeviceOption = "auto",
) -> None:
    """Train a small ensemble and a single network on handwritten digits, and write a report of both.

    A third, short training holds images out, which give the single network its temperatures.

    Needs no download and no GPU: about two and a half minutes on two CPU cores.
    """
    from counterpoint.cli.demo.run import run_demo

    try:
        report = run_demo(out, device)
    except KeyboardInterrupt:  # between the trainings, which end with a checkpoint
        console.print("stopped; the same command goes on from there")
        raise typer.Exit(130) from None
    console.print(f"report: {report}; open it in a browser", soft_wrap=True)
