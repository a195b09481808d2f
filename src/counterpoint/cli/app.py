"""The program: its commands, and how it ends when an input is wrong."""

import errno
import sys
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
from counterpoint.cli.terminal.help import Command, Group
from counterpoint.cli.terminal.progress import console
from counterpoint.cli.terminal.signals import exit_when_terminated
from counterpoint.cli.threshold import threshold
from counterpoint.cli.train import train
from counterpoint.cli.views import views
from counterpoint.errors import InputError, is_out_of_memory

app = typer.Typer(
    name="counterpoint",
    cls=Group,
    help="Train ensembles whose members each see a differently augmented version of the data, and see how far their "
    "confidence can be trusted.",
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
):
    app.command(cls=Command)(command)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run a command. A wrong input, or a file that cannot be read or written, ends it with a message and status 2."""
    try:
        with exit_when_terminated():
            app(prog_name="counterpoint")
    except InputError as error:
        _fail(str(error))
    except FileExistsError as error:
        _fail(f"{error.filename} is a file, and a folder is needed there; give another path")
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        _fail(
            f"there is not enough memory ({str(error).splitlines()[0] if str(error) else 'of this machine'}); end "
            "what else uses it, or try a machine or a --device with more"
        )
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _fail("the disk is full; make room, and give the same command again")
        _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))


def _fail(message: str) -> None:
    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(counterpoint.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version  # its callback did the work
