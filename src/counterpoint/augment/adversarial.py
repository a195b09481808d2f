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
    """Move each view along the sign of the loss's gradient, by its own amount.

    `views_MBCHW` is a float tensor of normalised views, and `amount_MB` has one number per member and image.
    `loss_of_views` takes such views and returns the training loss, a tensor with one value. Every view takes part in
    the loss. Views whose amount is 0 come back as they were (docs/paper.md, 9). The result has the shape of the views.
    Of `settings`, only `space` and `clip` count here: severity and chance are in the amounts already.

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
    if not isinstance(settings, Adversarial):
        raise InputError(f"settings are {shown(settings)}; they must be a value such as Adversarial()")
    if views_MBCHW.dim() != 5 or not views_MBCHW.is_floating_point():
        raise InputError(
            f"views are {views_MBCHW.dtype} of shape {tuple(views_MBCHW.shape)}; they must be normalised images, "
            "a float tensor (members, images, channels, rows, columns)"
        )
    if amount_MB.shape != views_MBCHW.shape[:2]:
        raise InputError(
            f"amount has the shape {tuple(amount_MB.shape)}, and the views have "
            f"{tuple(views_MBCHW.shape)}; amount must be (members, images), one number for each view"
        )
    views = views_MBCHW.detach().requires_grad_()
    with torch.enable_grad():
        loss = loss_of_views(views)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            found = tuple(loss.shape) if isinstance(loss, Tensor) else shown(loss)
            raise InputError(f"the loss is {found}; it must be a tensor with one value, such as a mean over the views")
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
