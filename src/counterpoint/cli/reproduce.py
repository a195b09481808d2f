"""`counterpoint reproduce`: the paper's rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from counterpoint.cli.arguments.launching import (
    GpusOption,
    Launcher,
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
from counterpoint.cli.arguments.options import DataOption, DeviceOption
from counterpoint.cli.terminal.progress import TerminalWatcher, console, say
from counterpoint.cli.terminal.signals import stop_on_signal
from counterpoint.errors import InputError, some

if TYPE_CHECKING:
    from counterpoint.launching.job import Job
    from counterpoint.launching.slurm import Resources
    from counterpoint.reproduction.rows import Folders, RowResults, RowRun

PAGE = Path("docs/reproduction.md")


def reproduce(
    table: Annotated[
        str, typer.Argument(help="Table of the paper: table1, table2, table3 or all.", show_default=False)
    ],
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="WORDS",
            help='Only rows with these words in their name, such as "cifar10 single". A whole name takes that row '
            "alone.",
        ),
    ] = None,
    schedule: Annotated[
        str,
        typer.Option(
            help="Schedule: paper, short (a fifth of the epochs) or smoke (64 steps, to see whether it runs)."
        ),
    ] = "paper",
    run: Annotated[
        bool,
        typer.Option("--run", help="Train and evaluate the missing rows first. Without it the command only prints."),
    ] = False,
    seeds: SeedsOption = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(
            min=0.2,
            metavar="N",
            help="Stop before this many minutes have passed: a training with a checkpoint, an evaluation with the "
            "cells that are done.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    results: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    page: Annotated[
        Path | None,
        typer.Option(help="Markdown file to write all tables to.", show_default="docs/reproduction.md with --run"),
    ] = None,
    import_parts: Annotated[
        Path | None,
        typer.Option(help="Folder that --export-parts wrote. Its runs are put together again before anything else."),
    ] = None,
    export_parts: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write the runs and their newest checkpoints to at the end, in parts for another machine. "
            "The cells of an unfinished evaluation are written too, and the result of a finished row."
        ),
    ] = None,
    part_mib: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Size of a part of --export-parts in MiB.", show_default="14"),
    ] = None,
    launcher: LauncherOption = "local",
    partition: PartitionOption = None,
    gpus: GpusOption = None,
    minutes: MinutesOption = None,
    sbatch: SbatchOption = None,
    root: DataOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Show the paper's tables with our results beside them. --run trains the missing rows first.

    The tables show every seed that was run.

    --run skips finished rows and continues interrupted ones. A row's result is a small file in results/.

    A row that fails, or whose result is damaged, does not stop the others. The command then ends with status 1.

    With --launcher slurm each row and seed is a job on a cluster. The command shows the jobs and returns at once.
    """
    from counterpoint.experiments.schedules import find_schedule
    from counterpoint.reproduction.rows import Folders, RowRun, is_place, parse_seeds, results_of_row, select_rows
    from counterpoint.reproduction.tables import is_written, notes, terminal_tables, write_page
    from counterpoint.runs.transfer import export_runs, import_runs
    from counterpoint.storage.files import check_file_path, check_folder_path

    resources = cluster_resources(where := choose_launcher(launcher), partition, gpus, minutes, sbatch)
    _check_options(run, where, resources, max_minutes, part_mib, export_parts)
    if run and page is None:
        page = PAGE
    chosen, folders = find_schedule(schedule), Folders(out, results)
    names = select_rows(table, rows or [])
    status, failed = 0, ""
    wanted = [RowRun(name, chosen, seed) for name in names for seed in parse_seeds(",".join(seeds or ["0"]))]
    found = [results_of_row(results, name, chosen) for name in names]
    makes = bool(import_parts or (run and _without_result(wanted, found)))
    if page and (makes or not is_written(page, folders)):
        check_file_path(page, PAGE.name)
    for folder in (*((out, results) if makes else ()), *((export_parts,) if export_parts else ())):
        check_folder_path(folder)  # what hours of training make goes there
    if import_parts:
        _tell("imported from", import_parts, import_runs(import_parts, out, is_place, results))
    if where == "slurm":
        from counterpoint.reproduction.jobs import row_jobs

        jobs = row_jobs(wanted, folders, page or PAGE, passed_on(root, device))
        status = 0 if _on_cluster(jobs, resources if run else None, root) else 1
    elif run:
        status, failed = _on_this_machine(wanted, folders, root, device, max_minutes)
    if export_parts:
        exported = export_runs(out, [row_run.place for row_run in wanted], export_parts, part_mib or 14, results)
        _tell("exported to", export_parts, exported)
    if page:
        write_page(page, folders)
    for shown in terminal_tables(names, chosen, folders):
        console.print(shown)
    console.print(notes(chosen), highlight=False)
    if not run and not results.exists():
        words = f"no results: the folder {results} does not exist; name another one with --results"
        console.print(words, soft_wrap=True)
    found = [results_of_row(results, name, chosen) for name in names]
    _show_missing(_without_result(wanted, found), len(wanted), results, failed)
    if page:
        console.print(f"written: {page}", soft_wrap=True)
    damaged = [reason for one in found for reason in one.damaged.values() if reason not in failed]
    problems = [*damaged, *([failed] if failed else [])]
    for problem in problems:
        # At the end, where a person looks and the launcher of a job finds the reason.
        Console(stderr=True).print(f"error: {problem}", style="bold red", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(status or bool(problems))


def _check_options(
    run: bool,
    where: Launcher,
    resources: "Resources",
    max_minutes: float | None,
    part_mib: int | None,
    export_parts: Path | None,
) -> None:
    """Raise if options do not go together."""
    if max_minutes is not None and not run:
        raise InputError("--max-minutes needs --run, because nothing is trained without it")
    if max_minutes is not None and where == "slurm":
        raise InputError(
            "--max-minutes works only on this machine; on a cluster, --minutes sets the time limit of a job"
        )
    if part_mib is not None and not export_parts:
        raise InputError("--part-mib works only with --export-parts FOLDER; add it, or leave --part-mib out")
    if resources.gpus > 1:
        raise InputError(
            f"--gpus is {resources.gpus}; a row is trained on one GPU, so leave it at 1, or at 0 for a CPU"
        )


def _without_result(wanted: "list[RowRun]", found: "list[RowResults]") -> "list[RowRun]":
    known = {row_run for one in found for row_run in (*one.read, *one.damaged)}
    return [row_run for row_run in wanted if row_run not in known]


def _tell(what: str, parts: Path, places: "list[Path]") -> None:
    say(f"{what} {parts}: {', '.join(place.as_posix() for place in places)}")


def _show_missing(missing: "list[RowRun]", wanted: int, results: Path, failed: str) -> None:
    """What has no result, and why a file that is there is none. `failed` was said already."""
    from counterpoint.reproduction.rows import why_not_counted

    if missing:
        places = some([row_run.place.as_posix() for row_run in missing])
        say(f"{len(missing)} of {wanted} results missing: {places}; --run trains or continues them")
    for row_run in missing:
        if (reason := why_not_counted(results, row_run)) and reason not in failed:
            console.print(reason, soft_wrap=True)


def _on_this_machine(
    wanted: "list[RowRun]", folders: "Folders", root: Path | None, device: str, max_minutes: float | None
) -> tuple[int, str]:
    """Run what is missing. The exit status, and why rows failed."""
    from counterpoint.reproduction.campaign import RowsFailedError, run_missing

    failed = ""
    with stop_on_signal() as stop, TerminalWatcher() as watcher:
        try:
            run_missing(
                wanted,
                folders,
                root=root,
                device=device,
                max_minutes=max_minutes,
                should_stop=stop.is_set,
                watcher=watcher,
            )
        except RowsFailedError as error:
            failed = str(error)
    return stop.status, failed


def _on_cluster(jobs: "list[Job]", resources: "Resources | None", root: Path | None) -> bool:
    """Submit what is missing, if there are resources for it, and show the states of all jobs. False if some failed."""
    from counterpoint.cli.terminal.jobs import print_states
    from counterpoint.launching.queue import queue_states
    from counterpoint.launching.slurm import submit_missing
    from counterpoint.launching.states import job_states

    if resources is not None:
        check_data(jobs, root)
        submit_missing(jobs, resources)
    states = job_states(jobs, queue_states(jobs))
    print_states(states)
    return all(state.kind != "failed" for state in states)
