"""What earlier commands added to a run's results.json, temperatures and comparisons: kept as long as its logits are the
same, because both follow from them."""

from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.errors import InputError
from counterpoint.files import read_json, write_json
from counterpoint.results import SCHEMA

Results = dict[str, Any]

_ADDED: tuple[str, ...] = ("recalibrated", "against")


def read_earlier(folder: Path) -> Results:
    """What results.json holds before it is replaced; empty where it is missing, damaged or of another schema."""
    try:
        results = read_json(folder / "results.json")
    except InputError:
        return {}
    return results if isinstance(results, dict) and results.get("schema") == SCHEMA else {}


def keep_additions(folder: Path, earlier: Results, results: Results) -> tuple[Results, str]:
    """`results`, just written to `folder`, with the additions of `earlier` that they lack; or, where those belong to
    other logits, unchanged and with a line that says what was dropped and how to get it again."""
    added = {key: earlier[key] for key in _ADDED if key in earlier and key not in results}
    if not added:
        return results, ""
    if not _same_logits(earlier, results):
        return results, _dropped(folder, added)
    write_json(folder / "results.json", results | added)
    return results | added, ""


def _same_logits(earlier: Results, results: Results) -> bool:
    """Whether both come from the same logits, by the same version: then the NLL of every set of images is the same."""
    same_version = earlier["counterpoint"] == results["counterpoint"]
    return same_version and np.allclose(_nlls(earlier), _nlls(results), rtol=1e-9, atol=0)


def _nlls(results: Results) -> list[float]:
    cells = [cell for severities in results["corrupted"]["cells"].values() for cell in severities]
    return [figures["ensemble"]["nll"] for figures in (results["clean"], *cells)]


def _dropped(folder: Path, added: Results) -> str:
    names, options = [], ["--recompute"]  # any other evaluation could make yet other logits
    if recalibrated := added.get("recalibrated"):
        names.append("the temperatures")
        own = recalibrated["fitted_on"]["run"] == "this run"
        options.append("--recalibrate" if own else "--temperatures-from TWIN")
    if against := added.get("against"):
        names.append(f"the comparisons with {', '.join(other['run'] for other in against)}")
        options.append("--against OTHER")
    return (
        f"dropped {' and '.join(names)}, which belong to other logits or another version; "
        f"`counterpoint evaluate {folder} {' '.join(options)}` makes them again"
    )
