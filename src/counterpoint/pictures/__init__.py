"""Pictures for eyes to check: what the members see, and what the corruptions do."""
