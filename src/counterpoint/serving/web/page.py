"""The page and its two files. It is written once, before the first request."""

from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from counterpoint import __version__
from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES
from counterpoint.records.figures import Bin
from counterpoint.report.bins import accuracy_interval, bins_in_words
from counterpoint.report.drawing.calibration import equal_width_chart
from counterpoint.report.formats.html import template
from counterpoint.report.numbers import with_sign
from counterpoint.report.recalibrations.words import NONE, quoted
from counterpoint.report.suites import corruption_label, counted
from counterpoint.serving.web.facts import BINS, Diagram, Facts, facts_in_words
from counterpoint.serving.web.limits import MOST_BYTES


@dataclass(frozen=True)
class Chart:
    """The diagram as the page shows it, with a sentence for each bin."""

    svg: Markup
    caption: str
    bins: tuple[str, ...]


def render(facts: Facts) -> str:
    """The page."""
    return template("counterpoint.serving.web", "page.html").render(
        facts=facts,
        about=_about(facts),
        chart=_chart(facts.diagram) if isinstance(facts.diagram, Diagram) else None,
        official=CORRUPTIONS,
        extra=EXTRA_CORRUPTIONS,
        label_of=corruption_label,
        severities=SEVERITIES,
        most_bytes=MOST_BYTES,
        version=__version__,
    )


def style() -> str:
    """The report's style, and what the page adds."""
    return _file("counterpoint.report", "formats", "style.css") + _file("counterpoint.serving.web", "page.css")


def script() -> str:
    return _file("counterpoint.serving.web", "page.js")


def _file(package: str, *path: str) -> str:
    return files(package).joinpath(*path).read_text(encoding="utf-8")


def _about(facts: Facts) -> str:
    words = facts_in_words(facts)
    name = quoted(facts.recalibration, facts.members > 1)
    confidence = f"Recalibrated, {name}." if facts.recalibration != NONE else "The network’s own confidence."
    sure = "" if facts.sure_from is None else f" Not sure below a confidence of {facts.sure_from}."
    return f"{words[:1].upper()}{words[1:]}. {confidence}{sure}"


def _chart(diagram: Diagram) -> Chart:
    images = diagram.images
    on = f"{images.images:,} {images.part} images of {images.dataset}"
    again = ""
    if diagram.recalibrated and images.part == "validation":
        again = " The recalibration was fitted on some of these images, so it looks a little better here than it is."
    caption = (
        f"The diagram is of {on}, without corruption. Each bar is a bin of confidence. Its height is the share of "
        "right predictions. A whisker, where there is one, is the 95 % interval of that share. The bars below count "
        f"the images of each bin.{again}"
    )
    alternative = f"Reliability diagram on {on}. {bins_in_words(diagram.bins)}"
    by_number = {round(row.high * BINS) - 1: row for row in diagram.bins}
    sentences = tuple(_bin_sentence(diagram, number, by_number.get(number)) for number in range(BINS))
    return Chart(equal_width_chart(diagram.bins, alternative, places=BINS), caption, sentences)


def _bin_sentence(diagram: Diagram, number: int, row: Bin | None) -> str:
    """What became of images with a confidence in a bin, which may hold none."""
    confidence = f"confidence from {100 * number / BINS:.1f} to {100 * (number + 1) / BINS:.1f}\N{NO-BREAK SPACE}%"
    if row is None:
        return f"None of the {diagram.images.images:,} images had a {confidence}."
    right = f"{with_sign(row.accuracy)} of the predictions were right"
    found = accuracy_interval(row)
    interval = f" (interval {100 * found[0]:.0f} to {100 * found[1]:.0f})" if found else ""
    return f"{counted(row.count, 'image')} had a {confidence}: {right}{interval}."
