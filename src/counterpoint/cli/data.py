"""`counterpoint data`: which data sets are there, and downloads."""

from functools import partial
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import DataOption
from counterpoint.cli.terminal.progress import TerminalWatcher, console
from counterpoint.cli.terminal.tables import data_table
from counterpoint.errors import InputError


def data(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Data sets to download: cifar10, cifar100, cifar10-c or cifar100-c. Without a name the command lists "
            "what is there."
        ),
    ] = None,
    root: DataOption = None,
) -> None:
    """List the data sets that are on this machine, or download some.

    A download that was interrupted continues, and a checksum is verified at the end.
    """
    from counterpoint.data import data_root
    from counterpoint.data.fetch import check_download, fetch, status

    folder = root or data_root()
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but a folder is needed there; give another --data")
    for name in names or []:  # all names are checked before the first download
        check_download(name)
    for name in names or []:
        with TerminalWatcher() as watcher:
            fetched = fetch(name, folder, partial(watcher.downloaded, name))
        console.print(f"{name} is in {fetched}", soft_wrap=True)
    if names:
        return
    console.print(data_table(folder, status(folder)))
