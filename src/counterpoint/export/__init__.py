"""A finished run as one file that needs no counterpoint: pixels in, probabilities out, checked, with a model card."""

from counterpoint.export.run import Written, export_run

__all__ = ["Written", "export_run"]
