"""`counterpoint sweep`: experiments × settings × seeds."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.launching import (
    GpusOption,
    LauncherOption,
    MinutesOption,
    PartitionOption,
    SbatchOption,
    SeedsOption,
    check_data,
    choose_launcher,
    cluster_resources,
    passed_on,
)
from counterpoint.cli.arguments.options import DataOption, DeviceOption, SetOption
from counterpoint.cli.arguments.own_images import (
    ImagesOption,
    SkipBadOption,
    check_names,
    experiments_on,
    images_title,
)
from counterpoint.cli.terminal.progress import TerminalWatcher, console, say
from counterpoint.cli.terminal.signals import stop_on_signal
from counterpoint.storage.files import check_folder_path
from counterpoint.storage.folders import quoted


def sweep(
    out: Annotated[
        Path, typer.Option(help="Folder for the runs. Each run gets its own folder in it.", show_default=False)
    ],
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of experiments, which `counterpoint experiments` lists. With --images you may leave them out, "
            "or name some whose settings are used for your images.",
            show_default=False,
        ),
    ] = None,
    images: ImagesOption = None,
    skip_bad: SkipBadOption = False,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Setting that differs between the runs. Give it once per value: --vary learning_rate=0.1 "
            "--vary learning_rate=0.05. With several settings, every combination is run.",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    seeds: SeedsOption = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="Run what is not finished. Without it the command only shows the state of each run."
        ),
    ] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Evaluate each run after its training.")
    ] = True,
    launcher: LauncherOption = "local",
    partition: PartitionOption = None,
    gpus: GpusOption = None,
    minutes: MinutesOption = None,
    sbatch: SbatchOption = None,
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Train and evaluate every combination of experiments, settings and seeds.

    Without --run the command runs nothing and shows the state of each run. You can do that at any time.

    --run skips finished runs, continues interrupted ones, and tries failed ones again.

    A run that fails does not stop the others. The command then ends with status 1.

    On a cluster (pip install 'counterpoint\\[slurm]') the command returns at once. A job that loses its node continues
    later.

    Example: `counterpoint sweep cifar10/single --vary epochs=50 --vary epochs=250 --seeds 0,1 --out sweeps/a`.

    --images reads your own images before the first run, and decodes them once for all runs.
    """
    from counterpoint.cli.terminal.jobs import print_seeds, print_states
    from counterpoint.images.sources import check_not_inside
    from counterpoint.launching.plan import Sweep, make_jobs, named_experiment, parse_varied
    from counterpoint.launching.queue import queue_states
    from counterpoint.launching.states import job_states
    from counterpoint.reproduction.rows import parse_seeds

    resources = cluster_resources(where := choose_launcher(launcher), partition, gpus, minutes, sbatch)
    check_names(experiments or [], images, skip_bad=skip_bad)
    if images is not None:
        check_not_inside(out, images)
    wanted = Sweep(
        experiments or [None],
        set_ or [],
        parse_varied(vary or []),
        parse_seeds(",".join(seeds or ["0"])),
        evaluate,
        options=passed_on(root, device),
        processes=max(1, resources.gpus),
        images=("--images", str(images), *(["--skip-bad"] if skip_bad else [])) if images else (),
        images_title=images_title(images) if images else "",
    )
    with TerminalWatcher() as watcher:
        on_own = images and experiments_on(images, root, skip_bad=skip_bad, watcher=watcher)
        jobs = make_jobs(wanted, out, on_own or named_experiment)
    # A finished sweep needs no place, device or data any more.
    if run and any(state.kind != "finished" for state in job_states(jobs, {})):
        check_folder_path(out)
        if where == "local":
            from counterpoint.devices import choose_device  # which imports torch; the states need none

            choose_device(device)  # each run would fail
        if not images:
            check_data(jobs, root)
    status = 0
    if run and where == "slurm":
        from counterpoint.launching.slurm import submit_missing

        submit_missing(jobs, resources)
    elif run:
        from counterpoint.launching.local import run_here

        with stop_on_signal() as stop, TerminalWatcher() as watcher:
            run_here(jobs, should_stop=stop.is_set, watcher=watcher)
        status = stop.status
    states = job_states(jobs, queue_states(jobs))
    print_states(states)
    print_seeds(states)
    _say_what_is_next({state.kind for state in states}, out, evaluate)
    raise typer.Exit(status or any(state.kind == "failed" for state in states))


def _say_what_is_next(kinds: set[str], out: Path, evaluate: bool) -> None:
    if kinds & {"waiting", "interrupted", "failed"}:
        console.print("--run runs those that are not finished, or continues them")
    if "finished" in kinds and evaluate:
        those = "" if kinds == {"finished"} else ", for those that are finished"
        say(f"next{those}: `counterpoint report {quoted(out)}/*/results.json`")
