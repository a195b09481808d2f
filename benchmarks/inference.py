"""How fast a run's members are evaluated, in which variant, and what each precision costs in accuracy.

    python benchmarks/inference.py RUN --out inference.json         a finished run, on the GPU if there is one
    python benchmarks/inference.py --random-weights                 ResNeXt-29, 4 members, BatchNorm set on real images

Parts (--parts, all by default): `variants` times every variant at one batch size, compares its logits with the unfolded
network in strict fp32, and times the fastest uncompiled ones at the other sizes; `grid` times clean + 75 cells through
`collect_logits` into a temporary folder, after compiling; `differences` compares the precisions on five cells. What
fails says why, and the rest goes on. The corrupted set of COUNTERPOINT_DATA is made first if it is missing.
"""

import argparse
import copy
import json
import operator
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch
from scipy.special import softmax
from torch import Tensor, fx, nn
from torch._dynamo.utils import counters

from counterpoint.augment.standard import normalise, to_unit
from counterpoint.config import Experiment
from counterpoint.data import DataSet, data_root, load
from counterpoint.environment import describe_environment
from counterpoint.inference import InFloat32, Precision, arithmetic, fold_members, load_model, member_logits
from counterpoint.logits import collect_logits
from counterpoint.metrics import ece, error
from counterpoint.models import build_model
from counterpoint.nn import Ensemble
from counterpoint.runs import Checkpoint, Run, load_run, open_run
from counterpoint.shifted import ShiftedSet, shifted_set
from counterpoint.steps import split_training_images, steps_an_epoch
from counterpoint.train import choose_device

PARTS = ("variants", "grid", "differences")
FAST: tuple[Precision, ...] = ("bf16", "headline")
CELLS = (("gaussian_noise", 5), ("defocus_blur", 3), ("fog", 3), ("elastic_transform", 4), ("jpeg_compression", 1))
IMAGES_A_CELL = 1000
COMPARED = 500

Logits = Callable[[Tensor], Tensor]
"""uint8 images (B, C, H, W) on the device to logits (M, B, K)."""
Result = TypeVar("Result")


def attempt(what: str, work: Callable[..., Result], *arguments: Any) -> Result | None:
    """The result of `work(*arguments)`; None, and the reason printed, if it fails."""
    try:
        return work(*arguments)
    except Exception as reason:
        print(f"{what}: {type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else ''}", flush=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None


# --- variants ---------------------------------------------------------------------------------------------------------


def unfolded(model: Ensemble, device: torch.device, precision: Precision) -> Logits:  # noqa: ARG001
    def logits(images_BCHW: Tensor) -> Tensor:
        views = normalise(to_unit(images_BCHW))
        return model(views.expand(model.num_members, *views.shape)).float()

    return logits


def folded(compiled: bool, rewrite: Callable[[nn.Module, Precision], nn.Module] = lambda network, _: network) -> Any:
    """A variant of the folded members, each changed by `rewrite`."""

    def build(model: Ensemble, device: torch.device, precision: Precision) -> Logits:
        members = fold_members(model, device, precision, compiled=compiled)
        networks = [rewrite(network, precision) for network in members.networks]
        return lambda images_BCHW: torch.stack([members.forward(network, images_BCHW) for network in networks])

    return build


class FusedConv(nn.Module):
    """Convolution, bias, residual sum and ReLU in one cuDNN call; a 1×1 without residual as one GEMM if asked."""

    def __init__(self, conv: nn.Conv2d, dtype: torch.dtype, gemm: bool) -> None:
        super().__init__()
        assert conv.bias is not None
        self.weight, self.bias = conv.weight.to(dtype), conv.bias.to(dtype)
        self.where: Any = (conv.stride, conv.padding, conv.dilation, conv.groups)
        self.gemm = gemm and conv.kernel_size == conv.stride == (1, 1)

    def forward(self, x_NCHW: Tensor, residual_NCHW: Tensor | None = None) -> Tensor:
        x_NCHW = x_NCHW.to(self.weight.dtype)
        if residual_NCHW is not None:
            return torch.cudnn_convolution_add_relu(x_NCHW, self.weight, residual_NCHW, 1.0, self.bias, *self.where)
        if not self.gemm:
            return torch.cudnn_convolution_relu(x_NCHW, self.weight, self.bias, *self.where)
        torch.backends.cuda.matmul.allow_tf32 = True  # at headline precision too: this product is a convolution
        rows = x_NCHW.permute(0, 2, 3, 1)
        product = torch._addmm_activation(self.bias, rows.flatten(0, 2), self.weight.flatten(1).t())
        return product.unflatten(0, rows.shape[:3]).permute(0, 3, 1, 2)


class Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, InFloat32) or super().is_leaf_module(m, module_qualified_name)


