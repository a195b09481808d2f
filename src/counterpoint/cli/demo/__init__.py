"""The demo and its command."""
