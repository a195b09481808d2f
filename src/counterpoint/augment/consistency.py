"""AugMix's consistency loss (Hendrycks et al. 2020, eq. 1 and 2): the predictions for the views of an image should be
the same.
"""

import math

import torch
from torch import Tensor


def jensen_shannon(logits_VNK: Tensor) -> Tensor:
    """The Jensen–Shannon divergence, in nats, of the predictions for V views of each image.

    It is the mean over the views of KL(view ‖ mean of the views), averaged over the images.
    """
    log_probs_VNK = logits_VNK.log_softmax(dim=-1)
    log_mean_NK = torch.logsumexp(log_probs_VNK, dim=0) - math.log(len(logits_VNK))
    return (log_probs_VNK.exp() * (log_probs_VNK - log_mean_NK)).sum(dim=-1).mean()
