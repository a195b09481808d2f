"""What a network that is not counterpoint's own must show before it is trained."""

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.models.wanted import Wanted, one_line
from counterpoint.nn.conversion.check import are_probabilities


def check_network(network: nn.Module, wanted: Wanted, advice: str) -> None:
    """Raise unless the network takes the images and returns a logit for each class, in evaluation and in training.

    `advice` says what to set where it does not take them. Training is tried on a copy, whose buffers it may change.
    """
    for module in (network.eval(), copy.deepcopy(network).train()):
        try:
            with torch.no_grad():
                logits_BK = module(torch.zeros(2, wanted.in_channels, *wanted.size))
        except Exception as error:  # anybody's code
            raise InputError(
                f"{wanted.name} does not take images with {wanted.images} ({one_line(error)}); {advice}"
            ) from error
        if not isinstance(logits_BK, Tensor) or logits_BK.shape != (2, wanted.num_classes):
            found = tuple(logits_BK.shape) if isinstance(logits_BK, Tensor) else type(logits_BK).__name__
            raise InputError(
                f"{wanted.name} returns {found} for 2 images in {'training' if module.training else 'evaluation'}; it "
                f"must return logits of the shape (2, {wanted.num_classes}), one for each class"
            )
        if are_probabilities(logits_BK):
            raise InputError(
                f"{wanted.name} returns probabilities: both rows are 0 or more and sum to 1. It must return logits, to "
                "which softmax is applied later: leave out the softmax at the end of the network"
            )
    network.train()


def check_only_head_differs(
    wanted: Wanted, differing: Iterable[tuple[str, torch.Size, torch.Size]], published_classes: int
) -> None:
    """Raise if weights other than those of the classes have another shape than the published ones.

    Leaving them out would silently start from a network that is only half pretrained.
    """
    for name, theirs, ours in sorted(differing):
        expected = [wanted.num_classes if size == published_classes else size for size in theirs]
        if list(ours) != expected:
            raise InputError(
                f"the published weights do not fit {wanted.name} as it is asked for: {name} is {tuple(theirs)} there "
                f"and {tuple(ours)} here, for images with {wanted.images}; leave the model_options out, or pretrained"
            )
