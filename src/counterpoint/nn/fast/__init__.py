"""The fast network for NVIDIA GPUs: the same function as the reference network, in fewer passes over memory.

It needs Triton. Import it only where there is a GPU or Triton's interpreter.
"""

from counterpoint.nn.fast.network import fast_forward

__all__ = ["fast_forward"]
