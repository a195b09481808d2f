"""One self-contained page from the results.json of one or more runs. Reads JSON only: nothing here imports torch."""

from counterpoint.report.html import render, write_report
from counterpoint.report.results import load_results

__all__ = ["load_results", "render", "write_report"]
