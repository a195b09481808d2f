"""torchvision beside a torch that its compiled extension does not fit, for tests of models that are not ours.

torchvision's models are plain PyTorch. Only its operators for detection are compiled, and its Python files register
fakes for them. So it imports once they are declared.
"""

from functools import cache
from importlib.util import find_spec

import pytest
import torch

_OPERATORS = """nms qnms roi_align qroi_align _roi_align_backward ps_roi_align _ps_roi_align_backward roi_pool
_roi_pool_backward ps_roi_pool _ps_roi_pool_backward deform_conv2d _deform_conv2d_backward""".split()


@cache
def declare_torchvision_operators() -> torch.library.Library | None:
    """Let torchvision be imported. The declarations last as long as what is returned, which is kept."""
    if find_spec("torchvision") is None:
        return None
    try:
        import torchvision  # noqa: F401
    except (ImportError, RuntimeError):
        operators = torch.library.Library("torchvision", "DEF")
        for name in _OPERATORS:
            operators.define(f"{name}(Tensor given) -> Tensor")
        return operators
    return None


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip where one of the packages is not installed."""
    missing = [package for package in packages if find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")
