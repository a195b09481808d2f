"""The reliability diagram as a drawing of its own, for slides and papers.

Every stroke carries its own colour, because programs that place a drawing on a slide do not read style sheets.
"""

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, fromstring, tostring

from counterpoint.errors import InputError
from counterpoint.records.files import Evaluated
from counterpoint.report.bins import bins_in_words, reliability_of
from counterpoint.report.drawing.calibration import RunBins, reliability_chart
from counterpoint.report.drawing.series import draw_key, ink_of
from counterpoint.report.drawing.strokes import text
from counterpoint.report.numbers import with_sign
from counterpoint.report.run import by_images, label_runs

_WIDTH, _HEIGHT, _ROW = 360, 350, 16
_LONGEST = 45  # letters of a name, so that its line ends within the drawing
_TEXT, _QUIET, _RULE = "#22252b", "#5d636e", "#dedbd3"
_RUNS = ("#0068a8", "#b84a08", "#00785a", "#a03c88", "#5a3c00", "#4a5568")
_OF_RUN = "colour of the run"
_BY_TAG: Mapping[str, Mapping[str, str]] = {
    "text": {"fill": _QUIET, "font-size": "10.5"},
    "line": {"stroke-width": "1"},
    "path": {"fill": "none"},
}
_BY_CLASS: Mapping[str, Mapping[str, str]] = {
    "grid": {"stroke": _RULE},
    "axis-line": {"stroke": _RULE},
    "perfect": {"stroke": _QUIET, "stroke-dasharray": "4 4"},
    "line": {"stroke": _OF_RUN, "stroke-width": "1.25", "stroke-linejoin": "round"},
    "marker": {"fill": _OF_RUN, "stroke": _OF_RUN, "stroke-width": "1.25"},
    "interval": {"stroke": _OF_RUN, "stroke-width": "1.5", "stroke-opacity": "0.6"},
    "count-bar": {"fill": _OF_RUN},
    "region": {"font-style": "italic"},
    "start": {"text-anchor": "start"},
    "middle": {"text-anchor": "middle"},
    "end": {"text-anchor": "end"},
    "axis": {"text-anchor": "middle", "font-size": "11", "fill": _TEXT},
}


def to_svg(evaluated: Sequence[Evaluated]) -> str:
    """The reliability diagram of one or more runs on the same clean images, with equal-width bins, as an SVG file.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, to_svg
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> to_svg(load_runs(["runs/theirs"])).startswith("<svg xmlns=")
    True
    """
    (images, runs), *others = by_images(label_runs(evaluated))
    if others:
        raise InputError(
            f"the runs are of different images ({images}; {others[0][0]}); a diagram shows runs on the same images: "
            "name only these"
        )
    bins = [reliability_of(run.clean).width15 for run in runs]
    words = " ".join(f"{run.label}: {bins_in_words(rows)}" for run, rows in zip(runs, bins, strict=True))
    of_runs = [RunBins(ink_of(run), rows) for run, rows in zip(runs, bins, strict=True)]
    svg = fromstring(reliability_chart(of_runs, f"Reliability diagram. {words}"))
    for row, run in enumerate(runs):
        foot = _HEIGHT + _ROW * (row + 1)
        draw_key(svg, ink_of(run), 46, foot - 3.5)
        name = run.label if len(run.label) <= _LONGEST else f"{run.label[: _LONGEST - 1]}…"
        text(svg, 80, foot, f"{name}: ECE {with_sign(run.clean.ensemble.ece_width15)}", "start")
    foot = _HEIGHT + _ROW * (len(runs) + 1)
    text(svg, 46, foot, f"15 equal-width bins, {runs[0].results.evaluated_on.images:,} images, 95 % intervals", "start")
    _colour(svg, "")
    size = {"width": str(2 * _WIDTH), "height": str(2 * (foot + 8)), "viewBox": f"0 0 {_WIDTH} {foot + 8}"}
    about = {name: svg.attrib[name] for name in ("role", "aria-label")}
    svg.attrib.clear()
    svg.attrib.update({"xmlns": "http://www.w3.org/2000/svg", **size, "font-family": "Helvetica, Arial, sans-serif"})
    svg.attrib.update(about)
    return tostring(svg, encoding="unicode") + "\n"


def _colour(element: Element, colour: str) -> None:
    """Put what the page's style sheet says of each class into the elements themselves."""
    classes = element.attrib.pop("class", "").split()
    colour = next((_RUNS[int(name[4:]) - 1] for name in classes if name.startswith("run-")), colour)
    for name in ("data-run", "data-part", "data-x", "data-y"):
        element.attrib.pop(name, None)
    for style in (_BY_TAG.get(element.tag, {}), *(_BY_CLASS.get(name, {}) for name in classes)):
        element.attrib.update({name: colour if value == _OF_RUN else value for name, value in style.items()})
    for child in element:
        _colour(child, colour)
