"""The fast path on NVIDIA GPUs: the same function as the reference network, in fewer passes over memory.

Needs Triton, so import it only where a GPU (or Triton's interpreter) is.
"""

from counterpoint.nn.fast.network import fast_forward

__all__ = ["fast_forward"]
