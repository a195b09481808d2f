"""The head of a model card, in YAML: what model hubs read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from counterpoint.export.card_facts import CardFacts, Measured

OURS = "counterpoint"
"""The tag of every card that we write."""

_LIBRARIES = {"onnx": "onnx", "pt2": "pytorch"}
_ON_THE_HUB = {"cifar10": "uoft-cs/cifar10", "cifar100": "uoft-cs/cifar100"}
_TASK = "image-classification"


def yaml_head(facts: CardFacts) -> str:
    return "\n".join(("---", *_lines(_head(facts)), "---")) + "\n"


def _head(facts: CardFacts) -> dict[str, Any]:
    dataset, measured = facts.run.experiment.dataset, facts.measured()
    kind = facts.file_name.rpartition(".")[2].lower()
    head: dict[str, Any] = {
        "license": "unknown",
        "library_name": _LIBRARIES[kind],
        "pipeline_tag": _TASK,
        "tags": [OURS, kind, "calibration", "uncertainty", *(["ensemble"] if facts.members > 1 else [])],
    }
    if dataset in _ON_THE_HUB:
        head["datasets"] = [_ON_THE_HUB[dataset]]
    if measured:
        head["metrics"] = [metric["type"] for metric in _metrics(measured[0])]
        head["model-index"] = [{"name": facts.run.experiment.name, "results": [*map(_result, measured)]}]
    return head


def _result(one: Measured) -> dict[str, Any]:
    dataset = {"type": one.dataset.lower(), "name": one.images, "split": one.part}
    return {"task": {"type": _TASK}, "dataset": dataset, "metrics": _metrics(one)}


def _metrics(one: Measured) -> list[dict[str, Any]]:
    figures = one.summary.ensemble
    return [
        {"type": "accuracy", "value": round(1 - figures.error, 4), "name": "Accuracy"},
        {"type": "ece", "value": round(figures.ece_width15, 4), "name": "ECE, 15 equal-width bins"},
        {"type": "nll", "value": round(figures.nll, 4), "name": "NLL, in nats"},
    ]


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """A mapping or a sequence as lines of YAML. Texts are quoted as in JSON, which YAML takes for the same."""
    items = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for key, item in items:
        start = f"{indent}-" if key is None else f"{indent}{key}:"
        if not isinstance(item, Mapping | Sequence) or isinstance(item, str):
            yield f"{start} {json.dumps(item, ensure_ascii=False)}"
        elif key is None:
            first, *rest = _lines(item, f"{indent}  ")
            yield f"{start} {first.lstrip()}"
            yield from rest
        else:
            yield start
            yield from _lines(item, indent if isinstance(item, Sequence) else f"{indent}  ")
