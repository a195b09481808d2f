"""`counterpoint predict`."""

import io
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.arguments.options import DeviceOption, RunArgument, RunsModelOption, find_modules_here
from counterpoint.cli.terminal.progress import TerminalWatcher, console
from counterpoint.errors import InputError, one_of

if TYPE_CHECKING:
    from rich.table import Table

    from counterpoint.serving.predict import Prediction, Unread

_FORMATS = ("table", "jsonl", "csv")
_MANY = 64
"""More pictures than this take a while."""
_WIDE = 10_000
"""Columns, more than any table has."""


def predict(
    run: RunArgument,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Picture files or folders of them. - reads a list of paths from standard input.", show_default=False
        ),
    ],
    format_: Annotated[
        str, typer.Option("--format", help="Output format: table, jsonl (one JSON object per line) or csv.")
    ] = "table",
    not_sure_below: Annotated[
        str | None,
        typer.Option(
            metavar="CONFIDENCE",
            help=(
                "Mark predictions below this confidence as not sure, and the others as sure: 0.9, 90%, "
                "or the word threshold, which takes what `counterpoint threshold` found."
            ),
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=2, metavar="N", help="Also show the N likeliest classes with their probabilities.", show_default=False
        ),
    ] = None,
    model: RunsModelOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Predict the class of pictures, with a confidence and with what each member says.

    If the run was recalibrated, the confidence is corrected with the recalibration that was best on validation images.

    A picture is resized until its shorter side has the size of the run's images. Its middle square is then used.

    A file that cannot be read as a picture gets a line with the reason. The command then ends with status 1.
    """
    from rich.measure import Measurement

    from counterpoint.report.recalibrations.words import named
    from counterpoint.runs.folder import load_run
    from counterpoint.serving.formats import csv_lines, json_lines
    from counterpoint.serving.predict import Unread, find_files, load_predictor

    one_of("--format", format_, _FORMATS)
    find_modules_here(model)
    members = load_run(run).experiment.members
    files = find_files(_named(paths))
    first = next(files, None)
    if first is None:
        raise InputError(
            f"{', '.join(paths)}: there are no files to predict; name picture files, or folders that have some"
        )
    predictor = load_predictor(run, not_sure_below=not_sure_below, top=top or 0, device=device, trusted_model=model)
    correction = predictor.correction
    for note in correction.notes:  # not among the predictions, which programs read
        typer.echo(f"warning: {note}", err=True)
    unread: list[Unread] = []

    def answers(paths: Iterable[Path]) -> Iterator["Prediction | Unread"]:
        for answer in predictor.predict(paths):
            if isinstance(answer, Unread):
                unread.append(answer)
            yield answer

    if format_ == "table":
        all_files = [first, *files]
        with TerminalWatcher() as watcher:
            counted = _counted(answers(all_files), len(all_files), watcher)
            table = _table(counted, sure=correction.sure_from is not None, top=predictor.top)
        if not console.is_terminal:  # a file or a pipe gets one line for each picture
            table.width = Measurement.get(console, console.options.update(max_width=_WIDE), table).maximum
        console.print(table, crop=False)
        console.print(f"recalibration: {named(correction.name, members > 1)}", highlight=False)
    else:
        as_csv = partial(csv_lines, members=members, top=predictor.top)
        lines = (as_csv if format_ == "csv" else json_lines)(answers(itertools.chain([first], files)), correction.name)
        _write_utf8()
        for line in lines:
            print(line, flush=True)  # as soon as it is known; no terminal may wrap it
    if unread:
        raise typer.Exit(1)


def _write_utf8() -> None:
    """Programs read these lines, so they are UTF-8 everywhere. Bytes that are no text are escaped as in JSON."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def _named(paths: list[str]) -> Iterator[Path]:
    for path in paths:
        if path == "-":
            if sys.stdin is None:  # a caller may have closed it
                raise InputError("- reads paths from standard input, which is closed; name the picture files instead")
            yield from (Path(line.rstrip("\n")) for line in sys.stdin if line.strip())
        else:
            yield Path(path)


def _counted(
    answers: Iterable["Prediction | Unread"], total: int, watcher: TerminalWatcher
) -> Iterator["Prediction | Unread"]:
    """The answers, with a bar for a person who waits for a long table: it can be drawn only after the last of them."""
    for done, answer in enumerate(answers, start=1):
        if total > _MANY and console.is_terminal:
            watcher.counted("predicting", done, total)
        yield answer


def _table(answers: Iterable["Prediction | Unread"], *, sure: bool, top: int) -> "Table":
    from rich.table import Table

    from counterpoint.serving.predict import Unread

    table = Table(box=None, pad_edge=False)
    optional = [*(["sure"] if sure else []), *(["next"] if top else [])]
    for column in ("picture", "class", "confidence", "members", *optional):
        table.add_column(column, justify="right" if column == "confidence" else "left", overflow="fold")
    for answer in answers:
        if isinstance(answer, Unread):
            table.add_row(answer.path, "–", "–", answer.error)
        else:
            row = [answer.path, answer.ensemble.name, f"{answer.ensemble.confidence:.1%}", members_in_words(answer)]
            row += ["yes" if answer.sure else "not sure"] if sure else []
            row += [", ".join(f"{one.name} {one.confidence:.1%}" for one in answer.top[1:])] if top else []
            table.add_row(*row)
    return table


def members_in_words(answer: "Prediction") -> str:
    if len(answer.members) == 1:
        return "one network"
    if answer.agree:
        return "both agree" if len(answer.members) == 2 else f"all {len(answer.members)} agree"
    votes = Counter(member.name for member in answer.members)
    return ", ".join(f"{count} {'says' if count == 1 else 'say'} {name}" for name, count in votes.most_common())
