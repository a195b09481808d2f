import re
from dataclasses import replace

import pytest

from counterpoint.records.files import Evaluated
from counterpoint.records.threshold import Checked
from counterpoint.report import render, to_markdown
from counterpoint.report.run import label_runs
from counterpoint.report.sections.threshold import RunThreshold, Thresholds, thresholds
from counterpoint.report.tables import Table
from counterpoint.report.thresholds import threshold_in_words
from tests.report.made import MakeEvaluated, changed, changed_all


@pytest.fixture
def two_runs(make_evaluated: MakeEvaluated) -> list[Evaluated]:
    return [make_evaluated(name, members=members, shifted=True, more=True) for name, members in (("a", 2), ("b", 1))]


def built(runs: list[Evaluated]) -> Thresholds:
    content = thresholds(label_runs(runs))
    assert content is not None
    return content


def tables_of(run: RunThreshold) -> list[Table]:
    return [table for table in (run.checks, run.cells) if table]


def test_each_run_has_its_own_threshold(two_runs: list[Evaluated]) -> None:
    runs = built(two_runs).runs
    assert [run.label for run in runs] == ["a", "b"]
    for run, evaluated in zip(runs, two_runs, strict=True):
        assert evaluated.thresholded is not None
        assert run.words == threshold_in_words(evaluated.thresholded, evaluated.results.is_ensemble)
        assert run.words[0].startswith(f"Keep predictions with a confidence of {_threshold(evaluated)} or more")
        assert [table.caption.partition(":")[0] for table in tables_of(run)] == 2 * [run.label]
    assert runs[0].words != runs[1].words


def _threshold(run: Evaluated) -> float:
    assert run.thresholded is not None
    return run.thresholded.promise.chosen.threshold


def test_a_run_without_one_is_left_out(two_runs: list[Evaluated]) -> None:
    without = [replace(two_runs[0], thresholded=None), two_runs[1]]
    assert [run.label for run in built(without).runs] == ["b"]
    assert thresholds(label_runs(without[:1])) is None
    assert 'id="threshold"' not in render(without[:1])


def test_the_maps_share_one_scale(two_runs: list[Evaluated]) -> None:
    worst = Checked(40, 40, 40, "breaks")
    runs = built([changed(two_runs[0], "thresholded.cells.fog.0", worst), two_runs[1]]).runs
    cells = [(entry.text, entry.heat) for run in runs if run.cells for row in run.cells.rows for entry in row.entries]
    assert ("✗ 100.0", 100) in cells
    for text, heat in cells:
        if text.startswith(("✗", "?")):
            assert heat == pytest.approx(max(15, float(text.split()[1])), abs=0.51)
        else:
            assert heat == 0, "what is not above the target has no colour"


def test_page_and_markdown_have_every_number(two_runs: list[Evaluated]) -> None:
    page, text = render(two_runs), to_markdown(two_runs)
    for run in built(two_runs).runs:
        assert all(words in page.replace("&#34;", '"') for words in run.words)
        for row in (row for table in tables_of(run) for row in table.rows):
            assert all(f">{entry.text}<" in page for entry in row.entries)
            assert f"| {row.label} | {' | '.join(entry.text for entry in row.entries)} |" in text
    assert len(re.findall(r'<th scope="row">Pixelate</th>\n<td class="warm" style="--heat:\d+%">(?:✗ )?\d', page)) >= 2


def test_without_images_to_check_it_on_there_are_words_alone(make_evaluated: MakeEvaluated) -> None:
    run = make_evaluated("mine", members=2, more=True)
    (clean,) = built([run]).runs
    assert clean.cells is None
    assert [row.label for row in tables_of(clean)[0].rows] == ["clean"]
    bare = changed_all(run, {"thresholded.test": None})
    (alone,) = built([bare]).runs
    assert tables_of(alone) == []
    assert alone.words[0] in render([bare])
    assert f"## Threshold: mine\n\n{alone.words[0]}".replace("\N{NO-BREAK SPACE}", " ") in to_markdown([bare])
