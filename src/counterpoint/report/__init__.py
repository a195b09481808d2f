"""One self-contained page, or a file of figures, from the results.json of one or more runs.

Reads JSON only: nothing here imports torch or numpy.
"""

from counterpoint.report.formats.export import to_csv, to_json
from counterpoint.report.formats.files import FORMATS, write_report
from counterpoint.report.formats.html import render
from counterpoint.report.formats.markdown import to_markdown
from counterpoint.report.results import load_results

__all__ = ["FORMATS", "load_results", "render", "to_csv", "to_json", "to_markdown", "write_report"]
