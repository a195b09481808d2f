"""A finished run as a local page and a JSON endpoint."""
