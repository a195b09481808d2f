"""`counterpoint train`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.options import (
    DataOption,
    DeviceOption,
    ExperimentArgument,
    ModelOption,
    SeedOption,
    SetOption,
    choose_experiment,
)
from counterpoint.cli.progress import TerminalWatcher, console, stop_on_signal


def train(
    experiment: ExperimentArgument,
    out: Annotated[Path, typer.Option(help="The run's folder; an unfinished run there goes on.", show_default=False)],
    model: ModelOption = None,
    seed: SeedOption = 0,
    set_: SetOption = None,
    max_minutes: Annotated[
        float | None, typer.Option(min=0.2, help="Stop with a checkpoint before this time is over.")
    ] = None,
    root: DataOption = None,
    device: DeviceOption = "auto",
    engine: Annotated[
        str,
        typer.Option(
            help="What computes a step: auto, fast (own kernels; ResNeXt-29 on a GPU), compiled (torch.compile) or "
            "eager (plain PyTorch). auto is the fastest that the network and the device have."
        ),
    ] = "auto",
    old_engine: Annotated[str | None, typer.Option("--path", hidden=True, help="The old name of --engine.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bits every time on a GPU too, at some cost in speed.")
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
) -> None:
    """Train an experiment, or go on with the unfinished run in the folder."""
    from counterpoint.data import load
    from counterpoint.model_names import is_function
    from counterpoint.training.engines import check_engine
    from counterpoint.training.loop import Options, train

    chosen = choose_experiment(experiment, model, set_)
    options = Options(device, check_engine(old_engine or engine), deterministic, max_minutes, tensorboard)
    dataset = load(chosen.dataset, root)
    with stop_on_signal() as stop, TerminalWatcher() as watcher:
        finished = train(chosen, out, dataset, seed=seed, options=options, watcher=watcher, should_stop=stop.is_set)
    if finished:
        again = f" --model {chosen.model}" if is_function(chosen.model) else ""
        console.print(f"finished: {out}; now `counterpoint evaluate {out}{again}`", soft_wrap=True)
    else:
        console.print(f"stopped with a checkpoint in {out}; the same command goes on from there", soft_wrap=True)
        raise typer.Exit(130 if stop.is_set() else 0)
