"""What the command line shows: progress bars, notes, tables."""
