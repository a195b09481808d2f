"""A picture of every corruption at every severity, to be checked by eye."""

from pathlib import Path

import numpy as np

from counterpoint.corrupt.frost import FrostDir
from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, check_images, corrupt
from counterpoint.sheet import draw_sheet


def draw_atlas(image_HWC: Images, path: Path, seed: int = 0, *, frost_dir: FrostDir | None = None) -> None:
    """Write a PNG: a row a corruption, the extra ones below; the columns are the image itself and severities 1 to 5."""
    image_NHWC = np.asarray(image_HWC)[None]
    check_images(image_NHWC)

    def row(name: str) -> tuple[str, list[Images]]:
        cells = [corrupt(image_NHWC, name, severity, seed, frost_dir=frost_dir)[0] for severity in SEVERITIES]
        return name.replace("_", " "), [image_NHWC[0], *cells]

    sections = [
        ("", [row(name) for name in CORRUPTIONS]),
        ("extra corruptions, for validation only", [row(name) for name in EXTRA_CORRUPTIONS]),
    ]
    draw_sheet(sections, ["clean", *map(str, SEVERITIES)], path)
