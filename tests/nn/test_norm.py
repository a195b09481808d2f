import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import PerMemberBatchNorm2d, resnet
from counterpoint.nn.norm import give_each_member_a_norm, keep_one_norm, left_untouched


def with_instance_norm() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True, track_running_stats=True), nn.ReLU())


@pytest.mark.parametrize("build", [lambda: resnet(5, width=4), with_instance_norm], ids=["BatchNorm", "InstanceNorm"])
def test_the_adversarial_pass_leaves_the_model_untouched(build: Callable[[], nn.Module]) -> None:
    network = build()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    images = torch.randn(4, 3, 16, 16)
    with left_untouched(network):
        inside = network(images)
    assert not inside.requires_grad
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    outside = network(images)
    torch.testing.assert_close(outside, inside)
    assert outside.requires_grad
    assert not all(torch.equal(before[k], v) for k, v in network.state_dict().items())


@pytest.mark.parametrize(
    ("norm", "shape"),
    [(nn.BatchNorm1d(4), ()), (nn.BatchNorm2d(4), (3, 3)), (nn.BatchNorm3d(4), (2, 2, 2)), (nn.SyncBatchNorm(4), (3,))],
    ids=lambda value: type(value).__name__,
)
def test_norms_of_members_can_be_pickled(norm: Any, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    norm = copy.deepcopy(norm)
    give_each_member_a_norm(norm, num_members=2)
    if not isinstance(norm, nn.SyncBatchNorm):  # which trains on a GPU only
        norm(torch.randn(6, 4, *shape))
    restored = pickle.loads(pickle.dumps(norm)).eval()
    rows = torch.randn(6, 4, *shape)
    assert restored.num_members == 2
    assert torch.equal(restored(rows), norm.eval()(rows))
    keep_one_norm(restored, 1)
    assert type(restored) is norm.plain


def test_per_member_norm_is_one_norm_per_member() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(5).double()
    give_each_member_a_norm(norm, num_members=3)
    assert isinstance(norm, PerMemberBatchNorm2d)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    separate = [nn.BatchNorm2d(5).double() for _ in range(3)]
    for i, single in enumerate(separate):
        single.weight.data, single.bias.data = norm.weight.data[5 * i : 5 * i + 5], norm.bias.data[5 * i : 5 * i + 5]
    x = torch.randn(12, 5, 3, 3, dtype=torch.float64)
    for _ in range(2):
        expected = torch.cat([single(x[4 * i : 4 * i + 4]) for i, single in enumerate(separate)])
        torch.testing.assert_close(norm(x), expected)
    assert norm.running_var is not None
    torch.testing.assert_close(
        norm.running_var, torch.cat([s.running_var for s in separate if s.running_var is not None])
    )
    norm.eval()
    expected = torch.cat([single.eval()(x[4 * i : 4 * i + 4]) for i, single in enumerate(separate)])
    torch.testing.assert_close(norm(x), expected)
    with pytest.raises(InputError, match="7 rows cannot be divided among 3"):
        norm(x[:7])


class NormAndReLU(nn.BatchNorm2d):
    """A subclass that does more, channel by channel."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


@pytest.mark.parametrize(
    ("norm", "shape"),
    [
        (nn.BatchNorm1d(5), ()),
        (nn.BatchNorm1d(5, affine=False), (4,)),
        (nn.BatchNorm3d(5, momentum=None), (2, 3, 2)),
        (NormAndReLU(5), (3, 3)),
        (nn.BatchNorm2d(5, track_running_stats=False), (3, 3)),
    ],
    ids=["vectors", "signals", "volumes", "subclass", "without statistics"],
)
def test_every_batchnorm_can_be_one_per_member(norm: nn.BatchNorm1d, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    norm = norm.double()
    each: Any = copy.deepcopy(norm)
    give_each_member_a_norm(each, 2)
    separate = [copy.deepcopy(norm) for _ in range(2)]
    x = torch.randn(8, 5, *shape, dtype=torch.float64)
    for training in (True, True, False):
        expected = torch.cat([one.train(training)(x[4 * i : 4 * i + 4]) for i, one in enumerate(separate)])
        torch.testing.assert_close(each.train(training)(x), expected)
    keep_one_norm(each, 1)
    assert type(each) is type(norm)
    torch.testing.assert_close(each(x), separate[1](x))
    assert each.state_dict().keys() == norm.state_dict().keys()
