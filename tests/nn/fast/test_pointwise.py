"""1×1 convolutions with folded r and s, alone and with a block's shortcut, against the reference layers in float64."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn import BatchEnsembleConv2d
from counterpoint.nn.fast import pointwise as fast
from counterpoint.nn.fast.norm import Summed, sums_of
from counterpoint.nn.fast.pointwise import Weights, block_input, pointwise

Draw = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
CheckAll = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], None]

MEMBERS = [None, 1, 3]  # None: a plain convolution


def random_conv(draw: Draw, ins: int, outs: int, members: int | None, stride: int = 1) -> nn.Conv2d:
    if members is None:
        conv = nn.Conv2d(ins, outs, 1, stride, bias=False)
    else:
        conv = BatchEnsembleConv2d(ins, outs, 1, num_members=members, stride=stride, bias=False)
    conv = conv.to(draw(1).device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.copy_(draw(*parameter.shape, dtype=torch.float32))
        conv.weight /= ins**0.5
    return conv


def plain(conv: nn.Conv2d, x_NHWC: Tensor) -> Tensor:
    y_NHWC: Tensor = conv(x_NHWC.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    return y_NHWC


def exact_sums(y_NHWC: Tensor, members: int) -> Tensor:
    y_MRC = y_NHWC.detach().double().reshape(members, -1, y_NHWC.shape[-1])
    return torch.stack([y_MRC.sum(dim=1), (y_MRC**2).sum(dim=1)])


def check_sums(check: Check, y: Summed, members: int) -> None:
    """The sums are those of the values as they were rounded."""
    check(y.sums.unflatten(1, (members, -1)).sum(dim=2), exact_sums(y.values_NHWC, members))


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize(("ins", "outs"), [(20, 36), (70, 33), (64, 128), (256, 128)])
def test_pointwise(draw: Draw, check: Check, check_all: CheckAll, ins: int, outs: int, members: int | None) -> None:
    conv = random_conv(draw, ins, outs, members)
    twin = deepcopy(conv).double()
    x_NHWC = draw(3 * (members or 1), 3, 5, ins).requires_grad_()
    exact_x_NHWC = x_NHWC.detach().double().requires_grad_()
    y = pointwise(x_NHWC, conv)
    check_sums(check, y, members or 1)
    leaves, exact_leaves = [x_NHWC, *conv.parameters()], [exact_x_NHWC, *twin.parameters()]
    check_all([y.values_NHWC], leaves, [plain(twin, exact_x_NHWC)], exact_leaves)


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("stride", [None, 1, 2], ids=["identity", "stride 1", "stride 2"])
def test_block_input(draw: Draw, check: Check, check_all: CheckAll, members: int | None, stride: int | None) -> None:
    conv = random_conv(draw, 24, 20, members)
    shortcut = None if stride is None else random_conv(draw, 24, 40, members, stride)
    convs = [conv] if shortcut is None else [conv, shortcut]
    twins = [deepcopy(conv).double() for conv in convs]
    x_NHWC = draw(2 * (members or 1), 5, 4, 24).requires_grad_()
    exact_x_NHWC = x_NHWC.detach().double().requires_grad_()

    y, found_shortcut = block_input(x_NHWC, conv, shortcut)
    check_sums(check, y, members or 1)
    if isinstance(found_shortcut, Summed):
        check_sums(check, found_shortcut, members or 1)
    found = [y.values_NHWC, found_shortcut.values_NHWC if isinstance(found_shortcut, Summed) else found_shortcut]
    exact = [plain(twin, exact_x_NHWC) for twin in twins]
    if shortcut is None:
        exact.append(exact_x_NHWC * 1)  # autograd.grad takes no leaf as an output
    leaves = [x_NHWC, *(parameter for conv in convs for parameter in conv.parameters())]
    check_all(found, leaves, exact, [exact_x_NHWC, *(parameter for twin in twins for parameter in twin.parameters())])


@pytest.mark.parametrize("stride", [None, 1, 2], ids=["identity", "stride 1", "stride 2"])
def test_weights_that_want_no_gradient_get_none(
    monkeypatch: pytest.MonkeyPatch, draw: Draw, check_all: CheckAll, stride: int | None
) -> None:
    """And the time for it is not spent."""

    def unwanted(*_: object) -> None:
        raise AssertionError("a weight's gradient was computed")

    monkeypatch.setattr(fast, "_weight_gradients", unwanted)
    conv, next_conv = (random_conv(draw, 20, 20, 2).requires_grad_(False) for _ in range(2))
    shortcut = None if stride is None else random_conv(draw, 20, 20, 2, stride).requires_grad_(False)
    x_NHWC = draw(4, 4, 4, 20).requires_grad_()
    exact_x_NHWC = x_NHWC.detach().double().requires_grad_()
    y, found_shortcut = block_input(x_NHWC, conv, shortcut)
    found = [
        pointwise(y.values_NHWC, next_conv).values_NHWC,
        found_shortcut if isinstance(found_shortcut, Tensor) else found_shortcut.values_NHWC,
    ]
    exact_y_NHWC = plain(deepcopy(conv).double(), exact_x_NHWC)
    exact = [
        plain(deepcopy(next_conv).double(), exact_y_NHWC),
        exact_x_NHWC * 1 if shortcut is None else plain(deepcopy(shortcut).double(), exact_x_NHWC),
    ]
    check_all(found, [x_NHWC], exact, [exact_x_NHWC])


@pytest.mark.parametrize(("ins", "outs"), [(64, 128), (64, 256), (256, 128)])
@pytest.mark.parametrize(("members", "rows", "programs"), [(1, 65, 264), (2, 200, 4)])
def test_the_product_with_its_sums(
    monkeypatch: pytest.MonkeyPatch,
    draw: Draw,
    check: Check,
    ins: int,
    outs: int,
    members: int,
    rows: int,
    programs: int,
) -> None:
    """Against a product and a pass for the sums; with few programs each takes several tiles of rows.

    Private, as the two tests below: which kernel works, and in how many parts, must not show in a result.
    """
    monkeypatch.setattr(fast, "_PROGRAMS", programs)
    x_NHWC, folded_MOI = draw(members, rows, 1, ins), draw(members, outs, ins) / ins**0.5
    y_NHWC, sums = fast._multiply_and_sum(x_NHWC, folded_MOI)
    exact_MRO = torch.bmm(x_NHWC.double().flatten(1, 2), folded_MOI.double().transpose(1, 2))
    check(y_NHWC, exact_MRO.view(members, rows, 1, outs))
    by_member = [each.unflatten(1, (members, -1)).sum(dim=2) for each in (sums, sums_of(y_NHWC, members))]
    check(by_member[0], by_member[1])
    check(by_member[0], exact_sums(y_NHWC, members))


@pytest.mark.parametrize(
    ("ins", "outs", "fits"),
    [
        *((64, 128, True), (64, 256, True), (256, 128, True)),
        *((32, 128, False), (64, 64, False), (64, 192, False), (128, 128, False), (256, 256, False)),
    ],
)
def test_which_products_sum_as_they_go(
    monkeypatch: pytest.MonkeyPatch, draw: Draw, check: Check, ins: int, outs: int, fits: bool
) -> None:
    calls, kernel = [], fast._multiply_and_sum

    def counted(x_NHWC: Tensor, folded_MOI: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(ins)
        return kernel(x_NHWC, folded_MOI)

    monkeypatch.setattr(fast, "_multiply_and_sum", counted)
    x_NHWC, folded_MOI = draw(1, 3, 1, ins), draw(1, outs, ins) / ins**0.5
    y_NHWC, sums = fast._multiply(x_NHWC, folded_MOI)
    assert len(calls) == fits
    check(y_NHWC.flatten(0, 2), x_NHWC.double().flatten(0, 2) @ folded_MOI[0].double().T)
    check(sums.sum(dim=1), exact_sums(y_NHWC, 1)[:, 0])


@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize(("ins", "outs"), [(20, 36), (130, 33)])
def test_gradients_of_folded_weights_in_parts(draw: Draw, check: Check, parts: int, ins: int, outs: int) -> None:
    conv = random_conv(draw, ins, outs, 3)
    partial_MPOI = draw(3, parts, outs, ins)
    leaves = [
        parameter.detach().double().requires_grad_() for parameter in Weights.of(conv).tensors if parameter is not None
    ]
    weight, r, s = leaves
    folded_MOI = torch.einsum("oi,mo,mi->moi", weight[..., 0, 0], r, s)
    exact = torch.autograd.grad(folded_MOI, leaves, partial_MPOI.double().sum(dim=1))
    for found, expected in zip(Weights.of(conv).gradients(partial_MPOI), exact, strict=True):
        assert found is not None
        check(found, expected)
    check(Weights.of(conv).fold(partial_MPOI.dtype), folded_MOI)


@pytest.mark.parametrize("rows", [1, 7, 48, 60, 1024])
@pytest.mark.parametrize("wanted", [0, 1, 2, 11, 66])
def test_the_number_of_parts_divides_the_rows(rows: int, wanted: int) -> None:
    assert fast._divisor_near(rows, wanted) == max([d for d in range(1, wanted + 1) if rows % d == 0], default=1)
