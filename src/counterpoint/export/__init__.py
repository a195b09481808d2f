"""Write a finished run as one checked file that works without counterpoint, from pixels to probabilities, with a model
card.
"""

from counterpoint.export.run import Written, export_run

__all__ = ["Written", "export_run"]
