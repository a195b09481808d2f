"""Confidence corrected afterwards: temperatures that are fitted on held-out images, and how to choose among them."""
