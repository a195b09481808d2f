"""The report in each format, and the file that it is written to."""

from collections.abc import Callable, Sequence
from pathlib import Path

from counterpoint.errors import InputError, one_of
from counterpoint.records.files import Evaluated, check_no_record
from counterpoint.report.formats.csv_json import to_csv, to_json
from counterpoint.report.formats.html import render
from counterpoint.report.formats.markdown import to_markdown
from counterpoint.report.formats.svg import to_svg
from counterpoint.report.loading import load_runs
from counterpoint.runs.imported import AnyRun
from counterpoint.storage.files import check_file_path, write_atomically

FORMATS: dict[str, Callable[[Sequence[Evaluated]], str]] = {
    "html": render,
    "csv": to_csv,
    "md": to_markdown,
    "json": to_json,
    "svg": to_svg,
}


def write_report(runs: Sequence[AnyRun | Path | str], out: Path | str, format: str | None = None) -> list[str]:
    """Writes the report of `runs` (runs, their folders or results.json files) to `out`, whole or not at all.

    Without `format` it is the one that the ending of `out` names, or else "html". "svg" is the reliability diagram
    alone. Returns a note for whatever was left out.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits, write_report
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> write_report(["runs/theirs"], "figures.csv")
    []
    """
    out = Path(out)
    if format is None:
        format = ending if (ending := out.suffix[1:].lower()) in FORMATS else "html"
    to_text = FORMATS[one_of("report format", format, FORMATS)]
    check_file_path(out, f"report.{format}")
    check_no_record(out)
    if (ending := out.suffix[1:].lower()) != format and ending in FORMATS:
        raise InputError(
            f"a {format} report cannot be written as {str(out)!r}; give it a name that ends in .{format}, or "
            f"choose the format {ending}"
        )
    evaluated = load_runs(runs)
    write_atomically(out, to_text(evaluated).encode())
    return [note for run in evaluated for note in run.notes]
