"""torchvision beside a torch that its compiled operators were not built for, such as a CPU build of torch."""

import importlib.util
from pathlib import Path

import torch

OPERATORS = ("nms", "qnms")
_kept: list[torch.library.Library] = []  # a declaration ends with its library


def declare_operators() -> None:
    """Make torchvision importable, if it is installed and its compiled extension does not load.

    Its import then ends in "operator torchvision::nms does not exist": it describes the shapes of two operators that it
    takes for granted. Declared first, they exist without an implementation. Every model works that does not call them,
    which are all but the detectors.
    """
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or _kept:
        return
    try:
        torch.ops.load_library(Path(found.origin).parent / "_C.so")
    except OSError:
        _kept.append(torch.library.Library("torchvision", "DEF"))
        for name in OPERATORS:
            _kept[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
