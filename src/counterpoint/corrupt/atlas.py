"""A picture of every corruption at every severity, to be checked by eye."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from counterpoint.corrupt.frost import FrostDir
from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, check_images, corrupt
from counterpoint.sheet import draw_sheet


def draw_atlas(
    image_HWC: Images,
    path: Path,
    seed: int = 0,
    *,
    frost_dir: FrostDir | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Write a PNG: a row a corruption, the extra ones below; the columns are the image itself and severities 1 to 5.

    `progress(done, total)` counts the cells.
    """
    image_NHWC = np.asarray(image_HWC)[None]
    check_images(image_NHWC)
    cells = [(name, severity) for name in CORRUPTIONS + EXTRA_CORRUPTIONS for severity in SEVERITIES]
    drawn: dict[str, list[Images]] = {}
    for done, (name, severity) in enumerate(cells):
        progress(done, len(cells))
        cell_HWC = corrupt(image_NHWC, name, severity, seed, frost_dir=frost_dir)[0]
        drawn.setdefault(name, [image_NHWC[0]]).append(cell_HWC)
    progress(len(cells), len(cells))

    def row(name: str) -> tuple[str, list[Images]]:
        return name.replace("_", " "), drawn[name]

    sections = [
        ("", [row(name) for name in CORRUPTIONS]),
        ("extra corruptions, for validation only", [row(name) for name in EXTRA_CORRUPTIONS]),
    ]
    draw_sheet(sections, ["clean", *map(str, SEVERITIES)], path)
