"""The temperatures and comparisons that earlier commands added to a run's results.json.

They follow from the logits, so they are kept as long as the logits are the same.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.errors import InputError
from counterpoint.storage.files import read_json

Results = dict[str, Any]

_ADDED: tuple[str, ...] = ("recalibrated", "against")


def read_earlier(folder: Path) -> Results:
    """What results.json holds before it is replaced. Empty where it is missing or damaged."""
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
    """A line that says what `earlier` had and `results` lack, and how to get it again. Empty if they lack nothing."""
    lost = {key: earlier[key] for key in _ADDED if key in earlier and key not in results}
    return _dropped(folder, lost) if lost else ""


def _same_logits(earlier: Mapping[str, Any], results: Results) -> bool:
    """Whether both were computed from the same logits by the same version.

    If so, the NLL of every set of images is the same.
    """
    if earlier.get("counterpoint") != results["counterpoint"]:
        return False
    return np.allclose(_nlls(earlier), _nlls(results), rtol=1e-9, atol=0)


def _nlls(results: Mapping[str, Any]) -> list[float]:
    cells = [cell for severities in results["corrupted"]["cells"].values() for cell in severities]
    return [figures["ensemble"]["nll"] for figures in (results["clean"], *cells)]


def _dropped(folder: Path, added: Results) -> str:
    names, options = [], ["--recompute"]  # it takes the logits as they are
    if recalibrated := added.get("recalibrated"):
        names.append("the temperatures")
        without_twin = recalibrated["fitted_on"]["run"] == "this run"
        options.append("--recalibrate" if without_twin else "--temperatures-from TWIN")
    if against := added.get("against"):
        names.append(f"the comparisons with {', '.join(comparison['run'] for comparison in against)}")
        options.append("--against OTHER")
    return (
        f"dropped {' and '.join(names)}, which belong to other logits or another version; "
        f"`counterpoint evaluate {folder} {' '.join(options)}` makes them again"
    )
