"""`counterpoint evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.given_logits import (
    GivenOutOption,
    LogitsOption,
    MaybeRunArgument,
    folder_to_evaluate,
)
from counterpoint.cli.arguments.options import DataOption, DeviceOption, RunsModelOption, find_modules_here
from counterpoint.cli.arguments.own_shifts import ShiftOption, named_shifts
from counterpoint.cli.terminal.progress import TerminalWatcher, console, print_parts
from counterpoint.errors import InputError
from counterpoint.parallel.world import this_world
from counterpoint.storage.folders import quoted


def evaluate(
    run: MaybeRunArgument = None,
    logits: LogitsOption = None,
    out: GivenOutOption = None,
    sets: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="The sets of images beside the clean one, separated by commas: corrupted (the test images under 15 "
            "corruptions), validation-extra (held-out images under 4 others).",
        ),
    ] = "corrupted",
    shift: ShiftOption = None,
    cell_images: Annotated[
        int | None, typer.Option(min=1, help="Use the first N images of each corrupted cell.", show_default="all")
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Compute the figures again from the saved logits; needs no network.")
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            help="Of the network: headline (fp32, convolutions in TF32 where the GPU has it), bf16 (fastest on a GPU, "
            "slow on a CPU) or strict (fp32 throughout)."
        ),
    ] = "headline",
    model: RunsModelOption = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Where the run's own images are now.", show_default="as in training"),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", help="Leave out files of --shift that give no image, instead of ending with a list."
        ),
    ] = False,
    root: DataOption = None,
    device: DeviceOption = "auto",
    old_recalibrate: Annotated[bool, typer.Option("--recalibrate", hidden=True)] = False,
    old_twin: Annotated[Path | None, typer.Option("--temperatures-from", hidden=True)] = None,
    old_against: Annotated[list[Path] | None, typer.Option("--against", hidden=True)] = None,
) -> None:
    """Compute a finished run's error, scores and calibration, clean and under shift, into results.json.

    The corrupted test set is the official one if it is in the data folder; otherwise it is made there first.

    A run on your own images is evaluated on their test images; validation images are for `recalibrate` and `threshold`.

    With --shift NAME=PATH it is also evaluated on shifted images of your own, such as those of another camera.

    An interrupted evaluation goes on where it stopped. Sets of earlier evaluations stay in results.json.

    With --logits FILE --out DIR there is no network: the file has any model's predictions, and DIR is used like a run.

    On several GPUs: `torchrun --nproc-per-node 4 -m counterpoint evaluate …`, where each computes some of the sets.

    Then: `counterpoint recalibrate`, `counterpoint compare`, `counterpoint report`.
    """
    from counterpoint.cli.terminal.tables import results_parts
    from counterpoint.devices import check_precision
    from counterpoint.evaluation.imported.importing import evaluate_logits
    from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
    from counterpoint.evaluation.suites import find_suites
    from counterpoint.parallel.group import LONG_PATIENCE, agreed, joined
    from counterpoint.runs.folder import load_run
    from counterpoint.runs.imported import load_any_run

    only_for_runs = {
        "--sets": sets != "corrupted",
        "--shift": shift,
        "--cell-images": cell_images,
        "--recompute": recompute,
        "--precision": precision != "headline",
        "--model": model,
        "--images": images,
        "--skip-bad": skip_bad,
        "--device": device != "auto",
    }
    folder = folder_to_evaluate(run, logits, out, only_for_runs)
    _refuse_old_options(folder, old_recalibrate, old_twin, old_against)
    if recompute and (cell_images or images or shift or precision != "headline" or sets != "corrupted"):
        raise InputError(
            "--recompute takes the saved logits as they are; leave --sets, --shift, --cell-images, --images and "
            "--precision out"
        )
    shifts = named_shifts(shift or [], skip_bad=skip_bad)
    find_modules_here(model)
    suites = find_suites([name.strip() for name in sets.split(",") if name.strip()])
    world = this_world()
    if not world.is_alone and (logits or recompute):
        raise InputError("--logits and --recompute need no network, and one process; leave torchrun out")
    try:
        with joined(world, LONG_PATIENCE), TerminalWatcher() as watcher:
            if logits is not None:
                results = evaluate_logits(logits, folder, watcher=watcher)
            elif recompute:
                results = recompute_results(load_any_run(folder), watcher)
            else:
                with agreed(world):
                    loaded = load_run(folder)
                results = evaluate_run(
                    loaded,
                    root,
                    source=images,
                    suites=suites,
                    shifts=shifts,
                    skip_bad=skip_bad,
                    device=device,
                    precision=check_precision(precision),
                    cell_images=cell_images,
                    said=model,
                    watcher=watcher,
                    world=world,
                )
    except KeyboardInterrupt:
        console.print(f"stopped; the same command {'begins anew' if logits else 'goes on from there'}")
        raise typer.Exit(130) from None
    print_parts(results_parts(results))
    console.print(f"written: {folder / 'results.json'}; now `counterpoint report {quoted(folder)}`", soft_wrap=True)


def _refuse_old_options(run: Path, recalibrate: bool, twin: Path | None, against: list[Path] | None) -> None:
    if twin is not None:
        raise InputError(
            f"--temperatures-from is now a command: `counterpoint recalibrate {quoted(run)} --twin {quoted(twin)}`"
        )
    if recalibrate:
        raise InputError(f"--recalibrate is now a command: `counterpoint recalibrate {quoted(run)}`")
    if against:
        others = " ".join(map(quoted, against))
        raise InputError(f"--against is now a command: `counterpoint compare {quoted(run)} {others}`")
