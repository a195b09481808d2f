"""Does weight decay on r and s of the linear layer make the members of a BatchEnsemble less over-confident?

    python benchmarks/linear_layer.py OUT [--seeds 0 1] [--set KEY=VALUE …]

It trains three networks per seed with the command line: a single network, a BatchEnsemble whose r and s have no weight
decay, as in the paper's rows, and one whose linear layer's r and s have it. The images are the first 6,000 training
images of CIFAR-100 at 8 pixels, with its 20 coarse classes. The network is a ResNet-8, so that a CPU can train it.
Without augmentation and with these steps it becomes right on all images that it trains on. The sum of learning rate ×
weight decay over the steps is 1.0. In the paper's rows it is 2.2.

An ensemble takes about 5 minutes on one core, a single network 2. The same command goes on after an interruption.
It prints a table, and writes its figures to OUT/figures.json.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from counterpoint.data import data_root
from counterpoint.records.files import RESULTS, read_results
from counterpoint.report.run import HEADLINE
from counterpoint.runs.checkpoints import latest_checkpoint

IMAGES, SIZE = 6_000, 8
RECORD = 2 + 3 * 32 * 32  # of CIFAR-100's binary version: coarse class, fine class, pixels
SETTINGS = (
    *(f"images.size={SIZE}", "model=resnet", "depth=8", "width=16"),
    *("policy.augmix=none", "policy.flip=false", "policy.crop_padding=0"),
    *("batch_size=32", "steps=20000", "weight_decay=0.001"),
)
KINDS = {
    "single": ("num_members=none",),
    "none": (),
    "linear": ("decay_linear_rs=true",),
}
"""The settings of each kind of network, named after where r and s have weight decay."""


def write_images(file: Path) -> None:
    """Each image is averaged over squares of 4 × 4 pixels."""
    records = np.fromfile(data_root() / "cifar-100-binary" / "train.bin", np.uint8, IMAGES * RECORD)
    coarse_N, _, pixels = np.split(records.reshape(IMAGES, RECORD), (1, 2), axis=1)
    side = 32 // SIZE
    small_NCHW = pixels.reshape(IMAGES, 3, SIZE, side, SIZE, side).mean(axis=(3, 5)).round().astype(np.uint8)
    np.savez(file, images=small_NCHW.transpose(0, 2, 3, 1), labels=coarse_N[:, 0])


def train_and_evaluate(images: Path, run: Path, kind: str, seed: int, more: list[str]) -> None:
    if (run / RESULTS).exists():
        return
    settings = (f"name={kind}", *SETTINGS, *KINDS[kind], *more)
    train = ("train", "--images", images, "--out", run, "--seed", seed, *(f"--set={one}" for one in settings))
    for command in (train, ("evaluate", run)):
        subprocess.run([sys.executable, "-m", "counterpoint", *map(str, command)], check=True)


def figures(run: Path) -> dict[str, float]:
    """The ensemble's figures, the members' mean ECEs, and the size of the weights that a member's linear layer uses."""
    results = read_results(run / RESULTS)
    assert results.corrupted is not None
    ensemble, members = results.corrupted.aggregates.ensemble, results.corrupted.aggregates.members
    return {
        "error": results.clean.ensemble.error,
        "ece": results.clean.ensemble.ece_width15,
        "members_ece": float(np.mean([member.ece_width15 for member in results.clean.members])),
        "corrupted_error": ensemble[HEADLINE].error,
        "corrupted_ece": ensemble[HEADLINE].ece_width15,
        "members_corrupted_ece": float(np.mean([member[HEADLINE].ece_width15 for member in members])),
        "linear_weights": linear_weights(run),
    }


def linear_weights(run: Path) -> float:
    """The root mean square of W ∘ r sᵀ, or of W in a single network."""
    checkpoint = latest_checkpoint(run)
    assert checkpoint is not None
    weight, r, s = (checkpoint.tensors.get(f"model.network.classifier.{name}") for name in ("weight", "r", "s"))
    assert weight is not None
    if r is not None and s is not None:
        weight = weight * r[:, :, None] * s[:, None]
    return float(weight.square().mean().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="other settings for all networks"
    )
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    images = asked.out / "c20-8.npz"
    if not images.exists():
        write_images(images)
    found = {}
    for kind in KINDS:
        for seed in asked.seeds:
            run = asked.out / "runs" / f"{kind}-{seed}"
            train_and_evaluate(images, run, kind, seed, asked.set)
            found[run.name] = figures(run)
    (asked.out / "figures.json").write_text(json.dumps(found, indent=1) + "\n")
    columns = list(next(iter(found.values())))
    print(f"{'':10}" + "".join(f"{name:>23}" for name in columns))
    for name, row in found.items():
        print(f"{name:10}" + "".join(f"{row[column]:>23.3f}" for column in columns))


if __name__ == "__main__":
    main()
