"""The report as one self-contained page."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from counterpoint import __version__
from counterpoint.records.files import Evaluated
from counterpoint.report.run import label_runs, page_title
from counterpoint.report.sections import build_sections


def render(evaluated: Sequence[Evaluated], title: str | None = None) -> str:
    """The page of one or more runs, as HTML that needs no other file.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.report import load_runs, render
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> render(load_runs(["runs/theirs"])).lower().startswith("<!doctype html>")
    True
    """
    runs = label_runs(evaluated)
    # It makes the plots answer to mouse, keyboard and touch. The page's content policy names it by its hash.
    script = files("counterpoint.report").joinpath("formats", "plots.js").read_text(encoding="utf-8")
    return template("counterpoint.report", "formats/page.html").render(
        title=title or page_title(runs),
        sections=build_sections(runs),
        script=Markup(script),
        script_hash="sha256-" + b64encode(sha256(script.encode()).digest()).decode(),
        version=__version__,
    )


def template(package: str, path: str) -> Template:
    """A template among a package's files. A name that it is not given is an error."""
    environment = Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(path)