def fuse(network: nn.Module, precision: Precision, *, grouped: bool = True, gemm: bool = False) -> nn.Module:
    """`network` with relu(conv) and relu(x + conv) as FusedConv; without `grouped`, grouped convolutions stay."""
    graph = Tracer().trace(network, concrete_args={"keep": None})
    modules = dict(network.named_modules())
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    for node in [n for n in graph.nodes if n.op == "call_module" and type(modules[n.target]) is nn.Identity]:
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)
    for node in [n for n in graph.nodes if n.target is torch.relu]:
        total = node.args[0]
        residual, conv = total.args if total.target is operator.add else (None, total)
        layer = modules.get(conv.target)
        if type(layer) is not nn.Conv2d or (layer.groups > 1 and not grouped):
            continue
        network.add_module(name := f"fused_{node.name}", FusedConv(layer, dtype, gemm))
        with graph.inserting_before(node):
            inputs = conv.args if residual is None else (*conv.args, residual)
            node.replace_all_uses_with(graph.call_module(name, inputs))
    fused = fx.GraphModule(network, graph)
    fused.graph.eliminate_dead_code()
    fused.recompile()
    return fused


def without_groups(network: nn.Module, _: Precision = "headline") -> nn.Module:
    """Grouped convolutions as dense ones with zeros between the groups: more arithmetic, better kernels."""
    for parent in list(network.modules()):
        for name, conv in list(parent.named_children()):
            if type(conv) is nn.Conv2d and conv.groups > 1:
                setattr(parent, name, _dense(conv))
    return network


def _dense(conv: nn.Conv2d) -> nn.Conv2d:
    dense = copy.deepcopy(conv)
    dense.groups = 1
    inputs, outputs = conv.in_channels // conv.groups, conv.out_channels // conv.groups
    weight = conv.weight.new_zeros(conv.out_channels, conv.in_channels, *conv.kernel_size)
    for i in range(conv.groups):
        out = slice(i * outputs, (i + 1) * outputs)
        weight[out, i * inputs : (i + 1) * inputs] = conv.weight[out]
    layout = torch.channels_last if weight.is_cuda else torch.contiguous_format
    dense.weight = nn.Parameter(weight.contiguous(memory_format=layout), requires_grad=False)
    return dense


VARIANTS: dict[str, Any] = {
    "unfolded, eager": unfolded,
    "folded, eager": folded(False),
    "folded, compiled": folded(True),
    "folded, groups as dense, eager": folded(False, without_groups),
    "folded, groups as dense, compiled": folded(True, without_groups),
    "folded, cuDNN-fused": folded(False, fuse),
    "folded, cuDNN-fused but for groups": folded(False, lambda n, p: fuse(n, p, grouped=False)),
    "folded, cuDNN-fused, 1×1 as GEMM": folded(False, lambda n, p: fuse(n, p, gemm=True)),
    "folded, cuDNN-fused, groups as dense": folded(False, lambda n, p: fuse(without_groups(n), p)),
}


@torch.no_grad()
def time_variant(logits: Logits, batches: list[Tensor], precision: Precision, seconds: float) -> dict[str, float]:
    """Seconds of the first call (compiling, tuning), then member-images/s: the median over calls, each waited for."""
    device = batches[0].device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with arithmetic(precision, device):
        first, logits_MBK = timed(logits, batches[0])
        one, _ = timed(logits, batches[1])
        calls = min(50, max(3, int(seconds / one)))
        times = [timed(logits, batches[i % len(batches)])[0] for i in range(calls)]
    peak = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    return {"first_s": first, "member_images_s": logits_MBK[..., 0].numel() / median(times), "peak_gib": peak}


