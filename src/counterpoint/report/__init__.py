"""One self-contained page, or a file of figures, from the results.json of one or more runs.

Reads JSON only: nothing here imports torch or numpy.
"""

from counterpoint.report.export import to_csv, to_json
from counterpoint.report.html import FORMATS, render, write_report
from counterpoint.report.markdown import to_markdown
from counterpoint.report.results import load_results

__all__ = ["FORMATS", "load_results", "render", "to_csv", "to_json", "to_markdown", "write_report"]
