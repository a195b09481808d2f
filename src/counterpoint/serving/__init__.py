"""Predictions of a finished run for new images."""
