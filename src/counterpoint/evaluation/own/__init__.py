"""Images of the user's own beside those of a run: shifted ones, and outside ones."""
