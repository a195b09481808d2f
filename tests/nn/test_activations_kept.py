"""What a forward pass keeps, counted without keeping it: beside a slow twin that keeps every tensor."""

import copy
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from counterpoint.nn import Ensemble, batch_ensemble, deep_ensemble, resnet, vit
from counterpoint.nn.activations import Kept, blocks_of, measure_kept, recompute_blocks

IMAGES = torch.zeros(3, 5, 3, 8, 8)
MODELS = {
    "shared norms": lambda: batch_ensemble(resnet(4, width=4), 3),
    "a norm per member": lambda: batch_ensemble(resnet(4, width=4), 3, batchnorm="per-member"),
    "deep": lambda: deep_ensemble(lambda: resnet(4, width=4), 3),
    "attention": lambda: batch_ensemble(vit(4, depth=2, width=8, heads=2), 3),
}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(192, 192)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(x)) * 2


class Doubled(nn.Module):
    """Blocks whose outputs live on in a list, and a tensor that is kept three times."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.last = nn.Linear(192, 4)

    def forward(self, x: Tensor) -> Tensor:
        x, outputs = x.flatten(1), []
        for block in self.blocks:
            x = block(x)
            outputs.append(x * x * x)
        return self.last(torch.stack(outputs).sum(dim=0))


def bytes_of(kept: Iterable[Tensor], others: Iterable[Tensor]) -> dict[int, int]:
    """The bytes behind tensors that are all alive, by their place in memory, without those behind the others."""
    known = {tensor.untyped_storage().data_ptr() for tensor in others}
    places = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    return {place: size for place, size in places.items() if place not in known}


def held_by(network: nn.Module, *inputs: Tensor) -> dict[int, int]:
    """The same for what a pass really keeps."""
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.detach())
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        output = network(*inputs)
    sizes = bytes_of(kept, [*inputs, *network.parameters(), *network.buffers()])
    del output
    return sizes


def kept_slowly(model: Ensemble) -> Kept:
    """The three numbers, each from its own passes: a plain one, one with blocks that keep nothing, one per block."""
    plain = held_by(model, IMAGES)
    inputs: dict[nn.Module, tuple[Tensor, ...]] = {}
    blocks = list(blocks_of(model))
    for block in blocks:
        block.register_forward_pre_hook(lambda block, given: inputs.update({block: given}))
    model(IMAGES)
    insides = []
    for block in blocks:
        given = [tensor.detach().requires_grad_() for tensor in inputs[block] if tensor is not None]
        insides.append(sum(held_by(block, *given).values()))
    recompute_blocks(model)
    outside = sum(held_by(model, IMAGES).values())
    return Kept(sum(plain.values()), outside + max(insides), max(plain.values()))


@pytest.mark.parametrize("name", [*MODELS, "doubled"])
def test_as_much_is_counted_as_is_kept(name: str) -> None:
    model = Ensemble(Doubled(), 3) if name == "doubled" else MODELS[name]()
    quick = measure_kept(copy.deepcopy(model).train(), IMAGES, None)
    slow = kept_slowly(model.train())
    assert (quick.everything, quick.largest) == (slow.everything, slow.largest)
    # torch's checkpoint keeps an empty tensor of its own for each block.
    assert quick.recomputed == pytest.approx(slow.recomputed, rel=0.01)
    assert 0 < quick.recomputed < quick.everything or name == "deep"


def test_dropped_branches_are_counted() -> None:
    model = batch_ensemble(resnet(4, width=4), 3).train()
    keep = torch.ones(model.num_blocks, 15)
    assert measure_kept(model, IMAGES, keep).everything > measure_kept(model, IMAGES, None).everything


def test_a_network_without_blocks_keeps_everything() -> None:
    kept = measure_kept(Ensemble(nn.Sequential(nn.Flatten(), nn.Linear(192, 4), nn.Tanh())), IMAGES[:1], None)
    assert kept.recomputed == kept.everything == 5 * 4 * 4


def test_the_hooks_are_removed() -> None:
    model = batch_ensemble(resnet(4, width=4), 3).train()
    measure_kept(model, IMAGES, None)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    model(IMAGES).sum().backward()
