"""What torch-uncertainty's conversion to a BatchEnsemble does with the same models, and which checks it passes.

    python benchmarks/conversion_side_by_side.py --doc docs/conversion.md --out results/conversion/side-by-side.json

Its `batch_ensemble(model, M, convert_layers=True)` is called as its documentation says, with one tensor. Where it ends
in an error, the model's nn.Linear and nn.Conv2d layers are replaced at any depth by its own BatchLinear.from_linear and
BatchConv2d.from_conv2d, and the result is wrapped without conversion. A user of the library can do that by hand. Then
the result gets the same checks as in conversion_matrix.py: members, output, gradients and one step.
"""

import argparse
import fnmatch
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from conversion.case import Case, Inputs, call, logits_of
from conversion.checks import MEMBERS, Converted, gradients, independent, kept, seeded, step
from conversion.models import CASES
from conversion.peer_table import peer_table
from conversion.table import environment, write_section
from conversion_matrix import plain_model
from torch import Tensor, nn
from torch_uncertainty.layers import BatchConv2d, BatchLinear
from torch_uncertainty.methods import batch_ensemble

WEIGHT_LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.modules.rnn.RNNBase)


def as_released(model: nn.Module, _: Case) -> nn.Module:
    return batch_ensemble(model, MEMBERS, repeat_training_inputs=True, convert_layers=True)


def by_hand(model: nn.Module, case: Case) -> nn.Module:
    for name, layer in list(model.named_modules()):
        if any(fnmatch.fnmatchcase(name, excluded) for excluded in case.exclude):
            continue
        if isinstance(layer, nn.Linear):
            model.set_submodule(name, BatchLinear.from_linear(layer, MEMBERS))
        elif isinstance(layer, nn.Conv2d):
            model.set_submodule(name, BatchConv2d.from_conv2d(layer, MEMBERS))
    return batch_ensemble(model, MEMBERS, repeat_training_inputs=True)


def first_of(inputs: Inputs) -> tuple[Tensor]:
    """The one tensor that the wrapper passes on."""
    return (next(iter(inputs.values())) if isinstance(inputs, dict) else inputs[0],)


def as_checked(wrapper: nn.Module, case: Case) -> Converted:
    def logits(inputs: Inputs) -> Tensor:
        return logits_of(call(wrapper, inputs), case.logits).unflatten(0, (MEMBERS, -1))

    factors = {n: p for n, p in wrapper.named_parameters() if n.rpartition(".")[2] in ("r_group", "s_group")}
    return Converted(wrapper, logits, factors)


@torch.no_grad()
def layers_that_run(converted: Converted, inputs: Inputs) -> int:
    seen: set[nn.Module] = set()
    layers = [module for module in converted.module.modules() if isinstance(module, BatchLinear | BatchConv2d)]
    handles = [layer.register_forward_hook(lambda layer, *_: seen.add(layer)) for layer in layers]
    converted.logits(inputs)
    for handle in handles:
        handle.remove()
    return len(seen)


def attempt(case: Case, way: Callable[[nn.Module, Case], nn.Module]) -> dict[str, Any]:
    """What holds after one way to convert, or the error that it ends in."""
    inputs = first_of(case.inputs)

    def convert() -> Converted:
        with seeded(5):
            return as_checked(way(plain_model(case), case).eval(), case)

    try:
        converted = convert()
        found: dict[str, Any] = {"layers_converted": layers_that_run(converted, inputs), "checks": {}}
        checks = found["checks"]
        checks["independent"] = independent(converted, inputs)
        checks["kept"] = kept(with_ones(convert()), inputs, plain_logits(case))
        checks["gradients"] = gradients(converted, inputs)
        checks["step"] = step(converted, inputs)
    except Exception as error:  # whatever it raises is what happens with this model
        return {"error": f"{type(error).__name__}: {error}"}
    return found


@torch.no_grad()
def plain_logits(case: Case) -> Tensor:
    return logits_of(call(plain_model(case), case.inputs), case.logits)


@torch.no_grad()
def with_ones(converted: Converted) -> Converted:
    for factor in converted.factors.values():
        factor.fill_(1)
    return converted


def row(case: Case) -> dict[str, Any]:
    found = {way.__name__: attempt(case, way) for way in (as_released, by_hand)}
    layers = sum(isinstance(module, WEIGHT_LAYERS) for module in case.make().modules())
    return {"name": case.name, "layers": layers} | found


def passed(matrix: Path) -> dict[str, bool]:
    return {row["name"]: row["passed"] for row in json.loads(matrix.read_text(encoding="utf-8"))["rows"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="models whose name matches")
    parser.add_argument("--doc", type=Path, help="the page whose table is written again")
    parser.add_argument("--matrix", type=Path, default=Path("results/conversion/matrix.json"), help="what passed there")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if fnmatch.fnmatchcase(case.name, options.only):
            rows.append(row(case))
            print(json.dumps(rows[-1]), flush=True)
    record = environment("torch-uncertainty", "torchvision", "timm", "transformers") | {"rows": rows}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.doc:
        write_section(options.doc, "side-by-side", peer_table(record, passed(options.matrix)))


if __name__ == "__main__":
    main()
