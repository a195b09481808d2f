"""Many runs, each a job of its own: here one after another, or on a cluster."""
