"""What another library's conversion does, as a table of Markdown: models with the same outcome share a line."""

import re
from typing import Any

from conversion.table import made_with

WAYS = {"as_released": "`batch_ensemble(model, M, convert_layers=True)`", "by_hand": "its layers placed by hand"}
_MOST_NAMES = 10
_ELSEWHERE = "[listed here](../results/conversion/side-by-side.json)"


def peer_table(record: dict[str, Any], passed: dict[str, bool]) -> str:
    """`passed` says of each model whether it passes with counterpoint."""
    lines = []
    for way, title in WAYS.items():
        lines += [f"| {title} | models | of these, pass with counterpoint | which |", "|---|---|---|---|"]
        for outcome, rows in _by_outcome(record["rows"], way).items():
            names = " · ".join(_named(row, way) for row in rows) if len(rows) <= _MOST_NAMES else _ELSEWHERE
            lines.append(f"| {outcome} | {len(rows)} | {sum(passed[row['name']] for row in rows)} | {names} |")
        lines.append("")
    return "\n".join([*lines, made_with(record)])


def _by_outcome(rows: list[dict[str, Any]], way: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_outcome(row[way]), []).append(row)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def _outcome(found: dict[str, Any]) -> str:
    """An error without its numbers, or which checks hold."""
    if "error" in found:
        return re.sub(r"\d+", "…", found["error"].splitlines()[0])
    held = [name for name, reason in found["checks"].items() if not reason]
    failed = [name for name, reason in found["checks"].items() if reason]
    return f"runs; holds: {', '.join(held) or 'nothing'}; does not: {', '.join(failed) or 'nothing'}"


def _named(row: dict[str, Any], way: str) -> str:
    """The model, and how many of its layers have members if not all have."""
    found = row[way]
    if "error" in found or found["layers_converted"] == row["layers"]:
        return str(row["name"])
    return f"{row['name']} ({found['layers_converted']} of {row['layers']} layers)"
