"""The program: its commands, and how it ends when an input is wrong."""

import errno
import os
import sys
import time
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import counterpoint
from counterpoint.cli.bench import bench
from counterpoint.cli.compare import compare
from counterpoint.cli.corrupt import corrupt
from counterpoint.cli.data import data
from counterpoint.cli.demo.command import demo
from counterpoint.cli.evaluate import evaluate
from counterpoint.cli.experiments import experiments
from counterpoint.cli.export import export
from counterpoint.cli.predict import predict
from counterpoint.cli.recalibrate import recalibrate
from counterpoint.cli.report import report
from counterpoint.cli.reproduce import reproduce
from counterpoint.cli.serve import serve
from counterpoint.cli.settings import settings
from counterpoint.cli.sweep import sweep
from counterpoint.cli.terminal.help import Command, Group
from counterpoint.cli.terminal.progress import UNREAD, console, write_nowhere
from counterpoint.cli.terminal.signals import exit_when_terminated
from counterpoint.cli.threshold import threshold
from counterpoint.cli.train import train
from counterpoint.cli.views import views
from counterpoint.errors import InputError, is_out_of_memory
from counterpoint.parallel.world import ALONE, LET_THE_FIRST_SPEAK, World, is_told_by_another, this_world

_FOR_SEVERAL = ("train", "evaluate")
"""The commands that torchrun may start in several processes."""

app = typer.Typer(
    name="counterpoint",
    cls=Group,
    help="Train ensembles whose members each see the images augmented in their own way, and measure how far "
    "you can trust their confidence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo,
    experiments,
    settings,
    data,
    views,
    train,
    evaluate,
    recalibrate,
    threshold,
    predict,
    export,
    serve,
    compare,
    report,
    corrupt,
    reproduce,
    sweep,
):
    app.command(cls=Command)(command)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run a command. A wrong input, or a file that cannot be read or written, ends it with a message and status 2."""
    try:
        _run()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # for which Typer and Rich have status 1
            write_nowhere(sys.stderr)
            sys.exit(UNREAD)
        raise


def _run() -> None:
    # Threads of torch wait for each other in busy loops. If other programs run too, these loops take the processor from
    # the threads that they wait for. The variable is read when a command imports torch.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _replace_what_cannot_be_shown()
    world = ALONE
    try:
        world = this_world()
        console.quiet = not world.is_first
        with exit_when_terminated():
            _refuse_empty(sys.argv[1:])
            status = app(prog_name="counterpoint", standalone_mode=world.is_first)  # which prints, and ends the process
        sys.exit(status or 0)
    except Exception as error:
        message = _in_words(error)
        if message is None and not is_told_by_another(error, world):
            raise
        _fail(message or str(error), error, world)


def _replace_what_cannot_be_shown() -> None:
    """A terminal that has no “±”, or a file's name that is no text, must not end a command after its work."""
    out = sys.stdout
    if isinstance(out, TextIOWrapper) and (out.errors == "strict" or not out.encoding.lower().startswith("utf")):
        out.reconfigure(errors="replace")


def _refuse_empty(arguments: Sequence[str]) -> None:
    """An empty path would silently be the current folder, and nothing else but --sets has a meaning when empty."""
    for before, argument in zip(["counterpoint", *arguments], arguments, strict=False):
        is_empty = argument == "" or (argument.startswith("--") and argument.find("=") == len(argument) - 1)
        if is_empty and (after := argument or before).removesuffix("=") != "--sets":
            raise InputError(
                f"the argument after {after} is empty, as a shell gives for a variable that is not set; give a value, "
                "or leave the option out"
            )


def _in_words(error: Exception) -> str | None:
    """What is wrong and what to do, in words; None for an error that the user did not cause."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, RuntimeError | MemoryError) and is_out_of_memory(error):
        what = str(error).splitlines()[0] if str(error) else "of this machine"
        return (
            f"there is not enough memory ({what}); close other programs, or use a machine or a "
            "--device with more memory"
        )
    if isinstance(error, FileExistsError):
        return f"{error.filename} is a file, but a folder is needed there; give another path"
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return "the disk is full; free some space, then give the same command again"
        if not (error.filename and error.strerror):
            return str(error)
        path = error.filename2 or error.filename  # of two, the second is the one that was to be written
        return f"{path} cannot be read or written ({error.strerror}); check the path and its permissions"
    return None


def _fail(message: str, error: Exception, world: World) -> None:
    if is_told_by_another(error, world):
        time.sleep(LET_THE_FIRST_SPEAK)
    else:
        Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(counterpoint.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version  # its callback did the work
    command = context.invoked_subcommand
    if command not in _FOR_SEVERAL and not this_world().is_alone:
        raise InputError(f"`counterpoint {command}` runs in one process; start it without torchrun")
