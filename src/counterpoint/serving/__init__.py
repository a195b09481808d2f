"""A finished run at work: what it says of new images."""
