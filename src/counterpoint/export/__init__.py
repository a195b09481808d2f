"""A finished run as one file that needs no counterpoint: pixels in, probabilities out, checked, with a model card."""
