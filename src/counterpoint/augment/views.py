"""What each member sees: flip and crop, then AugMix, sampled from streams keyed by image, epoch and member.

Everything random about a step is drawn here, before the step, and for any number of steps at once. On a GPU, Python
queues the next views while the GPU is still busy with steps. Only Beta mixing makes it wait.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from counterpoint.augment.adversarial import sample_amounts
from counterpoint.augment.augmix import apply_augmix
from counterpoint.augment.augmix_plan import concatenate, draw_augmix
from counterpoint.augment.resized_crop import resize_boxes, sample_box
from counterpoint.augment.standard import apply_crop, sample_crop, to_unit
from counterpoint.errors import InputError, shown, whole_number
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.seeding import Stream


@dataclass(frozen=True)
class Views:
    """The normalised views of a batch, and what was drawn for its step; None where the policy does not need it."""

    views_MBCHW: Tensor
    amount_MB: Tensor | None  # of the adversarial perturbation
    keep_LMB: Tensor | None  # what each of L residual branches is multiplied by
    companions_2MBCHW: Tensor | None = None  # for AugMix's consistency loss: the clean view and a second AugMix view
    normalisation: Normalisation = NORMALISATION  # what the views were normalised with

    @property
    def keep(self) -> Tensor | None:
        """The mask in the folded form that networks take, (L, M·B)."""
        return None if self.keep_LMB is None else self.keep_LMB.flatten(1)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors that are not None, in the order of the fields."""
        return list(self._present().values())

    def map(self, change: Callable[[Tensor], Tensor]) -> "Views":
        """The views with every tensor changed."""
        changed: dict[str, Any] = {name: change(tensor) for name, tensor in self._present().items()}
        return replace(self, **changed)

    def select(self, images: slice) -> "Views":
        """The views of some of the images."""
        return self._select("B", images)

    def of_member(self, index: int) -> "Views":
        """One member's views."""
        return self._select("M", slice(index, index + 1))

    def _select(self, axis: str, part: slice) -> "Views":
        selected: dict[str, Any] = {n: tensor[(*_before(axis, n), part)] for n, tensor in self._present().items()}
        return replace(self, **selected)

    def _present(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _before(axis: str, name: str) -> tuple[slice, ...]:
    """All of each axis before `axis`, by the shape at the end of a field's name."""
    return (slice(None),) * name.rpartition("_")[2].index(axis)


def sample_views(
    images_BCHW: Tensor,
    policy: MemberPolicy,
    *,
    num_members: int,
    indices_B: Tensor,
    steps_B: Tensor,
    seed: int,
    epoch: int,
    num_blocks: int = 0,
    normalisation: Normalisation = NORMALISATION,
    dtype: torch.dtype = torch.float32,
) -> Views:
    """Draw and make the views of the images with the numbers `indices_B` in the data set, for the steps `steps_B`."""

    def streams(purpose: str) -> list[Stream]:
        return [Stream(seed, purpose, epoch, member) for member in range(num_members)]

    def severity(values: Sequence[float], assignment: str, purpose: str) -> Tensor:
        return assign(values, assignment, num_members, steps_B, Stream(seed, f"shuffle {purpose}"))

    cropped_MBCHW = _crop(images_BCHW, policy, indices_B, streams("crop"))
    if augmix := policy.augmix:
        severity_MB = severity(augmix.severity, augmix.assignment, "augmix")
        unit_MBCHW = _augmix(cropped_MBCHW, augmix, indices_B, severity_MB, streams("augmix")).to(dtype)
    else:
        unit_MBCHW = to_unit(cropped_MBCHW, dtype)
    amount_MB = keep_LMB = companions_2MBCHW = None
    if augmix and augmix.jsd:
        second_MBCHW = _augmix(cropped_MBCHW, augmix, indices_B, severity_MB, streams("second augmix")).to(dtype)
        companions_2MBCHW = normalisation.apply(torch.stack([to_unit(cropped_MBCHW, dtype), second_MBCHW]))
    if adversarial := policy.adversarial:
        severity_MB = severity(adversarial.severity, adversarial.assignment, "adversarial")
        amount_MB = sample_amounts(indices_B, severity_MB, adversarial.p, streams("adversarial"))
    if depth := policy.stochastic_depth:
        rate_MB = severity(depth.drop_rate, depth.assignment, "stochastic depth")
        uniform_MBL = torch.stack([s.uniform(indices_B, num_blocks) for s in streams("stochastic depth")])
        keep_LMB = branch_factors(uniform_MBL.movedim(2, 0), rate_MB, rescale=depth.rescale)
    return Views(normalisation.apply(unit_MBCHW), amount_MB, keep_LMB, companions_2MBCHW, normalisation)


def make_views(
    images_BCHW: Tensor,
    policy: MemberPolicy,
    *,
    num_members: int,
    indices_B: Tensor | None = None,
    seed: int = 0,
    epoch: int = 0,
    step: int = 0,
    normalisation: Normalisation = NORMALISATION,
) -> Tensor:
    """Make the views that each member sees, for your own training loop.

    `images_BCHW` is a uint8 tensor of B images with C = 1 or 3 channels. The result is a float32 tensor (M, B, C, H,
    W), normalised to [−1, 1] unless you give another `normalisation`. `indices_B` are the images' numbers in the data
    set (default: 0 … B − 1).

    An image's views depend only on (seed, epoch, its number, member); if severities are shuffled, they also depend on
    `step`. The adversarial perturbation needs a network, so it is not part of the views: see `perturb`. Stochastic
    depth and AugMix's consistency loss (`jsd`) are no part of them either.

    >>> import torch
    >>> from counterpoint import AugMix, MemberPolicy, make_views
    >>> images_u8 = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
    >>> make_views(images_u8, MemberPolicy(augmix=AugMix()), num_members=4).shape
    torch.Size([4, 8, 3, 32, 32])
    """
    _check_call(images_BCHW, policy, num_members, indices_B)
    if images_BCHW.dim() != 4 or images_BCHW.shape[1] not in (1, 3) or 0 in images_BCHW.shape[2:]:
        raise InputError(f"images have shape {tuple(images_BCHW.shape)}; they must be (B, C, H, W) with C 1 or 3")
    step = whole_number("step", step)
    if not isinstance(normalisation, Normalisation):
        raise InputError(f"normalisation is {shown(normalisation)}; it must be a Normalisation(mean, std)")
    normalisation.check_channels(images_BCHW.shape[1])
    if indices_B is None:
        indices_B = torch.arange(len(images_BCHW), device=images_BCHW.device)
    views = sample_views(
        images_BCHW,
        replace(policy, adversarial=None, stochastic_depth=None),
        num_members=num_members,
        indices_B=indices_B,
        steps_B=torch.full_like(indices_B, step, dtype=torch.int64),
        seed=seed,
        epoch=epoch,
        normalisation=normalisation,
    )
    return views.views_MBCHW


def _check_call(images_BCHW: Tensor, policy: MemberPolicy, num_members: int, indices_B: Tensor | None) -> None:
    """Raise InputError for arguments that torch would fail on with an unclear message, or silently broadcast."""
    if not isinstance(images_BCHW, Tensor):
        raise InputError(
            f"images are a {type(images_BCHW).__name__}; they must be a tensor (torch.from_numpy makes one)"
        )
    if not isinstance(policy, MemberPolicy):
        raise InputError(f"policy is {shown(policy)}; it must be a MemberPolicy")
    policy.check_members(whole_number("num_members", num_members, 1))
    if indices_B is not None and (not isinstance(indices_B, Tensor) or indices_B.shape != images_BCHW.shape[:1]):
        found = tuple(indices_B.shape) if isinstance(indices_B, Tensor) else shown(indices_B)
        raise InputError(
            f"indices_B are {found}; they must be a tensor with a number for each of {len(images_BCHW)} images"
        )


def assign(values: Sequence[float], assignment: str, num_members: int, steps_B: Tensor, stream: Stream) -> Tensor:
    """Each member's severity for each image, (M, B): `diverse`, `constant`, or `shuffled` anew at each step."""
    # Filled in one by one, because a copy from the CPU's memory would make the GPU finish its work first.
    vector = torch.cat([torch.full((1,), value, dtype=torch.float64, device=steps_B.device) for value in values])
    if assignment == "shuffled":
        return vector[stream.words(steps_B, num_members).argsort(dim=1, stable=True)].T
    return vector[:, None].expand(num_members, len(steps_B))


def branch_factors(uniform_LMB: Tensor, drop_rate_MB: Tensor, *, rescale: bool = True) -> Tensor:
    """What each of L residual branches is multiplied by for each view (L, M, B): 0 if dropped, 1/(1−rate) if kept.

    This is stochastic depth: an image skips a residual branch with its member's drop rate (docs/paper.md, 18). The
    factor 1/(1−rate) keeps the branch's expectation. Without `rescale` a kept branch is multiplied by 1.
    """
    kept_MB = 1 / (1 - drop_rate_MB) if rescale else torch.ones_like(drop_rate_MB)
    return torch.where(uniform_LMB < drop_rate_MB, 0.0, kept_MB).float()


def _augmix(
    cropped_MBCHW: Tensor, augmix: AugMix, indices_B: Tensor, severity_MB: Tensor, streams: list[Stream]
) -> Tensor:
    plans = [
        draw_augmix(indices_B, severity_B, stream, mixing=augmix.mixing, p=augmix.p, beta=augmix.beta)
        for severity_B, stream in zip(severity_MB, streams, strict=True)
    ]
    return apply_augmix(cropped_MBCHW.flatten(0, 1), concatenate(plans)).view(cropped_MBCHW.shape)


def _crop(images_BCHW: Tensor, policy: MemberPolicy, indices_B: Tensor, streams: list[Stream]) -> Tensor:
    """Flipped and cropped 8-bit views (M, B, C, H, W): one draw for all members, or one each."""
    drawn_from = streams if policy.crop_per_view else streams[:1]
    cropped = torch.stack([_crop_by(images_BCHW, policy, indices_B, stream) for stream in drawn_from])
    return cropped.expand(len(streams), *images_BCHW.shape)


def _crop_by(images_BCHW: Tensor, policy: MemberPolicy, indices_B: Tensor, stream: Stream) -> Tensor:
    if policy.crop_scale is None:
        return apply_crop(images_BCHW, sample_crop(indices_B, stream, flip=policy.flip, padding=policy.crop_padding))
    height, width = images_BCHW.shape[2:]
    plan = sample_box(indices_B, stream, flip=policy.flip, scale=policy.crop_scale, size=(height, width))
    return resize_boxes(images_BCHW, plan)
