"""`counterpoint evaluate`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import DataOption, DeviceOption, RunsModelOption, find_modules_here
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.cli.terminal.signals import ended_by_ctrl_c
from counterpoint.errors import InputError, StoppedError, one_of
from counterpoint.parallel.world import this_world
from counterpoint.storage.folders import quoted

_SUCH_AS = {"--shift": "fog=photos-in-fog", "--outside": "animals=photos-of-animals"}


def evaluate(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of the run, which `train --out` or `evaluate --logits --out` made.", show_default=False
        ),
    ] = None,
    logits: Annotated[
        Path | None,
        typer.Option(
            "--logits",
            metavar="FILE",
            help="Evaluate a file of predictions instead of a run. The model may come from anywhere. The .npz file has "
            "the array logits or probs, and the array labels. It may also have predictions for validation images and "
            "for shifted images.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to make for --logits.", show_default=False)
    ] = None,
    sets: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Image sets to evaluate on besides the clean images, separated by commas: corrupted (the test images "
            "under 15 corruptions) and validation-extra (the validation images under 4 other corruptions).",
        ),
    ] = "corrupted",
    shift: Annotated[
        list[str] | None,
        typer.Option(
            "--shift",
            metavar="NAME=PATH",
            help="Shifted images of your own, under a name that you choose. PATH is a folder with one folder per class "
            "of the run, a folder with 1, 2, 3, … (the severities of the shift) that each have one folder per class, a "
            ".csv file of paths and labels, or an .npz file. May be given several times.",
            show_default=False,
        ),
    ] = None,
    outside: Annotated[
        list[str] | None,
        typer.Option(
            "--outside",
            metavar="NAME=PATH",
            help="Outside images, which belong to none of the run's classes, under a name that you choose. PATH is a "
            "folder of pictures, at any depth, or an .npz file with the array images. May be given several times.",
            show_default=False,
        ),
    ] = None,
    cell_images: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Make and use only the first N images of each cell, which is one corruption at one severity.",
            show_default="all",
        ),
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(
            min=0.2,
            metavar="N",
            help="Stop before this many minutes have passed, and keep the cells that are done. At least one cell is "
            "evaluated.",
        ),
    ] = None,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Compute the figures again from the saved logits. This needs no network."),
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            help="Precision of the network: headline (fp32, with convolutions in TF32 if the GPU has it), bf16 "
            "(fastest on a GPU, slow on a CPU) or strict (fp32 throughout)."
        ),
    ] = "headline",
    model: RunsModelOption = None,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Where the images of the run are now, if they were moved.",
            show_default="as in training",
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad",
            help="Leave out files of --shift and --outside that cannot be read as images. Without it the command "
            "lists them and ends.",
        ),
    ] = False,
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Measure the error and the calibration of a finished run, on clean images and under shift.

    The figures go to results.json in the run's folder. Image sets of earlier evaluations stay in it.

    The corrupted test set is the official one if the data folder has it. Otherwise it is made there first.

    A run on your own images is evaluated on their test images. `recalibrate` and `threshold` use the validation images.

    --shift NAME=PATH adds shifted images of your own, such as pictures from another camera.

    --outside NAME=PATH adds images of none of the classes, and measures how well the confidence tells them apart.

    --logits FILE --out DIR evaluates the predictions of any model. You can then use DIR like a run.

    An evaluation that was interrupted, or stopped by --max-minutes, continues where it stopped.

    To use several GPUs: `torchrun --nproc-per-node 4 -m counterpoint evaluate …`.

    Next: `counterpoint recalibrate`, `counterpoint compare`, `counterpoint report`.
    """
    from counterpoint.cli.terminal.tables import results_parts
    from counterpoint.devices import PRECISIONS
    from counterpoint.evaluation.imported.importing import evaluate_logits
    from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
    from counterpoint.evaluation.suites import find_suites
    from counterpoint.parallel.group import LONG_PATIENCE, agreed, joined
    from counterpoint.runs.folder import load_run
    from counterpoint.runs.imported import load_any_run

    only_for_runs = {
        "--sets": sets != "corrupted",
        "--shift": shift,
        "--outside": outside,
        "--cell-images": cell_images,
        "--max-minutes": max_minutes,
        "--recompute": recompute,
        "--precision": precision != "headline",
        "--model": model,
        "--images": images,
        "--skip-bad": skip_bad,
        "--device": device != "auto",
    }
    folder = _folder_to_evaluate(run, logits, out, only_for_runs)
    changing = (cell_images, images, shift, outside, precision != "headline", sets != "corrupted", max_minutes)
    if recompute and any(changing):
        raise InputError(
            "--recompute uses the saved logits as they are; leave --sets, --shift, --outside, --cell-images, "
            "--max-minutes, --images and --precision out"
        )
    shifts, outside_sets = _named_paths("--shift", shift), _named_paths("--outside", outside)
    if skip_bad and not (shifts or outside_sets):
        raise InputError(
            "--skip-bad works only with --shift NAME=PATH or --outside NAME=PATH; add images, or leave --skip-bad out"
        )
    find_modules_here(model)
    suites = find_suites([name.strip() for name in sets.split(",") if name.strip()])
    world = this_world()
    if not world.is_alone and (logits or recompute):
        raise InputError("--logits and --recompute run in one process; start them without torchrun")
    stopped = f"stopped; the same command {'starts again' if logits else 'continues from there'}"
    with ended_by_ctrl_c(stopped), joined(world, LONG_PATIENCE), TerminalWatcher() as watcher:
        if logits is not None:
            results = evaluate_logits(logits, folder, watcher=watcher)
        elif recompute:
            results = recompute_results(load_any_run(folder), watcher)
        else:
            with agreed(world):
                loaded = load_run(folder)
            try:
                results = evaluate_run(
                    loaded,
                    root,
                    source=images,
                    suites=suites,
                    shifts=shifts,
                    outside=outside_sets,
                    skip_bad=skip_bad,
                    device=device,
                    precision=one_of("precision", precision, PRECISIONS),
                    cell_images=cell_images,
                    trusted_model=model,
                    max_minutes=max_minutes,
                    watcher=watcher,
                    world=world,
                )
            except StoppedError:
                console.print(stopped, soft_wrap=True)
                return
    print_parts(results_parts(results))
    said = f"written: {folder / 'results.json'}; next: `counterpoint report {quoted(folder)}`"
    if results.validated_on is not None or results.evaluated_on.part == "validation":
        said += f", or `counterpoint recalibrate {quoted(folder)}` to correct the confidence"
    console.print(said, soft_wrap=True)


