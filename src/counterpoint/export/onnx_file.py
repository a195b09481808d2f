"""Write graphs as ONNX files, and run these with ONNX Runtime."""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram

from counterpoint.errors import InputError
from counterpoint.models.wanted import one_line

IMAGES, PROBS, MEMBERS = "images", "probabilities", "members"
"""What the input and the outputs are called."""

_OPSET = 20
_MOST_BYTES = 2**31 - 2**24  # protobuf's limit, less some room for the graph itself
_FORGOTTEN = ("metadata_props", "doc_string", "value_info")


def to_onnx(program: ExportedProgram, facts: Mapping[str, str]) -> bytes:
    """The content of an ONNX file that holds the graph, its weights and, as metadata, the facts."""
    onnx = needed("onnx")
    needed("onnxscript")  # torch's exporter asks for it
    _check_size(program)
    model = _convert(program)
    _forget(model)
    for value in (*model.graph.input, *model.graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param:
                dimension.dim_param = "N"
    onnx.helper.set_model_props(model, dict(facts))
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def read_onnx(content: bytes) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The file as a function of uint8 images (N, H, W, C), computed by ONNX Runtime as users will have it."""
    session = needed("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])

    def run(images_NHWC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probs_NK, members_MNK = session.run([PROBS, MEMBERS], {IMAGES: images_NHWC})
        return probs_NK, members_MNK

    return run


def needed(package: str) -> Any:
    """A package of the extra `export`, imported. The error for one that is missing names the extra."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(
            f"an ONNX file needs {error.name}, which is not installed; pip install 'counterpoint[export]', or write a "
            "file that ends in .pt2"
        ) from None


def _convert(program: ExportedProgram) -> Any:
    """The graph as ONNX's protobuf message."""
    try:
        with _quiet():
            exported = torch.onnx.export(
                program,
                dynamo=True,
                input_names=[IMAGES],
                output_names=[PROBS, MEMBERS],
                opset_version=_OPSET,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise InputError(
            f"this network has operations that ONNX does not have ({one_line(error)}); write a file that ends in .pt2"
        ) from error
    assert exported is not None
    return exported.model_proto


def _check_size(program: ExportedProgram) -> None:
    size = sum(tensor.numel() * tensor.element_size() for tensor in program.state_dict.values())
    if size > _MOST_BYTES:
        raise InputError(
            f"the members' weights are {size / 1e9:.1f} GB, and one ONNX file holds at most {_MOST_BYTES / 1e9:.1f} "
            "GB; write a file that ends in .pt2"
        )


def _forget(message: Any) -> None:
    """Drop what the exporter says about the code, everywhere in the message: it names folders of this machine.

    Shapes of intermediate values are dropped too: they have symbolic sizes, and a reader can infer them.
    """
    for field, value in message.ListFields():
        if field.name in _FORGOTTEN:
            message.ClearField(field.name)
        elif field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                _forget(part)


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside, the exporter is silent about libraries that are not there and about its own old calls."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
