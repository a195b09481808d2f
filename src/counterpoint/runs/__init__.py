"""Runs on disk: the folder (which needs no torch), its checkpoints, and the transfer to another machine."""
