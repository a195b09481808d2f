"""Files that are whole or absent, folders, locks, and where a result comes from."""
