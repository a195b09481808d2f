"""BatchNorm for folded batches: shared by the members (torch's own layer) or one for each member."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from counterpoint.nn.batch_ensemble import rows_per_member


class PerMemberBatchNorm2d(nn.BatchNorm2d):
    """M independent BatchNorm layers: statistics and affine parameters of member i are entries i·C … (i+1)·C − 1."""

    def __init__(self, num_features: int, *, num_members: int, **options: object) -> None:
        super().__init__(num_members * num_features, **options)  # type: ignore[arg-type]
        self.num_members = num_members

    def forward(self, input: Tensor) -> Tensor:
        rows_per_member(input.shape[0], self.num_members)
        members_as_channels = input.unflatten(0, (self.num_members, -1)).transpose(0, 1).flatten(1, 2)
        normalised = super().forward(members_as_channels)
        return normalised.unflatten(1, (self.num_members, -1)).transpose(0, 1).flatten(0, 1)

    @classmethod
    def from_shared(cls, norm: nn.BatchNorm2d, num_members: int) -> "PerMemberBatchNorm2d":
        """Every member starts with the parameters and statistics of `norm`."""
        options = {
            "eps": norm.eps,
            "momentum": norm.momentum,
            "affine": norm.affine,
            "track_running_stats": norm.track_running_stats,
        }
        new = cls(norm.num_features, num_members=num_members, **options)
        state = {k: v.repeat(num_members) if v.dim() else v for k, v in norm.state_dict().items()}
        new.load_state_dict(state)
        return new


@contextmanager
def left_untouched(model: nn.Module) -> Iterator[None]:
    """Inside, a pass in training mode changes neither running statistics nor parameters' gradients.

    BatchNorm still normalises with the statistics of the batch. The adversarial pass needs this (docs/paper.md, 9).
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    parameters = [p for p in model.parameters() if p.requires_grad]
    for norm in norms:
        norm.track_running_stats = False
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
        for parameter in parameters:
            parameter.requires_grad_(True)
