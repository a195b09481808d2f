"""The member axis: views (M, B, C, H, W) outside, folded to (M·B, C, H, W) here and nowhere else."""

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError


class Ensemble(nn.Module):
    """A network over folded batches, seen as M members. A plain network is an ensemble of one."""

    def __init__(self, network: nn.Module, num_members: int = 1) -> None:
        super().__init__()
        self.network = network
        self.num_members = num_members

    @property
    def num_blocks(self) -> int:
        """How many residual branches stochastic depth can drop; 0 for a network that does not say."""
        return int(getattr(self.network, "num_blocks", 0))

    def forward(self, views_MBCHW: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (M, B, K).

        `keep` (blocks, M·B) is what each residual branch is multiplied by: the mask of stochastic depth, drawn before
        the step. With None nothing is dropped. A network without residual branches takes nothing else.
        """
        if views_MBCHW.dim() != 5 or views_MBCHW.shape[0] != self.num_members:
            raise InputError(
                f"views have shape {tuple(views_MBCHW.shape)}; "
                f"they must be (M, B, C, H, W) with M = {self.num_members} members"
            )
        if keep is not None and not self.num_blocks:
            raise InputError(
                f"{type(self.network).__name__} has no residual branches that counterpoint can drop; "
                "leave keep out, or use resnext29 or resnet"
            )
        batch = views_MBCHW.shape[1]
        folded = views_MBCHW.flatten(0, 1)
        logits_NK = self.network(folded) if keep is None else self.network(folded, keep=keep)
        return logits_NK.unflatten(0, (self.num_members, batch))

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
        """The ensemble's probabilities (B, K): the mean of its members' (docs/paper.md, 20)."""
        return self.predict_members(images_BCHW).mean(dim=0)
