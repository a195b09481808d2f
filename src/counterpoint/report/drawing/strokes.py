"""The strokes of an inline SVG chart. Colours are classes that the page's style sheet fills in, light or dark."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup


def drawing(kind: str, alternative: str, width: int, height: int) -> Element:
    return Element("svg", {"class": kind, "viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": alternative})


def sheet(kind: str, alternative: str, *, small: bool = False) -> Element:
    """About a phone's width, so that text keeps its size there; of the small ones two stand beside each other."""
    return drawing(kind, alternative, *((180, 196) if small else (360, 350)))


def group(parent: Element, tooltip: str) -> Element:
    element = SubElement(parent, "g")
    SubElement(element, "title").text = tooltip
    return element


def point(parent: Element, x: float, y: float, tooltip: str) -> Element:
    """A group whose words the page's script shows when (x, y) is nearest to the pointer."""
    element = group(parent, tooltip)
    element.attrib.update({"class": "point", "data-x": f"{x:.2f}", "data-y": f"{y:.2f}"})
    return element


def box(parent: Element, kind: str, left: float, top: float, width: float, bottom: float) -> None:
    _shape(parent, "rect", kind, x=left, y=top, width=width, height=bottom - top)


def line(parent: Element, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
    _shape(parent, "line", kind, x1=x1, y1=y1, x2=x2, y2=y2)


def circle(parent: Element, kind: str, x: float, y: float, radius: float) -> None:
    _shape(parent, "circle", kind, cx=x, cy=y, r=radius)


def path(parent: Element, kind: str, points: Sequence[tuple[float, float]], **more: str) -> None:
    """A line through the points."""
    steps = " ".join(f"{x:.2f} {y:.2f}" for x, y in points)
    SubElement(parent, "path", {"class": kind, "d": f"M{steps}", **more})


def text(parent: Element, x: float, y: float, words: str, kind: str, **more: str) -> None:
    SubElement(parent, "text", {"class": kind, "x": f"{x:.2f}", "y": f"{y:.2f}", **more}).text = words


def markup(svg: Element) -> Markup:
    return Markup(tostring(svg, encoding="unicode"))  # ElementTree has escaped the text


def _shape(parent: Element, tag: str, kind: str, **numbers: float) -> None:
    SubElement(parent, tag, {"class": kind, **{name: f"{value:.2f}" for name, value in numbers.items()}})
