"""Files that are either complete or absent, folders, locks, and where a result comes from."""
