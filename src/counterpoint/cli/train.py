"""`counterpoint train`."""

import time
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
    check_settings,
    choose_data,
    slow_on_cpu,
)
from counterpoint.cli.terminal.progress import TerminalWatcher, console
from counterpoint.cli.terminal.signals import stop_on_signal
from counterpoint.errors import one_of
from counterpoint.parallel.world import this_world
from counterpoint.storage.folders import quoted


def train(
    out: Annotated[
        Path,
        typer.Option(help="Folder for the run. If it holds an unfinished run, that run continues.", show_default=False),
    ],
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
            help="Start from the weights of a finished run of the same network. The classes may differ.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
    set_: SetOption = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(min=0.2, metavar="N", help="Stop with a checkpoint before this many minutes have passed."),
    ] = None,
    root: DataOption = None,
    device: DeviceOption = "auto",
    engine: Annotated[
        str,
        typer.Option(
            help="Engine that computes a step: auto, fast (our own kernels, for ResNeXt-29 on an NVIDIA GPU), compiled "
            "(torch.compile) or eager (plain PyTorch). auto takes the fastest one that works."
        ),
    ] = "auto",
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="Make a GPU give the same bits every time, at the price of speed. A CPU does so without this option.",
        ),
    ] = False,
    less_memory: Annotated[
        bool,
        typer.Option(
            "--less-memory",
            help="Save memory: compute activations again in the backward pass instead of keeping them. The result is "
            "the same, and training is slower. This needs the eager engine.",
        ),
    ] = False,
    member_by_member: Annotated[
        bool,
        typer.Option(
            "--member-by-member",
            help="Save memory: keep the activations of one member at a time. The result is the same up to rounding, "
            "and training is slower. If the network has BatchNorm, add --set batchnorm=per-member.",
        ),
    ] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write a log for TensorBoard.")] = False,
    validate: Annotated[
        bool | None,
        typer.Option(
            "--validate/--no-validate",
            help="Show error, NLL and ECE on the validation images after each epoch. Training does not depend on them: "
            "it does not stop early, and the last weights are kept.",
            show_default="on for --images",
        ),
    ] = None,
) -> None:
    """Train an experiment or your own images, or continue an unfinished run.

    Example with photographs: `counterpoint train --images photos --model timm/resnet50 --pretrained --out runs/a`.

    If your images have no validation part, one is split off the training images. If they have no parts at all, they are
    split into train, val and test.

    To use several GPUs: `torchrun --nproc-per-node 4 -m counterpoint train …`. The result is the same as on one GPU.
    """
    began = time.monotonic()
    assignments = model_assignments(model, set_) + (["pretrained=true"] if pretrained else [])
    check_settings(experiment, images, assignments, skip_bad=skip_bad)

    from counterpoint.data import UserImages
    from counterpoint.devices import choose_device
    from counterpoint.images.sources import check_not_inside
    from counterpoint.model_names import is_function
    from counterpoint.parallel.group import agreed, from_first, joined
    from counterpoint.runs.folder import check_folder, load_run
    from counterpoint.runs.split_file import read_split
    from counterpoint.training.engines import ENGINES
    from counterpoint.training.loop import Options, train

    world = this_world()
    with joined(world), TerminalWatcher() as watcher:
        with agreed(world):
            # Whatever can be wrong is said before thousands of images are decoded.
            where, name = choose_device(device, world), one_of("engine", engine, ENGINES)
            if world.is_first:
                check_folder(out)
            if images is not None:
                check_not_inside(out, images)
            start = None if from_ is None else load_run(from_)
            has_begun = world.is_first and (out / "run.json").exists()
            begun = load_run(out) if has_begun else start
            own = begun.experiment.images if begun else None
            split = read_split(begun.folder) if begun and own and world.is_first else None
        # Earlier versions had another default size. The folder may be on the first machine only.
        size, split, has_begun = from_first(world, (own.size if own else None, split, has_begun))
        with agreed(world):
            chosen, data = choose_data(
                experiment,
                images,
                assignments,
                root,
                skip_bad=skip_bad,
                fine_tuned=start is not None,
                size=size,
                split=split,
                with_added=not has_begun,
                watcher=watcher,
            )
            if validate is None:
                validate = isinstance(data, UserImages) and data.val is not None
            if slow := slow_on_cpu(chosen, where.type):
                watcher.noted(slow)
            # Images that are decoded for the first time may take long.
            left = None if max_minutes is None else max_minutes - (time.monotonic() - began) / 60
            saved = {"less_memory": less_memory, "member_by_member": member_by_member}
            options = Options(device, name, deterministic, left, tensorboard, validate, **saved)
        # Reading images needs no checkpoint, and ends at once.
        with stop_on_signal(at_once_if_again=world.is_alone) as stop:
            finished = train(
                chosen,
                out,
                data,
                seed=seed,
                start=start,
                root=root,
                options=options,
                watcher=watcher,
                should_stop=stop.is_set,
                world=world,
            )
    if finished:
        again = f" --model {chosen.model}" if is_function(chosen.model) else ""
        console.print(f"finished: {out}; next: `counterpoint evaluate {quoted(out)}{again}`", soft_wrap=True)
    else:
        console.print(f"stopped with a checkpoint in {out}; the same command continues from there", soft_wrap=True)
        raise typer.Exit(stop.status)
