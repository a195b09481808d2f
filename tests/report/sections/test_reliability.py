from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from counterpoint import evaluate_logits
from counterpoint.report.loading import load_runs
from counterpoint.report.run import label_runs
from counterpoint.report.sections.reliability import reliability
from tests.made_predictions import made_labels, made_logits
from tests.report.made import MakeEvaluated, changed


def test_one_pair_of_plots_for_each_set_of_images(make_evaluated: MakeEvaluated) -> None:
    runs = [make_evaluated(name, members=1) for name in "abc"]
    content = reliability(label_runs([*runs[:2], changed(runs[2], "results.evaluated_on.part", "validation")]))
    both, alone = content.sets
    assert [len(one.plots) for one in content.sets] == [2, 2]
    for plot in both.plots:
        drawn = {one.get("data-run") for one in ElementTree.fromstring(plot.svg).iter("g")}
        assert drawn == {"0", "1", None}
        assert [table.caption[0] for table in plot.tables] == ["a", "b"]
    assert {one.get("data-run") for one in ElementTree.fromstring(alone.plots[0].svg).iter("g")} == {"2", None}


def test_the_area_between_a_line_and_zero_is_the_ece(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=1)
    svg = ElementTree.fromstring(reliability(label_runs([run])).sets[0].plots[1].svg)
    (line,) = (one for one in svg.iter("path") if one.get("class") == "line")
    (zero,) = (one for one in svg.iter("line") if one.get("class") == "zero-line")
    places = [float(number) for number in line.attrib["d"].removeprefix("M").split()]
    heights = [float(one.attrib["y1"]) for one in svg.iter("line") if one.get("class") == "grid"]
    ticks = [float((one.text or "").replace("−", "-")) for one in svg.iter("text") if one.get("class") == "end"]
    per_point = (heights[0] - heights[-1]) / (ticks[-1] - ticks[0])
    steps = zip(places[::4], places[2::4], places[1::4], strict=True)
    area = sum((right - left) * abs(float(zero.attrib["y1"]) - y) for left, right, y in steps)
    assert area / (302 * per_point) == pytest.approx(100 * run.results.clean.ensemble.ece_mass15, abs=0.02)


def test_members_are_thin_lines_without_intervals(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated(members=2)
    for plot in reliability(label_runs([run])).sets[0].plots:
        lines = [one for one in ElementTree.fromstring(plot.svg).iter("g") if one.get("data-part") == "members"]
        assert len(lines) == 2
        assert not any(mark.get("class") in ("interval", "marker") for one in lines for mark in one.iter())
        assert "each member" in plot.legend


def test_results_without_bins_of_members_show_none(make_evaluated: MakeEvaluated) -> None:
    earlier = changed(make_evaluated(members=2), "results.clean.member_reliability", ())
    for plot in reliability(label_runs([earlier])).sets[0].plots:
        assert "members" not in plot.svg + plot.legend


@pytest.mark.parametrize(("groups", "has_intervals"), [(9, False), (10, True)])
def test_too_few_groups_have_no_intervals(groups: int, has_intervals: bool, tmp_path: Path) -> None:
    labels = made_labels(120)
    given = {"logits": made_logits(labels), "labels": labels, "groups": np.arange(120) % groups}
    assert (evaluate_logits(given, tmp_path / "run").clean.honest is not None) == has_intervals
    for plot in reliability(label_runs(load_runs([tmp_path / "run"]))).sets[0].plots:
        drawn = [one for one in ElementTree.fromstring(plot.svg).iter() if one.get("class") == "interval"]
        assert bool(drawn) == has_intervals
        assert ("interval" in plot.svg) == has_intervals
        assert all((row.entries[3].text != "–") == has_intervals for row in plot.tables[0].rows)
