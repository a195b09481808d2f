"""`counterpoint report`."""

from pathlib import Path
from typing import Annotated

import typer

from counterpoint.cli.arguments.options import RunsArgument
from counterpoint.cli.terminal.progress import console, say
from counterpoint.errors import InputError


def report(
    runs: RunsArgument,
    out: Annotated[Path | None, typer.Option(help="File to write.", show_default="report.FORMAT")] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Format of the file: html, csv, md, json, or svg for the reliability diagram alone.",
            show_default="by the ending of --out, or html",
        ),
    ] = None,
) -> None:
    """Write a report of evaluated runs as a single HTML file that works offline, or as csv, md, json or svg.

    A file that ends in .svg gets the reliability diagram alone, for slides and papers.
    """
    from counterpoint.report import load_runs, verdict, write_report

    kind = format_ or _format_of(out)
    path = out or Path(f"report.{kind}")
    notes = write_report(runs, path, kind)
    for sentence in (*notes, *verdict(load_runs(runs))):
        say(sentence)
    console.print(f"report: {path}", soft_wrap=True)


def _format_of(out: Path | None) -> str:
    """The format that a report's name asks for."""
    from counterpoint.report import FORMATS

    if out is None or out.is_dir():
        return "html"
    if (ending := out.suffix[1:].lower()) not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(f"{str(out)!r} does not end in {endings}; change the name, or add --format")
    return ending
