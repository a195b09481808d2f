"""Ensembles whose members each see a differently augmented version of the data."""

__version__ = "0.1.0"
