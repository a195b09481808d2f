"""What earlier commands added to a run's results.json, temperatures and comparisons: kept as long as its logits are the
same, because both follow from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.errors import InputError
from counterpoint.storage.files import read_json

Results = dict[str, Any]

_ADDED: tuple[str, ...] = ("recalibrated", "against")


def read_earlier(folder: Path) -> Results:
    """What results.json holds before it is replaced; empty where it is missing or damaged."""
    try:
        results = read_json(folder / "results.json")
    except InputError:
        return {}
    return results if isinstance(results, dict) else {}


def still_valid(earlier: Mapping[str, Any], results: Results) -> Results:
    """The additions of `earlier` that the new `results` lack, if they belong to the same logits."""
    added = {key: earlier[key] for key in _ADDED if key in earlier and key not in results}
    return added if added and _same_logits(earlier, results) else {}


def dropped_additions(folder: Path, earlier: Mapping[str, Any], results: Results) -> str:
    """A line that says what the new `results` lack of `earlier`, and how to get it again; empty if nothing."""
    lost = {key: earlier[key] for key in _ADDED if key in earlier and key not in results}
    return _dropped(folder, lost) if lost else ""


def _same_logits(earlier: Mapping[str, Any], results: Results) -> bool:
    """Whether both come from the same logits, by the same version: then the NLL of every set of images is the same."""
    if earlier.get("counterpoint") != results["counterpoint"]:
        return False
    return np.allclose(_nlls(earlier), _nlls(results), rtol=1e-9, atol=0)


def _nlls(results: Mapping[str, Any]) -> list[float]:
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
