"""How fast a finished run's members are evaluated, and what each precision costs in accuracy.

    python benchmarks/inference.py RUN --out inference.json

It has three parts (--parts, all by default). `throughput` times batches of test images through the network as it was
trained, through its members as folded plain networks, and through these compiled. `grid` times `collect_logits` on the
clean images and 75 cells, into a temporary folder and after compiling. `differences` compares the precisions with
strict fp32 on five cells. The corrupted set is made first if it is missing.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from scipy.special import softmax
from torch import Tensor
from torch._dynamo.utils import counters

from counterpoint.augment.standard import to_unit
from counterpoint.data import DataSet, data_root, load, parts_of
from counterpoint.devices import Precision, arithmetic, choose_device
from counterpoint.evaluation.image_groups import clean_group, suite_group
from counterpoint.evaluation.inference import collect_logits
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.evaluation.suites import CorruptedSet, corrupted_set
from counterpoint.metrics import ece, error
from counterpoint.nn import Ensemble
from counterpoint.normalisation import NORMALISATION
from counterpoint.runs.folder import Run, load_run
from counterpoint.storage.provenance import command_line, describe_environment

FAST: tuple[Precision, ...] = ("bf16", "headline")
CELLS = (("gaussian_noise", 5), ("defocus_blur", 3), ("fog", 3), ("elastic_transform", 4), ("jpeg_compression", 1))
IMAGES_PER_CELL = 1000

Logits = Callable[[Tensor], Tensor]
"""uint8 images (B, C, H, W) on the device to logits (M, B, K)."""


def unfolded(model: Ensemble) -> Logits:
    def logits(images_BCHW: Tensor) -> Tensor:
        views_BCHW = NORMALISATION.apply(to_unit(images_BCHW))
        return model(views_BCHW.expand(model.num_members, *views_BCHW.shape))

    return logits


def folded(model: Ensemble, device: torch.device, precision: Precision, *, compiled: bool) -> Logits:
    members = fold_members(model, device, precision, compiled=compiled)
    return lambda images_BCHW: torch.stack(
        [members.forward(network, images_BCHW, members.normalisation) for network in members.networks]
    )


def time_throughput(model: Ensemble, data: DataSet, options: argparse.Namespace) -> list[dict[str, Any]]:
    device = options.device
    layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
    model = model.to(memory_format=layout)  # type: ignore[call-overload]
    images_NCHW = data.test.images_NCHW[: 4 * options.batch].to(device)
    batches = [batch.contiguous(memory_format=layout) for batch in images_NCHW.split(options.batch)]
    rows = []
    for precision in FAST:
        networks = {
            "as trained": unfolded(model),
            "folded": folded(model, device, precision, compiled=False),
            "folded, compiled": folded(model, device, precision, compiled=True),
        }
        for name, logits in networks.items():
            speed = member_images_per_second(logits, batches, precision)
            rows.append({"way": name, "precision": precision, "member_images_per_second": speed})
            print(f"{name:18}{precision:>9}{speed:12,.0f} member-images/s", flush=True)
    return rows


@torch.no_grad()
def member_images_per_second(logits: Logits, batches: list[Tensor], precision: Precision) -> float:
    """The median over batches, each waited for, after one round for compiling and tuning."""
    with arithmetic(precision, batches[0].device):
        times = [seconds(logits, batch) for batch in 4 * batches]
        rows = logits(batches[0])[..., 0].numel()
    return rows / median(times[len(batches) :])


def seconds(logits: Logits, images_BCHW: Tensor) -> float:
    start = time.perf_counter()
    logits(images_BCHW)
    if images_BCHW.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def time_grid(run: Run, data: DataSet, corrupted: CorruptedSet, precision: Precision, options: Any) -> dict[str, Any]:
    """Seconds for the clean images and 75 cells. A batch of black images triggers compiling and tuning before them."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(run.folder, Path(folder) / "run", ignore=shutil.ignore_patterns("logits"))
        copied = replace(run, folder=Path(folder) / "run")
        start = time.perf_counter()
        members = fold_members(load_model(copied, options.device)[0], options.device, precision)
        member_logits(members, torch.zeros_like(data.test.images_NCHW[:1]))
        ready, graphs = time.perf_counter(), counters["stats"]["unique_graphs"]
        groups = [clean_group(copied, parts_of(data, copied.experiment)), suite_group(corrupted, options.cell_images)]
        collect_logits(copied, groups, device=options.device, precision=precision)
        whole = time.perf_counter() - ready
    again = counters["stats"]["unique_graphs"] - graphs
    print(
        f"grid, {precision:9}{whole:8.1f} s; before it {ready - start:.1f} s; {again} graphs compiled again", flush=True
    )
    return {"precision": precision, "grid_s": whole, "ready_s": ready - start, "compiled_again": again}


