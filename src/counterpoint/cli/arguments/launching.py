"""Where jobs are run: --launcher, and what a cluster is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from counterpoint.errors import InputError, one_of

if TYPE_CHECKING:
    from counterpoint.launching.job import Job
    from counterpoint.launching.slurm import Resources

Launcher = Literal["local", "slurm"]
LauncherOption = Annotated[
    str,
    typer.Option(
        help="Where to run: local (on this machine, one run after another) or slurm (on a cluster, one job per run)."
    ),
]
SeedsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--seeds",
        metavar="SEEDS",
        help="Seeds to run, such as 0,1,2. May be given several times. Without it the seed is 0.",
        show_default=False,
    ),
]
PartitionOption = Annotated[
    str | None,
    typer.Option(help="Partition of the cluster, for --launcher slurm.", show_default="the cluster's"),
]
GpusOption = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="GPUs per job, for --launcher slurm. 0 uses a CPU.", show_default="1"),
]
MinutesOption = Annotated[
    int | None,
    typer.Option(
        min=5,
        metavar="N",
        help="Time limit of a job in minutes, for --launcher slurm. A job that needs longer is queued again and "
        "continues.",
        show_default="240",
    ),
]
SbatchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sbatch",
        metavar="NAME=VALUE",
        help="Any other option of sbatch, for --launcher slurm, such as --sbatch account=lab. May be given "
        "several times.",
        show_default=False,
    ),
]


def passed_on(root: Path | None, device: str) -> tuple[str, ...]:
    """The options that the commands of a job get too."""
    return (*(("--data", str(root)) if root else ()), *(("--device", device) if device != "auto" else ()))


def choose_launcher(name: str) -> Launcher:
    """The launcher of that name."""
    chosen: Launcher = one_of("launcher", name, get_args(Launcher))
    return chosen


def cluster_resources(
    launcher: Launcher, partition: str | None, gpus: int | None, minutes: int | None, sbatch: list[str] | None
) -> "Resources":
    """What each job asks the cluster for. On this machine such options are refused."""
    from counterpoint.launching.slurm import Resources

    given = {"partition": partition, "gpus": gpus, "minutes": minutes, "sbatch": sbatch or None}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if asked and launcher != "slurm":
        options = ", ".join(f"--{name}" for name in asked)
        raise InputError(f"{options} works only on a cluster; add --launcher slurm, or leave it out")
    if sbatch:
        asked["sbatch"] = dict(map(_named_value, sbatch))
    return Resources(**asked)


def check_data(jobs: "Sequence[Job]", root: Path | None) -> None:
    """Raise before the first training if a data set is missing."""
    from counterpoint.data import load

    for dataset in sorted({job.experiment.dataset for job in jobs}):
        load(dataset, root)


def _named_value(argument: str) -> tuple[str, str]:
    name, equals, value = argument.partition("=")
    if not (name.strip("-") and equals and value):
        raise InputError(f"--sbatch {argument}: it must be NAME=VALUE, such as --sbatch account=lab")
    return name.lstrip("-"), value
