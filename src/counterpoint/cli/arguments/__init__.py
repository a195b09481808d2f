"""Arguments and options that several commands share, and what they choose."""
