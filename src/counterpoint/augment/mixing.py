"""How much of the augmented image goes into the view: x_out = (1 − m)·x + m·x_aug, with m drawn for each image."""

from typing import get_args

import torch
from scipy.special import betaincinv
from torch import Tensor

from counterpoint.errors import InputError, one_of
from counterpoint.policy import Mixing
from counterpoint.seeding import Stream


def mixing_weights(kind: str, indices_N: Tensor, stream: Stream, *, p: float = 0.875, beta: float = 1.0) -> Tensor:
    """Draw the weight m of the augmented image for each image, as a float32 tensor (N,).

    `indices_N` (N,) are the images' numbers in the data set. With "bernoulli", m is 1 with probability `p` and
    otherwise 0, so `p` is the share of images that are augmented. With "beta", m is drawn from Beta(beta, beta).

    >>> import torch
    >>> from counterpoint.augment import mixing_weights
    >>> from counterpoint.seeding import Stream
    >>> m = mixing_weights("bernoulli", torch.arange(1000), Stream(0, "mixing"), p=0.875)
    >>> 0.85 < m.mean().item() < 0.9
    True
    """
    one_of("mixing", kind, get_args(Mixing))
    if not 0 <= p <= 1:
        raise InputError(f"p is {p}; the probability that an image is augmented must be between 0 and 1")
    if not beta > 0:
        raise InputError(f"beta is {beta}; it must be more than 0 (1 is the uniform distribution)")
    uniform_N = stream.uniform(indices_N, 1)[:, 0]
    if kind == "bernoulli":
        return (uniform_N < p).float()
    return _beta_quantile(uniform_N, beta).float()


def _beta_quantile(uniform_N: Tensor, beta: float) -> Tensor:
    if beta == 1:
        return uniform_N
    return torch.from_numpy(betaincinv(beta, beta, uniform_N.cpu().numpy())).to(uniform_N.device)
