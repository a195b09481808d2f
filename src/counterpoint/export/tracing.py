"""A network as a graph of torch's operations, for batches of any size."""

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule

from counterpoint.errors import InputError
from counterpoint.export.network import WholeNetwork
from counterpoint.models.wanted import one_line


def trace(network: WholeNetwork, images_NHWC: Tensor, called: str) -> ExportedProgram:
    """The network's graph, found by running it on these images, of which there must be two or more.

    `called` is what an error calls the network. The graph does not say in which files the code lies.
    """
    try:
        program = torch.export.export(network, (images_NHWC,), dynamic_shapes=({0: Dim("N")},))
    except Exception as error:  # a stranger's network can raise anything
        raise InputError(
            f"{called} cannot be exported: torch.export finds no graph of it for batches of any size "
            f"({one_line(error)}); what it computes must not depend on pixels, nor on how many images there are"
        ) from error
    _forget_origin(program)
    return program


def _forget_origin(program: ExportedProgram) -> None:
    """Drop the lines of code that each operation comes from: they name folders of this machine."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)
