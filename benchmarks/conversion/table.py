"""The matrix as a table of Markdown, in a page whose other text is written by hand."""

import importlib.metadata
import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from counterpoint.storage.provenance import command_line, describe_environment, now

CHECKS = ("independent", "kept", "gradients", "round trip", "step")
_LONGEST = 330


def environment(*packages: str) -> dict[str, Any]:
    """The command, and all versions."""
    found = describe_environment(torch.device("cpu"))
    found["versions"] |= {package: importlib.metadata.version(package) for package in packages}
    return {"command": f"python benchmarks/{command_line()}", "date": now()[:10], "environment": found}


def made_with(record: dict[str, Any]) -> str:
    """The sentence that says how a table was made."""
    found = record["environment"]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    commit = (found["commit"] or "unknown")[:12]
    return f"Made by `{record['command']}` on {record['date']} at commit {commit}, on {found['device']}: {versions}."


def matrix_table(record: dict[str, Any]) -> str:
    """The models that pass, by their library, and a line for each that does not."""
    rows = record["rows"]
    passed: dict[str, list[str]] = {}
    for row in filter(_passes, rows):
        passed.setdefault(row["source"], []).append(_named(row))
    lines = [
        _summary(rows),
        "",
        "| from | models that pass, with their layers where some are left out |",
        "|---|---|",
        *(f"| {source} | {' · '.join(names)} |" for source, names in passed.items()),
        "",
        "| does not pass | from | input | layers | why |",
        "|---|---|---|---:|---|",
        *(_row(row) for row in rows if not _passes(row)),
        "",
        made_with(record),
    ]
    return "\n".join(lines)


def _passes(row: dict[str, Any]) -> bool:
    return bool(row["passed"])


def _named(row: dict[str, Any]) -> str:
    left_out = row["layers_converted"] < row["layers"]
    return f"{row['name']} ({row['layers_converted']} of {row['layers']})" if left_out else row["name"]


def _summary(rows: list[dict[str, Any]]) -> str:
    kinds = Counter(row["kind"] for row in rows)
    passed = sum(row["passed"] for row in rows)
    return (
        f"{len(rows)} models of {len({row['family'] for row in rows})} families ("
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        + f"): **{passed} pass**, {len(rows) - passed} do not."
    )


def _row(row: dict[str, Any]) -> str:
    layers = f"{row['layers_converted']} of {row['layers']}" if "checks" in row else "–"
    return f"| {row['name']} | {row['source']} | {row['kind']} | {layers} | {why(row)} |"


def why(row: dict[str, Any]) -> str:
    """Everything that is not as it should be, in the words of the conversion or of the check."""
    if text := row.get("refused"):
        return f"refused: {_short(text)}"
    if text := row.get("crash"):
        return f"crash: {_short(text)}"
    reasons = [f"{name}: {reason}" for name, reason in row["checks"].items() if reason]
    groups = Counter((layer["kind"], layer["reason"]) for layer in row["left_out"])
    reasons += [f"{count} {kind}: {reason}" for (kind, reason), count in groups.items()]
    return "; ".join(map(_short, reasons))


def _short(text: str) -> str:
    """One line of a table, without what would end a cell."""
    line = re.sub(r"\s+", " ", text).replace("|", "/")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def write_section(page: Path, name: str, text: str) -> None:
    """Replace what stands between the page's markers of this name."""
    begin, end = f"<!-- {name}: written by a script -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, also_found, after = rest.partition(end)
    if not (found and also_found):
        raise ValueError(f"{page} has no section between {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