def timed(logits: Logits, images_BCHW: Tensor) -> tuple[float, Tensor]:
    start = time.perf_counter()
    result = logits(images_BCHW)
    if images_BCHW.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


@torch.no_grad()
def difference(logits: Logits, reference: Logits, images_BCHW: Tensor, precision: Precision) -> float:
    """Largest difference from the reference in strict fp32, relative to its largest logit, over the first images: the
    unfolded network holds four times as many rows at once."""
    with arithmetic("strict", images_BCHW.device):
        expected = reference(images_BCHW[:COMPARED])
    with arithmetic(precision, images_BCHW.device):
        return ((logits(images_BCHW)[:, :COMPARED] - expected).abs().max() / expected.abs().max()).item()


def time_variants(model: Ensemble, images_NCHW: Tensor, options: argparse.Namespace) -> list[dict[str, Any]]:
    device: torch.device = options.device
    rows: list[dict[str, Any]] = []
    model = model.to(memory_format=torch.channels_last) if device.type == "cuda" else model  # type: ignore[call-overload]
    reference = unfolded(model, device, "strict")

    def batches(size: int) -> list[Tensor]:
        order = torch.randint(len(images_NCHW), (3, size), generator=torch.Generator().manual_seed(size))
        layout = torch.channels_last if device.type == "cuda" else torch.contiguous_format
        return [images_NCHW[chosen].to(device).contiguous(memory_format=layout) for chosen in order]

    def measure(name: str, precision: Precision, size: int) -> None:
        logits = VARIANTS[name](model, device, precision)
        row = {"variant": name, "precision": precision, "batch": size}
        inputs = batches(size)
        row |= time_variant(logits, inputs, precision, options.seconds)
        rows.append(row | {"off_by": difference(logits, reference, inputs[0], precision)})
        print(format_variant(rows[-1]), flush=True)

    first, *others = options.batches
    attempt("strict", measure, "folded, eager", "strict", first)
    for precision in FAST:
        for name in VARIANTS:
            attempt(f"{name}, {precision}", measure, name, precision, first)
        eager = [r for r in rows if r["precision"] == precision and not r["variant"].endswith("compiled")]
        fastest = max(eager, key=lambda r: r["member_images_s"], default={"variant": "folded, eager"})["variant"]
        for size in others:
            attempt(f"{fastest}, {precision}, {size}", measure, fastest, precision, size)
    return rows


def format_variant(row: dict[str, Any]) -> str:
    return (
        f"{row['variant']:40}{row['precision']:>9}{row['batch']:6}{row['member_images_s']:11,.0f}/s"
        f"{row['first_s']:8.1f} s first{row['peak_gib']:7.1f} GiB   off by {row['off_by']:.1e}"
    )


# --- the whole grid, and the precisions -------------------------------------------------------------------------------


