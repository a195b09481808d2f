"""Curves over a share of images, from 0 % upwards."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from counterpoint.records.figures import Curve
from counterpoint.report.drawing.strokes import (
    Panel,
    drawing,
    group,
    markup,
    path,
    text,
    x_axis,
    y_axis,
)
from counterpoint.report.tables import with_sign

_WIDTH, _HEIGHT = 360, 300
_FIFTHS = {tick / 100: str(tick) for tick in range(0, 101, 20)}
_LABEL_HEIGHT = 11


def risk_coverage_chart(
    clean: Curve, by_severity: Mapping[str, Curve], ticks: Sequence[float], alternative: str
) -> Markup:
    """Error against the share kept; the names stand where the curves end, at all images."""
    svg = drawing("risk-coverage", alternative, _WIDTH, _HEIGHT)
    panel = Panel(top=12, height=250, ceiling=ticks[-1] / 100, width=266)
    y_axis(svg, panel, ticks, "wrong among those kept")
    x_axis(svg, panel, _FIFTHS, "share of images kept, surest first, %")
    curves = {"Clean": clean, **by_severity}
    heights = _apart({name: panel.y(curve.risk[-1]) for name, curve in curves.items()}, panel.top)
    shades = [f"--shade:{100 * i // max(1, len(by_severity) - 1)}%" for i in range(len(by_severity))]
    for style, (name, curve) in zip(["", *shades], curves.items(), strict=True):
        element = group(svg, f"{name}: {with_sign(curve.risk[-1])} wrong of all images")
        points = [(panel.x(share), panel.y(risk)) for share, risk in zip(curve.coverage, curve.risk, strict=True)]
        if style:
            path(element, "severity-curve", points, style=style)
        else:
            path(element, "clean-curve", points)
        text(element, panel.x(1) + 5, heights[name] + 3.5, name.removeprefix("Severity ").lower(), "start")
    return markup(svg)


def _apart(heights: Mapping[str, float], top: float) -> dict[str, float]:
    """Heights of labels, moved up where they would overlap the one below, and down again from `top`."""
    names = sorted(heights, key=lambda name: heights[name])
    placed = [heights[name] for name in names]
    for i in reversed(range(len(placed) - 1)):
        placed[i] = min(placed[i], placed[i + 1] - _LABEL_HEIGHT)
    above = top - _LABEL_HEIGHT
    for i, height in enumerate(placed):
        above = placed[i] = max(height, above + _LABEL_HEIGHT)
    return dict(zip(names, placed, strict=True))
