"""Which models of torchvision, timm and transformers become an ensemble, and which checks the ensemble passes.

    python benchmarks/conversion_matrix.py --doc docs/conversion.md --out results/conversion/matrix.json
    python benchmarks/conversion_matrix.py --only 'swin*'

Every model is made from its configuration, without a download, and converted to three members. The five checks are in
conversion/checks.py. A model passes if all five hold and 90 % of its weight layers are converted. For another model the
table says why it does not pass: in counterpoint's words if counterpoint refuses it or leaves layers out, otherwise with
the check that failed. Any other exception is a fault. The table then says "crash", and the command ends with status 1.
"""

import argparse
import fnmatch
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from conversion.case import Case, Inputs, call, logits_of
from conversion.checks import MEMBERS, Converted, gradients, independent, kept, round_trip, seeded, settle, step
from conversion.models import CASES
from conversion.table import CHECKS, environment, matrix_table, why, write_section
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, batch_ensemble
from counterpoint.nn.conversion import Conversion

ENOUGH = 0.9


def plain_model(case: Case, seed: int = 0) -> nn.Module:
    with seeded(seed):
        return settle(case.make(), case.inputs)


def convert(case: Case, model: nn.Module, init_std: float) -> Ensemble:
    return batch_ensemble(
        model,
        num_members=MEMBERS,
        init_std=init_std,
        example_input=case.inputs,
        exclude=case.exclude,
        logits=case.logits,
        generator=torch.Generator().manual_seed(5),
    )


def as_checked(ensemble: Ensemble) -> Converted:
    def logits(inputs: Inputs) -> Tensor:
        if isinstance(inputs, dict):
            return ensemble(**{name: value.expand(MEMBERS, *value.shape) for name, value in inputs.items()})
        return ensemble(*(value.expand(MEMBERS, *value.shape) for value in inputs))

    factors = {name: p for name, p in ensemble.named_parameters() if name.rpartition(".")[2] in ("r", "s")}
    return Converted(ensemble, logits, factors)


def examine(case: Case) -> dict[str, Any]:
    """What the conversion says of itself, and what the checks say of it."""
    model = plain_model(case)
    with torch.no_grad():
        expected = logits_of(call(model, case.inputs), case.logits)
    ensemble = convert(case, model, init_std=0.1)
    converted, inputs = as_checked(ensemble), case.inputs
    checks = {
        "independent": independent(converted, inputs),
        "kept": kept(as_checked(convert(case, model, init_std=0)), inputs, expected),
        "gradients": gradients(converted, inputs),
        "round trip": round_trip(converted, as_checked(convert(case, plain_model(case, 6), init_std=0.1)), inputs),
        "step": step(converted, inputs),
    }
    return describe(ensemble.conversion) | {"checks": checks}


def describe(report: Conversion | None) -> dict[str, Any]:
    """The report's figures as JSON values."""
    assert report is not None
    return {
        "parameters": report.parameters,
        "layers": len(report.converted) + len(report.left_out),
        "layers_converted": len(report.converted),
        "layer_share": report.layer_share,
        "parameter_share": report.parameter_share,
        "left_out": [{"name": layer.name, "kind": layer.kind, "reason": layer.reason} for layer in report.left_out],
    }


def row(case: Case) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        found = examine(case)
    except InputError as refusal:
        found = {"refused": str(refusal)}
    except Exception as error:  # one model's fault is written down, and the others go on
        found = {"crash": f"{type(error).__name__}: {error}"}
    found["passed"] = "checks" in found and not any(found["checks"].values()) and found["layer_share"] >= ENOUGH
    described = {name: getattr(case, name) for name in ("name", "family", "source", "kind")}
    return described | found | {"seconds": time.perf_counter() - start}


def line(found: dict[str, Any]) -> str:
    marks = (
        "".join("✗" if found["checks"][name] else "✓" for name in CHECKS) if "checks" in found else "–" * len(CHECKS)
    )
    layers = f"{found['layers_converted']}/{found['layers']}" if "checks" in found else ""
    verdict = "pass" if found["passed"] else "no"
    return f"{found['name']:32}{verdict:5}{marks} {layers:>9}{found['seconds']:7.1f} s  {why(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="models whose name matches")
    parser.add_argument("--doc", type=Path, help="the page whose table is written again")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if fnmatch.fnmatchcase(case.name, options.only):
            rows.append(row(case))
            print(line(rows[-1]), flush=True)
    record = environment("torchvision", "timm", "transformers") | {"rows": rows}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.doc:
        write_section(options.doc, "matrix", matrix_table(record))
    sys.exit(any("crash" in found for found in rows))


if __name__ == "__main__":
    main()
