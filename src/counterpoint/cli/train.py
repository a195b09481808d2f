"""`counterpoint train`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import (
    DataOption,
    DeviceOption,
    ModelOption,
    SeedOption,
    SetOption,
    model_assignments,
)
from counterpoint.cli.arguments.own_images import (
    ImagesOption,
    MaybeExperimentArgument,
    PretrainedOption,
    SkipBadOption,
    choose_data,
)
from counterpoint.cli.terminal.progress import TerminalWatcher, console
from counterpoint.cli.terminal.signals import stop_on_signal
from counterpoint.parallel.world import this_world
from counterpoint.storage.folders import quoted


def train(
    out: Annotated[Path, typer.Option(help="The run's folder; an unfinished run there goes on.", show_default=False)],
    experiment: MaybeExperimentArgument = None,
    images: ImagesOption = None,
    skip_bad: SkipBadOption = False,
    model: ModelOption = None,
    pretrained: PretrainedOption = False,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Start from the weights of another finished run of the same network; its classes may be others.",
            show_default=False,
        ),
    ] = None,
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
    less_memory: Annotated[
        bool,
        typer.Option(
            "--less-memory",
            help="Compute activations again in the backward pass instead of keeping them: the same result, slower. "
            "With the eager engine only.",
        ),
    ] = False,
    member_by_member: Annotated[
        bool,
        typer.Option(
            "--member-by-member",
            help="Hold the activations of one member at a time: the same result, slower. Not with shared BatchNorm.",
        ),
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")] = False,
    validate: Annotated[
        bool | None,
        typer.Option(
            "--validate/--no-validate",
            help="Show error, NLL and ECE on the validation images after each epoch. No weights are chosen by them.",
            show_default="on for --images",
        ),
    ] = None,
) -> None:
    """Train an experiment, or train on your own images, or go on with the unfinished run in the folder.

    For a folder of photographs: `counterpoint train --images photos --model timm/resnet50 --pretrained --out runs/a`.

    Without validation images of their own, some are split off the training images; a single folder is split in three.

    On several GPUs: `torchrun --nproc-per-node 4 -m counterpoint train …` gives the result that one gives.
    """
    from counterpoint.data import UserImages
    from counterpoint.model_names import is_function
    from counterpoint.parallel.group import agreed, joined
    from counterpoint.runs.folder import load_run
    from counterpoint.training.engines import check_engine
    from counterpoint.training.loop import Options, train
    from counterpoint.training.starting import weights_hash

    world = this_world()
    assignments = model_assignments(model, set_) + (["pretrained=true"] if pretrained else [])
    with joined(world), TerminalWatcher() as watcher:
        with agreed(world):
            start = None if from_ is None else load_run(from_)
            chosen, data = choose_data(
                experiment,
                images,
                assignments,
                root,
                skip_bad=skip_bad,
                fine_tuned=start is not None,
                watcher=watcher,
            )
            if start is not None:
                chosen = replace(chosen, starts_from=weights_hash(start))
            if validate is None:
                validate = isinstance(data, UserImages) and data.val is not None
            name = check_engine(old_engine or engine)
            saved = {"less_memory": less_memory, "member_by_member": member_by_member}
            options = Options(device, name, deterministic, max_minutes, tensorboard, validate, **saved)
        # Reading images needs no checkpoint, and ends at once.
        with stop_on_signal(at_once_if_again=world.is_alone) as stop:
            finished = train(
                chosen,
                out,
                data,
                seed=seed,
                start=start,
                options=options,
                watcher=watcher,
                should_stop=stop.is_set,
                world=world,
            )
    if finished:
        again = f" --model {chosen.model}" if is_function(chosen.model) else ""
        console.print(f"finished: {out}; now `counterpoint evaluate {quoted(out)}{again}`", soft_wrap=True)
    else:
        console.print(f"stopped with a checkpoint in {out}; the same command goes on from there", soft_wrap=True)
        raise typer.Exit(stop.status)
