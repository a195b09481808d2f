"""The paper's rows as jobs for a cluster. Each is `counterpoint reproduce --run` for one row and one seed."""

from collections.abc import Sequence
from pathlib import Path

from counterpoint.launching.job import Job
from counterpoint.reproduction.rows import Folders, RowRun


def row_jobs(wanted: Sequence[RowRun], folders: Folders, page: Path, options: Sequence[str]) -> list[Job]:
    """A job for each of `wanted`. It writes `page` too, so that this shows what there is when the last one ends."""
    return [
        Job(
            name=run.place.as_posix(),
            runs=folders.runs,
            experiment=run.experiment,
            seed=run.seed,
            commands=(_command(run, folders, page, options),),
            results=folders.results / f"{run.place}.json",
        )
        for run in wanted
    ]


def _command(run: RowRun, folders: Folders, page: Path, options: Sequence[str]) -> tuple[str, ...]:
    what = ("reproduce", "all", "--rows", run.row, "--schedule", run.schedule.name, "--seeds", str(run.seed), "--run")
    where = ("--out", str(folders.runs), "--results", str(folders.results), "--page", str(page))
    return (*what, *where, *options)