def _folder_to_evaluate(run: Path | None, logits: Path | None, out: Path | None, others: Mapping[str, object]) -> Path:
    """Where the results go. `others` are the options that need a network, with their values where they were given."""
    if logits is None:
        if run is None:
            raise InputError("name the folder of a run, or give a file of predictions with --logits FILE --out DIR")
        if out is not None:
            raise InputError(
                f"--out works only with --logits FILE; leave it out: the results of {run} go into its own folder"
            )
        return run
    if run is not None:
        raise InputError(
            f"give either a run ({run}) or --logits {logits}, not both; --out DIR names the folder for --logits"
        )
    if out is None:
        raise InputError(f"--logits {logits} needs --out DIR, the folder for its results")
    if surplus := [option for option, value in others.items() if value]:
        raise InputError(f"--logits evaluates predictions as they are; leave {', '.join(surplus)} out")
    return out


def _named_paths(option: str, arguments: Sequence[str] | None) -> dict[str, Path]:
    """The path of each name that was given with the option."""
    paths: dict[str, Path] = {}
    for argument in arguments or ():
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise InputError(f"{option} {argument}: it must be NAME=PATH, such as {option} {_SUCH_AS[option]}")
        if name in paths:
            raise InputError(
                f"{option} {name} is given twice, with {paths[name]} and {path}; give each a name of its own"
            )
        paths[name] = Path(path)
    return paths
