"""The paper's rows run, kept as small results, and shown beside the paper's."""
