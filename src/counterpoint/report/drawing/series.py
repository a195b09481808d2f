"""Runs as series of points. A run has the same colour and the same marker in every plot and legend of a page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from counterpoint.report.drawing.axes import Panel
from counterpoint.report.drawing.strokes import circle, line, path, point
from counterpoint.report.run import ReportedRun

Look = Literal["solid", "dashed"]
MEMBERS = "members"
"""What the page's script calls the series of all members, to switch them together."""

_COLOURS = 6  # as many as the style sheet has
# The corners of each marker in units of its radius; without corners it is a circle.
_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, -1.25), (1.2, 0.95), (-1.2, 0.95)),
    ((0, 1.25), (1.2, -0.95), (-1.2, -0.95)),
    ((-1.3, -0.4), (-0.4, -0.4), (-0.4, -1.3), (0.4, -1.3), (0.4, -0.4), (1.3, -0.4),
     (1.3, 0.4), (0.4, 0.4), (0.4, 1.3), (-0.4, 1.3), (-0.4, 0.4), (-1.3, 0.4)),
)  # fmt: skip


@dataclass(frozen=True)
class Ink:
    """What tells a run from the other runs of a page."""

    label: str
    place: int

    @property
    def colour(self) -> str:
        return f"run-{self.place % _COLOURS + 1}"

    @property
    def shape(self) -> tuple[tuple[float, float], ...]:
        """More runs than colours have other markers in the same colours."""
        return _SHAPES[(self.place + self.place // _COLOURS) % len(_SHAPES)]


@dataclass(frozen=True)
class Point:
    """`x` is a place in [0, 1]. The words say what is there, line by line, below the name of the run."""

    x: float
    y: float
    words: str
    interval: tuple[float, float] | None = None
    weight: float = 1.0  # the smaller, the smaller the marker


@dataclass(frozen=True)
class Series:
    """The points of a run, or of one of its members, joined by a line."""

    ink: Ink
    points: Sequence[Point]
    look: Look = "solid"
    member: int | None = None
    outline: Sequence[tuple[float, float]] = ()  # the line, where it is not simply from point to point
    marked_every: int = 1  # in a dense series, only the last point and some before it have a marker

    @property
    def name(self) -> str:
        return self.ink.label if self.member is None else f"{self.ink.label}, member {self.member}"


def ink_of(run: ReportedRun) -> Ink:
    return Ink(run.label, run.place)


def series_group(parent: Element, ink: Ink, kind: str = "series", part: str = "") -> Element:
    """What belongs to one run, so that the page's script can switch it off and on."""
    more = {"data-part": part} if part else {}
    return SubElement(parent, "g", {"class": f"{kind} {ink.colour}", "data-run": str(ink.place), **more})


def draw_series(svg: Element, panel: Panel, series: Series) -> None:
    kind = f"series {series.look}" if series.member is None else f"series {series.look} member"
    element = series_group(svg, series.ink, kind, MEMBERS if series.member else "")
    outline = series.outline or [(one.x, one.y) for one in series.points]
    path(element, "line", [(panel.x(x), panel.y(y)) for x, y in outline])
    for number, one in enumerate(series.points):
        x, y = panel.x(one.x), panel.y(one.y)
        place = point(element, x, y, f"{series.name}\n{one.words}")
        if one.interval:
            line(place, "interval", x, panel.y(one.interval[0]), x, panel.y(one.interval[1]))
        if series.member is None and (len(series.points) - 1 - number) % series.marked_every == 0:
            marker(place, series.ink, x, y, 1.5 + 2 * one.weight)


def draw_all(svg: Element, panel: Panel, series: Iterable[Series]) -> None:
    """Members lie below the runs."""
    for one in sorted(series, key=lambda one: one.member is None):
        draw_series(svg, panel, one)


def marker(parent: Element, ink: Ink, x: float, y: float, radius: float) -> None:
    if not ink.shape:
        circle(parent, "marker", x, y, radius)
        return
    corners = [(x + radius * right, y + radius * down) for right, down in (*ink.shape, ink.shape[0])]
    path(parent, "marker", corners)


def legend(runs: Iterable[ReportedRun], looks: Mapping[Look, str] | None = None, *, members: bool = False) -> Markup:
    """What stands for what. The page's script makes a button of every item that names a run or the members."""
    inks = [ink_of(run) for run in runs]
    top = Element("ul", {"class": "legend runs", "aria-label": "Legend"})
    for ink in inks:
        _item(top, ink.label, f"series solid {ink.colour}", ink, data_run=str(ink.place))
    for look, words in (looks or {}).items():
        _item(top, words, f"series {look}", Ink("", 0))
    if members:
        # Many thin lines hide what several runs are compared by, so that the members begin switched off there.
        off = {"data_off": ""} if len(inks) > 1 else {}
        _item(top, "each member (thin lines)", "series member", None, data_part=MEMBERS, **off)
    return Markup(tostring(top, encoding="unicode")) if len(top) else Markup("")


def _item(top: Element, words: str, kind: str, ink: Ink | None, **data: str) -> None:
    item = SubElement(top, "li", {name.replace("_", "-"): value for name, value in data.items()})
    swatch = SubElement(item, "svg", {"class": "mark", "viewBox": "0 0 28 12", "aria-hidden": "true"})
    _key(SubElement(swatch, "g", {"class": kind}), ink, 0, 6)
    SubElement(item, "span").text = words


def draw_key(svg: Element, ink: Ink, left: float, middle: float) -> None:
    """The line and the marker of a run in the drawing itself, where there is no page with a legend."""
    _key(SubElement(svg, "g", {"class": f"series solid {ink.colour}"}), ink, left, middle)


def _key(element: Element, ink: Ink | None, left: float, middle: float) -> None:
    path(element, "line", [(left + 1, middle), (left + 27, middle)])
    if ink:
        marker(element, ink, left + 14, middle, 3.5)


def reach(series: Iterable[Series], choose: Callable[[Iterable[float]], float]) -> float:
    """The lowest or the highest value of some series, with their intervals."""
    return choose(value for one in series for at in one.points for value in (at.y, *(at.interval or ())))
