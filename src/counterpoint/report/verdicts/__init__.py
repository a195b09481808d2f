"""The verdict: a few sentences that say what the figures and their intervals show."""
