"""BatchNorm with ReLU, r, s, the residual sum and stochastic depth, against the same in plain float64 PyTorch."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn.fast import norm as fast
from counterpoint.nn.fast.norm import Norm, Summed, norm_relu, residual_relu, sums_of
from counterpoint.nn.norm import PerMemberBatchNorm2d

Draw = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
CheckAll = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], None]

# Members, images per member, height, width, channels. Small tiles make several programs of several steps each of rows
# that no tile divides; the last shape has two blocks of channels.
SMALL_TILES = {"_TILE": 128, "_SUMMING_TILE": 256, "_SUMMING_PROGRAMS": 2}
CASES = {
    "one member": ((1, 3, 2, 5, 20), {}),
    "small tiles": ((2, 3, 3, 5, 24), SMALL_TILES),
    "130 channels": ((2, 1, 3, 3, 130), {}),
}


@pytest.fixture(params=CASES)
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, ...]:
    shape, tiles = CASES[request.param]
    for name, value in tiles.items():
        monkeypatch.setattr(fast, name, value)
    return shape


def random_norm(draw: Draw, channels: int, members: int, *, shared: bool) -> nn.BatchNorm2d:
    layer = nn.BatchNorm2d(channels) if shared else PerMemberBatchNorm2d(channels, num_members=members)
    layer = layer.to(draw(1).device)
    with torch.no_grad():
        for name, value in (*layer.named_parameters(), *layer.named_buffers()):
            if name != "num_batches_tracked":
                value.copy_(draw(*value.shape, dtype=torch.float32))
        layer.running_var.abs_()  # type: ignore[union-attr]
    return layer


def random_factors(draw: Draw, members: int, channels: int) -> Tensor:
    """Of both signs, and not near zero, where r would leave BatchNorm nothing but eps to divide by."""
    values_MC = draw(members, channels, dtype=torch.float32)
    return (values_MC + values_MC.sign() / 2).requires_grad_()


def exact(tensor: Tensor) -> Tensor:
    return tensor.detach().double().requires_grad_()


def of_rows(factor_MC: Tensor, rows: int) -> Tensor:
    """A factor for each member, as (N, 1, 1, C)."""
    return factor_MC.repeat_interleave(rows // len(factor_MC), dim=0)[:, None, None]


def plain_norm(y_NHWC: Tensor, layer: nn.BatchNorm2d, r: Tensor | None) -> Tensor:
    scaled_NHWC = y_NHWC if r is None else y_NHWC * of_rows(r, len(y_NHWC))
    return layer(scaled_NHWC.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def check_statistics(check: Check, found: nn.BatchNorm2d, expected: nn.BatchNorm2d) -> None:
    for (name, ours), theirs in zip(found.named_buffers(), expected.buffers(), strict=True):
        if name == "num_batches_tracked":
            assert torch.equal(ours, theirs)
        else:
            check(ours, theirs)


def test_the_sums_are_each_members(draw: Draw, check: Check, shape: tuple[int, ...]) -> None:
    members, batch, *rest = shape
    y_NHWC = draw(members * batch, *rest)
    sums = sums_of(y_NHWC, members).unflatten(1, (members, -1)).sum(dim=2)
    y_MRC = y_NHWC.double().view(members, -1, rest[-1])
    check(sums, torch.stack([y_MRC.sum(dim=1), (y_MRC**2).sum(dim=1)]))


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "per-member"])
@pytest.mark.parametrize(("has_r", "has_s"), [(False, False), (True, False), (False, True), (True, True)])
def test_norm_relu(
    draw: Draw, check: Check, check_all: CheckAll, shape: tuple[int, ...], shared: bool, has_r: bool, has_s: bool
) -> None:
    members, batch, *rest = shape
    y_NHWC = draw(members * batch, *rest).requires_grad_()
    layer = random_norm(draw, rest[-1], members, shared=shared)
    r, s = (random_factors(draw, members, rest[-1]) if has else None for has in (has_r, has_s))
    twin, y = deepcopy(layer).double(), exact(y_NHWC)
    exact_r, exact_s = (None if factor is None else exact(factor) for factor in (r, s))

    found_NHWC = norm_relu(Summed(y_NHWC, sums_of(y_NHWC.detach(), members)), Norm(layer, members, r), s)
    plain_NHWC = plain_norm(y, twin, exact_r).relu()
    if exact_s is not None:
        plain_NHWC = plain_NHWC * of_rows(exact_s, len(y))
    leaves = [leaf for leaf in (y_NHWC, r, s) if leaf is not None]
    exact_leaves = [leaf for leaf in (y, exact_r, exact_s) if leaf is not None]
    check_all([found_NHWC], [*leaves, *layer.parameters()], [plain_NHWC], [*exact_leaves, *twin.parameters()])
    check_statistics(check, layer, twin)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "per-member"])
@pytest.mark.parametrize("normed", [False, True], ids=["identity", "normed shortcut"])
@pytest.mark.parametrize("has_keep", [False, True], ids=["keeps all", "drops some"])
def test_residual_relu(
    draw: Draw, check: Check, check_all: CheckAll, shape: tuple[int, ...], shared: bool, normed: bool, has_keep: bool
) -> None:
    members, batch, *rest = shape
    y_NHWC, shortcut_NHWC = (draw(members * batch, *rest).requires_grad_() for _ in range(2))
    layers = [random_norm(draw, rest[-1], members, shared=shared) for _ in range(1 + normed)]
    rs = [random_factors(draw, members, rest[-1]) for _ in layers]
    keep_N = None
    if has_keep:  # with every second value of a longer row, as a mask may come
        keep_N = (draw(members * batch, 2, dtype=torch.float32).gt(-0.3) * 1.25)[:, 0]
    twins, exact_rs = [deepcopy(layer).double() for layer in layers], [exact(r) for r in rs]

    norms = [Norm(layer, members, r) for layer, r in zip(layers, rs, strict=True)]
    y, summed_shortcut = (Summed(values, sums_of(values.detach(), members)) for values in (y_NHWC, shortcut_NHWC))
    shortcut, shortcut_norm = (summed_shortcut, norms[1]) if normed else (shortcut_NHWC, None)
    found_NHWC = residual_relu(y, norms[0], shortcut, shortcut_norm, keep_N)

    exact_y, exact_shortcut = exact(y_NHWC), exact(shortcut_NHWC)
    branch = plain_norm(exact_y, twins[0], exact_rs[0])
    if keep_N is not None:
        branch = branch * keep_N.double()[:, None, None, None]
    plain_NHWC = (branch + (plain_norm(exact_shortcut, twins[1], exact_rs[1]) if normed else exact_shortcut)).relu()
    check_all(
        [found_NHWC],
        [y_NHWC, shortcut_NHWC, *rs, *(p for layer in layers for p in layer.parameters())],
        [plain_NHWC],
        [exact_y, exact_shortcut, *exact_rs, *(p for twin in twins for p in twin.parameters())],
    )
    for layer, twin in zip(layers, twins, strict=True):
        check_statistics(check, layer, twin)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "per-member"])
def test_statistics_that_are_not_tracked_are_left_alone(draw: Draw, check: Check, shared: bool) -> None:
    layer = random_norm(draw, 20, 2, shared=shared)
    layer.track_running_stats = False
    twin, before = deepcopy(layer).double(), deepcopy(layer.state_dict())
    y_NHWC = draw(6, 3, 3, 20)
    check(norm_relu(Summed(y_NHWC, sums_of(y_NHWC, 2)), Norm(layer, 2)), plain_norm(y_NHWC.double(), twin, None).relu())
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


def test_a_constant_channel_gives_its_bias(draw: Draw) -> None:
    """In fp32 Σy²/n − μ² of some of these channels is less than −eps, and must not come under the square root."""
    layer = random_norm(draw, 16, 1, shared=True)
    y_NHWC = (100 * draw(1, 1, 1, 16)).expand(3, 5, 5, 16).contiguous()
    found_NHWC = norm_relu(Summed(y_NHWC, sums_of(y_NHWC, 1)), Norm(layer, 1))
    assert (found_NHWC.double() - layer.bias.double().relu()).abs().max() < 0.1
