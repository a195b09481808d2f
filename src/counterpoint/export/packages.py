"""Packages that only some of the formats need: those of the extra `export`."""

from importlib import import_module
from typing import Any

from counterpoint.errors import InputError


def needed(package: str) -> Any:
    """The package, imported. The error for one that is missing names the extra."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise InputError(
            f"an ONNX file needs {error.name}, which is not installed; pip install 'counterpoint[export]', or write a "
            "file that ends in .pt2"
        ) from None
