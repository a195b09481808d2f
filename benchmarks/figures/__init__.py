"""The pictures of README and docs, each made from a run, a result or a seeded draw."""