def time_grid(run: Run, data: DataSet, shifted: ShiftedSet, precision: Precision, options: Any) -> dict[str, Any]:
    """Seconds of clean + 75 cells; compiling and tuning, which a batch of black images does, are told apart."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(run.folder, Path(folder) / "run", ignore=shutil.ignore_patterns("logits"))
        copied = replace(run, folder=Path(folder) / "run")
        start = time.perf_counter()
        members = fold_members(load_model(copied, data, options.device)[0], options.device, precision)
        member_logits(members, torch.zeros_like(data.test.images_NCHW[:1]))
        ready, graphs = time.perf_counter(), counters["stats"]["unique_graphs"]
        collect_logits(
            copied, data, shifted, device=options.device, precision=precision, cell_images=options.cell_images
        )
        whole = time.perf_counter() - ready
    again = counters["stats"]["unique_graphs"] - graphs
    row = {"precision": precision, "grid_s": whole, "ready_s": ready - start, "compiled_again": again}
    print(format_grid(row), flush=True)
    return row


def format_grid(row: dict[str, Any]) -> str:
    return (
        f"grid, {row['precision']:9}{row['grid_s']:8.1f} s; loading, compiling and tuning before it "
        f"{row['ready_s']:.1f} s; {row['compiled_again']} graphs compiled again"
    )


def compare_precisions(
    model: Ensemble, data: DataSet, shifted: ShiftedSet, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """bf16 and headline against strict fp32, each as `evaluate` runs it, on the first images of five cells."""
    count = min(IMAGES_A_CELL, options.cell_images or IMAGES_A_CELL)
    labels_N = data.test.labels_N[:count].numpy()
    strict = fold_members(model, options.device, "strict", compiled=False)
    fast = {precision: fold_members(model, options.device, precision) for precision in FAST}
    rows = []
    for name, severity in CELLS:
        images_NCHW = torch.from_numpy(shifted.read(name, severity)[:count].copy()).permute(0, 3, 1, 2)
        expected = member_logits(strict, images_NCHW)
        for precision, members in fast.items():
            row = differences(member_logits(members, images_NCHW), expected, labels_N)
            rows.append({"cell": f"{name}-{severity}", "precision": precision, **row})
    return rows


def differences(logits_MNK: Any, expected_MNK: Any, labels_N: Any) -> dict[str, float]:
    probs_NK, wanted_NK = (softmax(z.astype("float64"), axis=2).mean(axis=0) for z in (logits_MNK, expected_MNK))

    def calibration(probs: Any) -> float:
        return ece(probs.max(axis=1), probs.argmax(axis=1) == labels_N)

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


# --- the run ----------------------------------------------------------------------------------------------------------


@torch.no_grad()
def random_run(folder: Path, network: Any, data: DataSet, device: torch.device) -> Run:
    """A run that was never trained, but whose BatchNorm statistics are those of real images."""
    experiment = Experiment("bench", "cifar10", model=network, train_on="all")
    model = build_model(experiment, len(data.train.classes), data.train.images_NCHW.shape[1], seed=0).to(device)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean over batches
    for batch_BCHW in data.train.images_NCHW[:64].split(32):
        views = normalise(to_unit(batch_BCHW.to(device)))
        model(views.expand(model.num_members, *views.shape))
    trained, _ = split_training_images(data, experiment)
    steps = experiment.epochs * steps_an_epoch(experiment, len(trained))
    run = open_run(folder, experiment, seed=0, options={}, environment={})
    run.save(Checkpoint({f"model.{name}": tensor for name, tensor in model.state_dict().items()}, steps, 0.0))
    return run


def measure(run: Run, data: DataSet, options: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = {"environment": describe_environment(options.device), "experiment": run.experiment.name}
    model, _ = load_model(run, data, options.device)
    if "variants" in options.parts:
        results["variants"] = time_variants(model, data.test.images_NCHW, options)
    if {"grid", "differences"} & set(options.parts):
        shifted = shifted_set(data, options.root)
    if "grid" in options.parts:
        grids = [attempt(f"grid, {p}", time_grid, run, data, shifted, p, options) for p in FAST]
        results["grid"] = [row for row in grids if row]
    if "differences" in options.parts:
        results["differences"] = attempt("differences", compare_precisions, model, data, shifted, options) or []
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--random-weights", action="store_true")
    parser.add_argument("--network", choices=("resnext29", "resnet"), default="resnext29", help="of random weights")
    parser.add_argument("--device", type=choose_device, default=choose_device("auto"))
    parser.add_argument("--root", type=Path, default=data_root(), help="the data folder")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1000, 512, 2048, 4096], help="the first is for all")
    parser.add_argument("--seconds", type=float, default=0.7, help="of timing, a variant")
    parser.add_argument("--cell-images", type=int, help="of each cell; default: all")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.random_weights == (options.run is not None):
        parser.error("give a run's folder or --random-weights")
    with tempfile.TemporaryDirectory() as folder:
        run = None if options.random_weights else load_run(options.run)
        data = load(run.experiment.dataset if run else "cifar10", options.root)
        run = run or random_run(Path(folder) / "run", options.network, data, options.device)
        results = measure(run, data, options)
    formats = {"variants": format_variant, "grid": format_grid, "differences": format_difference}
    print("\n" + "\n".join(line(row) for part, line in formats.items() for row in results.get(part, [])))
    if options.out:
        options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
