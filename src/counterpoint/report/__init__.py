"""One self-contained page, or a file of figures, from the records of one or more evaluated runs.

Reads JSON only: nothing here imports torch or numpy.
"""

from counterpoint.report.formats import FORMATS, write_report
from counterpoint.report.formats.csv_json import to_csv, to_json
from counterpoint.report.formats.html import render
from counterpoint.report.formats.markdown import to_markdown
from counterpoint.report.formats.svg import to_svg
from counterpoint.report.loading import load_runs
from counterpoint.report.sections.verdict import verdict

__all__ = ["FORMATS", "load_runs", "render", "to_csv", "to_json", "to_markdown", "to_svg", "verdict", "write_report"]
