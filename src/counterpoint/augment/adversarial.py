"""The adversarial perturbation of the paper's eq. 1: x + (m/E[m])·u·s·sign(∇ₓL(x, y))."""

from collections.abc import Callable

import torch
from torch import Tensor

from counterpoint.errors import InputError, shown
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.policy import Adversarial
from counterpoint.seeding import Stream


def sample_amounts(indices_B: Tensor, severity_MB: Tensor, p: float, streams: list[Stream]) -> Tensor:
    """(m/E[m])·u·s for each member's view of each image, with u ~ U(0, 1) and m ~ Bernoulli(p)."""
    uniform_MB2 = torch.stack([stream.uniform(indices_B, 2) for stream in streams])
    applied_MB = uniform_MB2[..., 1] < p
    return (applied_MB / p * uniform_MB2[..., 0] * severity_MB).float()


def perturb(
    loss_of_views: Callable[[Tensor], Tensor],
    views_MBCHW: Tensor,
    amount_MB: Tensor,
    settings: Adversarial,
    normalisation: Normalisation = NORMALISATION,
) -> Tensor:
    """The views moved by their amount along the sign of the loss's gradient.

    `loss_of_views` is the training loss as a function of the normalised views. Every view takes part in it, also those
    whose amount is 0, which come back as they were (docs/paper.md, 9). `amount_MB` has one number per member and image.

    >>> import torch
    >>> from counterpoint import Adversarial, perturb
    >>> views = torch.zeros(4, 2, 3, 8, 8)
    >>> amount = torch.tensor([0.0, 0.05, 0.1, 0.15])[:, None].expand(4, 2)
    >>> moved = perturb(lambda views: views.sum(), views, amount, Adversarial())
    >>> [round(member.max().item(), 2) for member in moved]
    [0.0, 0.05, 0.1, 0.15]
    """
    for name, tensor in (("views", views_MBCHW), ("amount", amount_MB)):
        if not isinstance(tensor, Tensor):
            raise InputError(f"{name} is {shown(tensor)}; it must be a tensor")
    if amount_MB.shape != views_MBCHW.shape[:2]:
        raise InputError(
            f"amount has the shape {tuple(amount_MB.shape)}, and views have {tuple(views_MBCHW.shape)}; each member's "
            "view of each image needs one"
        )
    views = views_MBCHW.detach().requires_grad_()
    with torch.enable_grad():
        loss = loss_of_views(views)
        if not loss.requires_grad:
            raise InputError(
                "the loss does not depend on the views; compute it from the views that the function is given"
            )
        (gradient,) = torch.autograd.grad(loss, views)
    amount_MB111 = amount_MB[..., None, None, None]
    if settings.space == "pixel":  # a change of a pixel in [0, 1] is larger in what networks see
        amount_MB111 = normalisation.scale(amount_MB111)
    moved = views_MBCHW + amount_MB111.to(views_MBCHW.dtype) * gradient.sign()
    return normalisation.clip(moved) if settings.clip else moved