def compare_precisions(
    model: Ensemble, data: DataSet, corrupted: CorruptedSet, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """bf16 and headline against strict fp32, each as `evaluate` runs it, on the first images of five cells."""
    count = min(IMAGES_PER_CELL, options.cell_images or IMAGES_PER_CELL)
    labels_N = data.test.labels_N[:count].numpy()
    strict = fold_members(model, options.device, "strict", compiled=False)
    fast = {precision: fold_members(model, options.device, precision) for precision in FAST}
    rows = []
    for name, severity in CELLS:
        images_NCHW = torch.from_numpy(corrupted.read(name, severity)[:count].copy()).permute(0, 3, 1, 2)
        expected = member_logits(strict, images_NCHW)
        for precision, members in fast.items():
            row = differences(member_logits(members, images_NCHW), expected, labels_N)
            rows.append({"cell": f"{name}-{severity}", "precision": precision, **row})
            print(format_difference(rows[-1]), flush=True)
    return rows


def differences(logits_MNK: Any, expected_MNK: Any, labels_N: Any) -> dict[str, float]:
    probs_NK, wanted_NK = (softmax(z.astype("float64"), axis=2).mean(axis=0) for z in (logits_MNK, expected_MNK))

    def calibration(probs_NK: Any) -> float:
        return ece(probs_NK.max(axis=1), probs_NK.argmax(axis=1) == labels_N)

    return {
        "logit": float(abs(logits_MNK - expected_MNK).max()),
        "prob": float(abs(probs_NK - wanted_NK).max()),
        "changed": int((probs_NK.argmax(axis=1) != wanted_NK.argmax(axis=1)).sum()),
        "error": error(probs_NK, labels_N) - error(wanted_NK, labels_N),
        "ece": calibration(probs_NK) - calibration(wanted_NK),
    }


def format_difference(row: dict[str, Any]) -> str:
    return (
        f"{row['cell']:22}{row['precision']:>9}   max |Δ logit| {row['logit']:.1e}   max |Δ prob| {row['prob']:.1e}   "
        f"{row['changed']:3} predictions   Δ error {row['error']:+.2%}   Δ ECE {row['ece']:+.3%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--device", type=choose_device, default=choose_device("auto"))
    parser.add_argument("--root", type=Path, default=data_root(), help="the data folder")
    parts = ("throughput", "grid", "differences")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--batch", type=int, default=1000, help="images of a batch, in throughput")
    parser.add_argument("--cell-images", type=int, help="of each cell; default: all")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    run = load_run(options.run)
    if run.description.normalisation != NORMALISATION:
        parser.error(f"{options.run} is of a network that is not counterpoint's own")
    data = load(run.experiment.dataset, options.root)
    model, _ = load_model(run, options.device)
    results: dict[str, Any] = {"command": command_line(), "environment": describe_environment(options.device)}
    if "throughput" in options.parts:
        results["throughput"] = time_throughput(model, data, options)
    if {"grid", "differences"} & set(options.parts):
        corrupted = corrupted_set(data, options.root)
    if "grid" in options.parts:
        results["grid"] = [time_grid(run, data, corrupted, precision, options) for precision in FAST]
    if "differences" in options.parts:
        results["differences"] = compare_precisions(model, data, corrupted, options)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
