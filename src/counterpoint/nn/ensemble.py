"""The member axis: views (M, B, C, H, W) outside, folded to (M·B, C, H, W) here and nowhere else."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.stochastic_depth import branch_factors, check_drop_rates


class Ensemble(nn.Module):
    """A network over folded batches, seen as M members. A plain network is an ensemble of one.

    `drop_rates` (one a member) turns on stochastic depth; the network must then take `keep` and have `num_blocks`, as
    counterpoint's own networks do.
    """

    def __init__(self, network: nn.Module, num_members: int = 1, drop_rates: Sequence[float] | None = None) -> None:
        super().__init__()
        self.network = network
        self.num_members = num_members
        self.drop_rates = tuple(drop_rates) if drop_rates is not None else (0.0,) * num_members
        check_drop_rates(self.drop_rates, num_members)
        if any(self.drop_rates) and not self.num_blocks:
            raise InputError(
                f"{type(network).__name__} has no residual branches that counterpoint can drop; "
                "use drop_rates with resnext29 or resnet, or leave it out"
            )

    @property
    def num_blocks(self) -> int:
        """How many residual branches stochastic depth can drop; 0 for a network that does not say."""
        return int(getattr(self.network, "num_blocks", 0))

    def forward(self, views_MBCHW: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (M, B, K). `keep` (blocks, M·B) is what each residual branch is multiplied by (see `branch_factors`),
        drawn before the step; None draws it from torch's generator in training, and keeps everything in evaluation."""
        if views_MBCHW.dim() != 5 or views_MBCHW.shape[0] != self.num_members:
            raise InputError(
                f"views have shape {tuple(views_MBCHW.shape)}; "
                f"they must be (M, B, C, H, W) with M = {self.num_members} members"
            )
        batch = views_MBCHW.shape[1]
        if keep is None and self.training and any(self.drop_rates):
            keep = self._draw_keep(batch, views_MBCHW.device)
        folded = views_MBCHW.flatten(0, 1)
        logits_NK = self.network(folded) if keep is None else self.network(folded, keep)
        return logits_NK.unflatten(0, (self.num_members, batch))

    def _draw_keep(self, batch: int, device: torch.device) -> Tensor:
        uniform = torch.rand(self.num_blocks, self.num_members, batch, device=device)
        return branch_factors(uniform, torch.tensor(self.drop_rates, device=device)[:, None]).flatten(1)

    @torch.no_grad()
    def predict_members(self, images_BCHW: Tensor) -> Tensor:
        """Each member's probabilities (M, B, K) in evaluation mode, for images scaled as in training."""
        was_training = self.training
        self.eval()
        try:
            logits_MBK = self(images_BCHW.expand(self.num_members, *images_BCHW.shape))
        finally:
            self.train(was_training)
        return logits_MBK.float().softmax(dim=-1)

    def predict(self, images_BCHW: Tensor) -> Tensor:
        """The ensemble's probabilities (B, K): the mean of its members' (SPEC D5)."""
        return self.predict_members(images_BCHW).mean(dim=0)
