"""Graphs as files of torch.export."""

import io
import json
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch.export import ExportedProgram

FACTS = "counterpoint.json"
"""The name under which the file holds the facts."""


def to_pt2(program: ExportedProgram, facts: Mapping[str, str]) -> bytes:
    """The content of a .pt2 file that holds the graph, its weights and the facts, and nothing that needs unpickling."""
    content = io.BytesIO()
    program.example_inputs = None  # they would be pickled
    torch.export.save(program, content, extra_files={FACTS: json.dumps(dict(facts))})
    return content.getvalue()


def read_pt2(content: bytes) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The file as a function of uint8 images (N, H, W, C)."""
    network = torch.export.load(io.BytesIO(content)).module()

    @torch.no_grad()
    def run(images_NHWC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probs_NK, members_MNK = network(torch.from_numpy(images_NHWC))
        return probs_NK.numpy(), members_MNK.numpy()

    return run
