"""The reliability diagram alone: everything that the page's style sheet says must be in the drawing itself."""

import re
from importlib.resources import files
from itertools import chain
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from counterpoint.errors import InputError
from counterpoint.report import load_runs, to_svg, write_report
from counterpoint.report.formats import svg
from counterpoint.report.numbers import with_sign
from tests.report.made import MakeEvaluated, changed

TAG = "{http://www.w3.org/2000/svg}"


def drawn(*runs: object) -> list[str]:
    """The texts of a drawing, from top to bottom."""
    return ["".join(element.itertext()) for element in fromstring(to_svg(runs)).iter(f"{TAG}text")]  # type: ignore[arg-type]


def test_the_drawing_names_each_run_with_its_error_of_calibration(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated("mine", members=2), make_evaluated("other", members=1)]
    eces = [with_sign(run.results.clean.ensemble.ece_width15) for run in runs]
    images = runs[0].results.evaluated_on.images
    assert drawn(*runs)[-3:] == [
        f"mine: ECE {eces[0]}",
        f"other: ECE {eces[1]}",
        f"15 equal-width bins, {images:,} images, 95 % intervals",
    ]
    assert eces[0] != eces[1]
    assert {"accuracy, %", "confidence, %", "over-confident"} < set(drawn(*runs))


def test_no_style_sheet_and_no_script_are_needed(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated(name, members=2) for name in "abcdefg"]
    root = fromstring(to_svg(runs))
    used = set()
    for element in root.iter():
        assert element.tag.startswith(TAG), "a program that reads SVG finds nothing without the namespace"
        assert not {"class", "style"} & element.attrib.keys()
        assert not [name for name in element.attrib if name.startswith("data-")]
        assert "var(" not in "".join(element.attrib.values())
        tag = element.tag.removeprefix(TAG)
        if tag in ("line", "path"):
            assert element.get("stroke"), element.attrib
        if tag in ("text", "rect"):
            assert element.get("fill"), element.attrib
        used |= {element.get("stroke"), element.get("fill")}
    assert set(svg._RUNS) < used, "each run has its colour"
    assert len(list(root.iter(f"{TAG}circle"))) > 1, "the first and the seventh run have other markers"


def test_the_colours_are_those_of_the_page_in_the_light() -> None:
    sheets = [
        files("counterpoint.report").joinpath("formats", name).read_text(encoding="utf-8")
        for name in ("style.css", "plots.css")
    ]
    light = dict(
        chain.from_iterable(re.findall(r"--([\w-]+): (#\w+);", text.partition("@media")[0]) for text in sheets)
    )
    assert list(svg._RUNS) == [light[f"run-{number}"] for number in range(1, len(svg._RUNS) + 1)]
    assert "run-7" not in light
    assert (light["text"], light["quiet"], light["rule"]) == (svg._TEXT, svg._QUIET, svg._RULE)


def test_the_drawing_is_as_high_as_its_runs_need(make_evaluated: MakeEvaluated) -> None:
    for count in (1, 5):
        root = fromstring(to_svg([make_evaluated(name) for name in "abcde"[:count]]))
        lowest = max(float(element.attrib["y"]) for element in root.iter(f"{TAG}text"))
        assert root.attrib["viewBox"] == f"0 0 360 {lowest + 8:.0f}"


def test_a_long_name_ends_within_the_drawing(make_evaluated: MakeEvaluated) -> None:
    label = drawn(make_evaluated("x" * 80))[-2].partition(": ECE")[0]
    assert label == "x" * 44 + "…"


def test_runs_on_different_images_are_refused(make_evaluated: MakeEvaluated) -> None:
    other = changed(make_evaluated("other"), "results.evaluated_on.key", "another")
    with pytest.raises(InputError, match=r"the runs are of different images \(.* images; .* images\); a diagram shows"):
        to_svg([make_evaluated("mine"), other])


def test_the_ending_of_the_file_names_the_format(tmp_path: Path, given_runs: list[Path]) -> None:
    write_report(given_runs[:1], tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == to_svg(load_runs(given_runs[:1]))
    write_report(given_runs[:1], tmp_path / "page")
    assert (tmp_path / "page").read_text(encoding="utf-8").lower().startswith("<!doctype html>")
