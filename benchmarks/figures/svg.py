"""A small SVG drawing that is legible on light and on dark pages, in one file.

Colours are variables of a style sheet inside the file, and follow the reader's colour scheme. Every drawing brings its
own background, so that it is also legible where a page does not follow that scheme.
"""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Picture = NDArray[np.uint8]
"""(rows, columns, 1 or 3 channels)."""

MOST_BYTES = 60_000
_STYLE = """
svg { --page: #fdfdfc; --ink: #1e2430; --quiet: #59626f; --rule: #d8dbe0; --blue: #1f5f9a; --pale: #a9c3dd;
  --warm: #b54a14; --tint: #f3d3c2; }
@media (prefers-color-scheme: dark) { svg { --page: #15181d; --ink: #e8eaed; --quiet: #a3acb8; --rule: #363d47;
  --blue: #6db1f2; --pale: #3b5f82; --warm: #f28c52; --tint: #5c3320; } }
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--ink); }
.page { fill: var(--page); } .small { font-size: 11.5px; fill: var(--quiet); } .strong { font-weight: 600; }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.blue-text { fill: var(--blue); } .warm-text { fill: var(--warm); }
.large { font-size: 26px; } .tile { image-rendering: pixelated; }
line, path { fill: none; stroke-width: 1.5; } .rule { stroke: var(--rule); stroke-width: 1; }
.quiet { stroke: var(--quiet); } .dashed { stroke: var(--quiet); stroke-dasharray: 4 4; } .blue { stroke: var(--blue); }
.thick { stroke-width: 3; } .thin { stroke-width: 1.25; stroke-opacity: 0.8; } .warm { stroke: var(--warm); }
.blue-fill { fill: var(--blue); } .pale-fill { fill: var(--pale); } .warm-fill { fill: var(--warm); }
path.band { fill: var(--pale); fill-opacity: 0.45; } path.warm-band { fill: var(--tint); fill-opacity: 0.7; }
.box { fill: none; stroke: var(--quiet); stroke-width: 1.5; }
"""


class Drawing:
    """An SVG that grows by strokes. `about` is what it shows, for a reader who cannot see it."""

    def __init__(self, width: int, height: int, about: str) -> None:
        attributes = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "width": str(width)}
        self.root = Element("svg", {**attributes, "height": str(height), "role": "img", "aria-label": about})
        SubElement(self.root, "style").text = " ".join(_STYLE.split())
        self.box(0, 0, width, height, "page", rx=8)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        self._add("text", kind, x=x, y=y).text = words

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> None:
        self._add("line", kind, x1=x1, y1=y1, x2=x2, y2=y2)

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, rx: float = 0) -> Element:
        return self._add("rect", kind, x=x, y=y, width=width, height=height, rx=rx)

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        self._add("circle", kind, cx=x, cy=y, r=radius)

    def path(self, points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        steps = " ".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._add("path", kind).set("d", f"M{steps}{'Z' if closed else ''}")

    def arrow(self, x1: float, y: float, x2: float, kind: str = "quiet") -> None:
        """From left to right."""
        self.line(x1, y, x2, y, kind)
        self.path([(x2 - 5, y - 4), (x2, y), (x2 - 5, y + 4)], kind)

    def tile(self, picture_HWC: Picture, x: float, y: float, side: float) -> None:
        """A picture, enlarged without smoothing."""
        self._add("image", "tile", x=x, y=y, width=side, height=side).set("href", _data_uri(picture_HWC))

    def write(self, path: Path) -> None:
        content = tostring(self.root, encoding="utf-8")
        check_size(path, len(content), MOST_BYTES)
        path.write_bytes(content + b"\n")

    def _add(self, tag: str, kind: str, **numbers: float) -> Element:
        attributes = {name: f"{value:.1f}".removesuffix(".0") for name, value in numbers.items()}
        return SubElement(self.root, tag, ({"class": kind} if kind else {}) | attributes)


def check_size(path: Path, size: int, most: int) -> None:
    """Raise if a picture has become too large for a page."""
    if size > most:
        raise ValueError(f"{path.name} has {size:,} bytes; a picture of the docs may have {most:,}, so show less in it")


def _data_uri(picture_HWC: Picture) -> str:
    content = io.BytesIO()
    Image.fromarray(picture_HWC[..., 0] if picture_HWC.shape[2] == 1 else picture_HWC).save(
        content, "PNG", optimize=True
    )
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
