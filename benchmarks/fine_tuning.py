"""How far from 1 should r and s start when a trained network becomes an ensemble?

    python benchmarks/fine_tuning.py

A small network is trained on two thirds of the digits' training images, and converted with several values of init_std.
On the other third it reports the error of the ensemble and of its members right after conversion, and again after one
epoch in which each member sees the images in its own order (SGD, learning rate 0.01). No test image is used. Each line
is the mean over --draws draws of r and s.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint.data.digits import load_digits
from counterpoint.nn import Ensemble, batch_ensemble, resnet

STDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
MEMBERS, BATCH = 4, 32


class MLP(nn.Sequential):
    """Six layers and no normalisation."""

    def __init__(self) -> None:
        hidden = [layer for _ in range(5) for layer in (nn.LazyLinear(128), nn.ReLU())]
        super().__init__(nn.Flatten(), *hidden, nn.LazyLinear(10))
        self(torch.zeros(1, 1, 32, 32))


NETWORKS: dict[str, Any] = {
    "ResNet-8": lambda: resnet(10, depth=8, width=8, in_channels=1),
    "ResNet-20": lambda: resnet(10, depth=20, width=8, in_channels=1),
    "MLP, 6 layers": MLP,
}


def split() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images to train on and their labels, images to judge by and theirs."""
    train = load_digits().train
    images = train.images_NCHW.float() / 127.5 - 1
    held_out = torch.arange(len(images)) % 3 == 0
    return images[~held_out], train.labels_N[~held_out], images[held_out], train.labels_N[held_out]


def orders(count: int, members: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The batches (M, B) of one epoch, every member's in an order of its own."""
    shuffled = torch.stack([torch.randperm(count, generator=generator) for _ in range(members)])
    yield from shuffled[:, : count - count % BATCH].split(BATCH, dim=1)


def train(model: Ensemble, images: Tensor, labels: Tensor, epochs: int, rate: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for _ in range(epochs):
        for batch_MB in orders(len(images), model.num_members, generator):
            loss = cross_entropy(model.train()(images[batch_MB]).flatten(0, 1), labels[batch_MB].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def judge(model: Ensemble, images: Tensor, labels: Tensor) -> Tensor:
    """Errors of the ensemble and of its members, and on how many images two members disagree, in percent."""
    probs_MBK = model.predict_members(images)
    classes_MB = probs_MBK.argmax(-1)
    error = (probs_MBK.mean(0).argmax(-1) != labels).double().mean()
    of_members = (classes_MB != labels).double().mean()
    differ = (classes_MB[:, None] != classes_MB[None]).double().mean() * MEMBERS / (MEMBERS - 1)
    return 100 * torch.stack([error, of_members, differ])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=15, help="of the network before it is converted")
    arguments = parser.parse_args()
    images, labels, judged, judged_labels = split()
    print(f"{'':15} init_std | right after: ensemble  members  disagree | after an epoch: ensemble  members  disagree")
    for name, make in NETWORKS.items():
        torch.manual_seed(0)
        single = Ensemble(make())
        train(single, images, labels, arguments.epochs, 0.05, seed=0)
        error = (single.predict(judged).argmax(-1) != judged_labels).double().mean()
        print(f"{name:15} {'as it was':>8} | {100 * error:21.2f}")
        for std in STDS:
            figures = []
            for draw in range(arguments.draws):
                model = batch_ensemble(single.network, MEMBERS, std, generator=torch.Generator().manual_seed(draw))
                before = judge(model, judged, judged_labels)
                train(model, images, labels, 1, 0.01, seed=draw)
                figures.append(torch.cat([before, judge(model, judged, judged_labels)]))
            a, b, c, d, e, f = torch.stack(figures).mean(0).tolist()
            print(f"{'':15} {std:8g} | {a:21.2f} {b:8.2f} {c:9.2f} | {d:24.2f} {e:8.2f} {f:9.2f}", flush=True)


if __name__ == "__main__":
    main()
