"""`counterpoint bench`: measure this machine."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import SetOption, choose_experiment
from counterpoint.cli.terminal.help import Command, Group
from counterpoint.cli.terminal.progress import console

bench = typer.Typer(cls=Group, help="Measure the speed of this machine.", no_args_is_help=True)


@bench.callback()
def _bench() -> None:
    """Measure the speed of this machine."""


@bench.command(cls=Command)
def step(
    experiment: Annotated[
        str, typer.Argument(help="Name of an experiment, which `counterpoint experiments` lists.")
    ] = "cifar10/batch-ensemble",
    set_: SetOption = None,
    repeats: Annotated[int, typer.Option(min=3, metavar="N", help="Steps to time per engine.")] = 40,
    slow: Annotated[
        bool, typer.Option("--slow/--no-slow", help="Also time eager PyTorch, in fp32, TF32 and bf16.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="Also write the figures to this JSON file.")] = None,
) -> None:
    """Time a training step on the GPU with each engine: eager, compiled and fast, on the same inputs.

    The command first compares the logits and gradients of the engines with those of fp32.

    The floor is the least time that a step can take. It is computed from the network and from this GPU's rates, which
    are measured in the same run.
    """
    from dataclasses import asdict

    from counterpoint.devices import choose_device
    from counterpoint.records.files import check_no_record
    from counterpoint.storage.files import check_file_path, write_json
    from counterpoint.storage.provenance import command_line, describe_environment
    from counterpoint.training.bench import measure

    chosen = choose_experiment(experiment, set_ or [])
    if out:
        check_file_path(out, "bench.json")
        check_no_record(out)
    found = []
    for figure in measure(chosen, repeats=repeats, slow=slow):
        console.print(str(figure), soft_wrap=True)
        found.append(asdict(figure))
        if out:  # written after each figure, so that an interruption loses none
            environment = describe_environment(choose_device("cuda"))
            write_json(out, {"command": command_line(), "environment": environment, "figures": found})
