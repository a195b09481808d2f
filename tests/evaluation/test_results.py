"""results.json as a whole, against plain computations from the same logits."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES
from counterpoint.errors import InputError
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.metrics import (
    disagreement,
    ece,
    image_scores,
    independent_disagreement,
    intervals_over_cells,
    mean_pairwise_kl,
    noise_floor,
    score_set,
)
from counterpoint.metrics.scores import scores_of_checked
from counterpoint.records.codec import encode
from counterpoint.records.figures import Bin
from counterpoint.records.files import read_evaluated, read_results
from counterpoint.records.images import Images, MadeFrom
from counterpoint.records.results import HealthAfter, Results, Segment, Shifted
from counterpoint.runs.folder import Run
from tests.made_runs import MakeRun, add_suite, copied, evaluated, files_of, saved, set_about, shift_of


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    return make_run(members=3, train_on="split")


@pytest.fixture(scope="module")
def results(run: Run) -> Results:
    return evaluated(run)


@pytest.fixture(scope="module")
def corrupted(results: Results) -> Shifted:
    assert results.corrupted is not None
    return results.corrupted


def probs(run: Run, name: str) -> np.ndarray:
    exponentials = np.exp(saved(run, name).astype(np.float64))
    return exponentials / exponentials.sum(axis=2, keepdims=True)


def without_times(results: Results) -> Results:
    return replace(results, evaluation=replace(results.evaluation, finished="", seconds=0.0))


def test_everything_comes_back_from_the_file(run: Run, results: Results) -> None:
    assert read_results(run.folder / "results.json") == results
    found = read_evaluated(run.folder)
    assert (found.results, found.recalibrated, found.compared, found.notes) == (results, None, None, ())


def test_the_same_logits_give_the_same_file(run: Run, results: Results, tmp_path: Path) -> None:
    again = copied(run, tmp_path / "again")
    assert without_times(evaluated(again)) == without_times(results)
    before, after = files_of(run.folder), files_of(again.folder)
    assert {name for name in after if after[name] != before[name]} <= {"results.json"}
    first, second = (json.loads(files["results.json"]) for files in (before, after))
    assert json.dumps(first | {"evaluation": None}) == json.dumps(second | {"evaluation": None})


def test_results_and_scores_name_the_logits_that_they_were_made_from(run: Run, results: Results) -> None:
    expected = MadeFrom("weights of seed 0", "fp32", Images("digits", "validation", 80), shift_of(CORRUPTED, 30))
    assert results.made_from == expected
    assert read_scores(run.folder).made_from == expected
    assert (results.evaluation.weights, results.evaluation.precision) == ("weights of seed 0", "fp32")


def test_each_cell_is_scored_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copied(run, tmp_path / "run")
    sets, predictors = [], []

    def counted_set(probs_MNK: np.ndarray, *labels_and_groups: Any) -> Any:
        sets.append(probs_MNK.shape)
        return score_set(probs_MNK, *labels_and_groups)

    def counted(probs_NK: np.ndarray, *labels_and_groups: Any) -> Any:
        predictors.append(probs_NK.shape)
        return scores_of_checked(probs_NK, *labels_and_groups)

    monkeypatch.setattr("counterpoint.evaluation.results.score_set", counted_set)
    monkeypatch.setattr("counterpoint.metrics.summary.scores_of_checked", counted)
    evaluated(run)
    assert sets == [(3, 80, 3), *[(3, 30, 3)] * 75]
    assert predictors == [*[(80, 3)] * 4, *[(30, 3)] * 4 * 75], "the ensemble and three members"


def test_aggregates_between_members_are_means_over_cells(run: Run, corrupted: Shifted) -> None:
    cells = [probs(run, f"{name}-{severity}") for name, severity in CORRUPTED.cells]
    assert corrupted.aggregates.disagreement == pytest.approx(np.mean([disagreement(cell) for cell in cells]))
    assert corrupted.aggregates.pairwise_kl == pytest.approx(np.mean([mean_pairwise_kl(cell) for cell in cells]))


def test_a_cell_has_the_figures_of_its_own_logits(run: Run, corrupted: Shifted) -> None:
    assert list(corrupted.cells) == list(CORRUPTIONS)
    for name, severity in CORRUPTED.cells:
        ensemble = image_scores(probs(run, f"{name}-{severity}").mean(0), saved(run, "cell-labels"))
        assert corrupted.cells[name][severity - 1].ensemble.nll == pytest.approx(ensemble.nll.mean())


def test_the_ensemble_has_floors_on_every_set(run: Run, results: Results, corrupted: Shifted) -> None:
    assert results.clean.honest is not None
    assert len(results.clean.honest.members) == 3
    cell = corrupted.cells["fog"][4]
    assert cell.honest is not None
    assert cell.honest.members == (), "too dear for 75 cells"
    scores = image_scores(probs(run, "fog-5").mean(0), saved(run, "cell-labels"))
    expected = noise_floor(scores.confidence, scores.correct)
    estimate = cell.honest.ensemble["ece_width15"]
    assert estimate.floor == pytest.approx(expected.ece_mean)
    assert estimate.excess == pytest.approx(ece(scores.confidence, scores.correct) - expected.ece_mean)
    floors = [cell.honest.ensemble["ece_rms_mass15"].floor for cell in corrupted.all_cells() if cell.honest]
    assert len(floors) == 75
    assert corrupted.aggregates.ensemble["by-cell"].ece_rms_mass15_floor == pytest.approx(np.mean(floors))


def test_classes_are_counted(run: Run, results: Results) -> None:
    """These runs do not say the names of their classes, as runs of the first version do not."""
    labels, predicted = saved(run, "labels"), probs(run, "clean").mean(0).argmax(axis=1)
    assert [one.name for one in results.classes] == ["0", "1", "2"]
    for k, one in enumerate(results.classes):
        assert one.images == (labels == k).sum()
        assert one.wrong == ((labels == k) & (predicted != k)).sum()
        assert one.predicted_right == ((labels == k) & (predicted == k)).sum()


def test_figures_over_all_cells_have_intervals(run: Run, corrupted: Shifted) -> None:
    labels = saved(run, "cell-labels")
    grid = {
        name: [image_scores(probs(run, f"{name}-{severity}").mean(0), labels) for severity in SEVERITIES]
        for name in CORRUPTIONS
    }
    assert corrupted.aggregates.intervals is not None
    for name, expected in intervals_over_cells(grid).items():
        found = getattr(corrupted.aggregates.intervals, name)
        ends = (expected.value, expected.low, expected.high)
        assert (found.value, found.low, found.high) == pytest.approx(ends, abs=1e-6), name


def test_one_image_has_no_interval(make_run: MakeRun) -> None:
    results = evaluated(make_run(members=2, train_on="split", cell_images=1))
    assert results.corrupted is not None
    assert results.corrupted.aggregates.intervals is None


def test_the_floor_over_cells_counts_an_image_with_all_its_cells(run: Run, corrupted: Shifted) -> None:
    labels, floors = saved(run, "cell-labels"), []
    for name in CORRUPTIONS:
        cells = [image_scores(probs(run, f"{name}-{severity}").mean(axis=0), labels) for severity in SEVERITIES]
        confidence, correct = (np.concatenate([getattr(c, of) for c in cells]) for of in ("confidence", "correct"))
        image = np.tile(np.arange(len(labels)), len(cells))
        floors.append(noise_floor(confidence, correct, images=image).ece_mean)
    assert corrupted.aggregates.ensemble["by-corruption"].ece_width15_floor == pytest.approx(np.mean(floors))
    assert corrupted.aggregates.floors_over == "images"


def test_risk_coverage_pools_the_corruptions_of_a_severity(run: Run, results: Results, corrupted: Shifted) -> None:
    assert results.clean.risk_coverage is not None
    assert len(results.clean.risk_coverage.risk) == 80, "a point an image where there are fewer than 100"
    assert len(corrupted.risk_coverage) == len(SEVERITIES)
    for severity, curve in zip(SEVERITIES, corrupted.risk_coverage, strict=True):
        ensemble = np.concatenate([probs(run, f"{name}-{severity}").mean(0) for name in CORRUPTIONS])
        wrong = ensemble.argmax(1) != np.tile(saved(run, "cell-labels"), len(CORRUPTIONS))
        sure_first = wrong[np.argsort(-ensemble.max(1))]
        half = curve.coverage.index(0.5)
        assert curve.risk[half] == pytest.approx(sure_first[: len(wrong) // 2].mean(), abs=0.01)
        assert curve.risk[-1] == pytest.approx(wrong.mean())


def test_each_member_has_bins_on_clean_images_and_at_each_severity(
    run: Run, results: Results, corrupted: Shifted
) -> None:
    for i, bins in enumerate(results.clean.member_reliability):
        alone = image_scores(probs(run, "clean")[i], saved(run, "labels"))
        assert binned_ece(bins.width15) == pytest.approx(ece(alone.confidence, alone.correct))
        assert binned_ece(bins.mass15) == pytest.approx(ece(alone.confidence, alone.correct, binning="mass"))
    assert [len(members) for members in corrupted.member_bins] == [3] * len(SEVERITIES)
    for severity, members in zip(SEVERITIES, corrupted.member_bins, strict=True):
        of_all = np.concatenate([probs(run, f"{name}-{severity}")[2] for name in CORRUPTIONS])
        alone = image_scores(of_all, np.tile(saved(run, "cell-labels"), len(CORRUPTIONS)))
        assert binned_ece(members[2]) == pytest.approx(ece(alone.confidence, alone.correct))


def binned_ece(bins: Sequence[Bin]) -> float:
    images = sum(row.count for row in bins)
    return sum(row.count * abs(row.confidence - row.accuracy) for row in bins) / images


def test_chance_is_counted_with_the_classes(results: Results) -> None:
    error = np.mean([member.error for member in results.clean.members])
    assert results.collapse is not None
    assert results.collapse.clean.independent_disagreement == pytest.approx(independent_disagreement(float(error), 3))


def test_another_suite_has_its_own_figures_beside_the_papers(run: Run, results: Results, tmp_path: Path) -> None:
    scores_file = (run.folder / "scores.npz").read_bytes()
    run = copied(run, tmp_path / "run")
    add_suite(run, "validation-extra")
    both = evaluated(run)
    assert both.corrupted == results.corrupted
    shifted = both.shifts["validation-extra"]
    assert shifted.shift == shift_of(VALIDATION_EXTRA, 20)
    assert list(shifted.cells) == list(EXTRA_CORRUPTIONS)
    labels_N = saved(run, "validation-extra/labels")
    for name, severity in VALIDATION_EXTRA.cells:
        scores = image_scores(probs(run, f"validation-extra/{name}-{severity}").mean(0), labels_N)
        assert shifted.cells[name][severity - 1].ensemble.brier == pytest.approx(scores.brier.mean())
    assert len(shifted.risk_coverage) == 5
    assert both.collapse == results.collapse, "it is of the paper's suite"
    assert both.made_from == results.made_from
    assert (run.folder / "scores.npz").read_bytes() == scores_file
    assert read_results(run.folder / "results.json") == both


def test_a_suite_that_is_not_finished_is_left_out(run: Run, tmp_path: Path) -> None:
    run = copied(run, tmp_path / "run")
    add_suite(run, "validation-extra")
    for path in (run.folder / "logits").glob("fog-*.npy"):
        path.unlink()
    found = evaluated(run)
    assert found.corrupted is None
    assert list(found.suites) == ["validation-extra"]
    assert found.made_from.corrupted is None
    assert read_scores(run.folder).cells == {}
    assert found.collapse is not None
    assert found.collapse.severities == ()


def test_the_run_is_described_by_its_whole_log(make_run: MakeRun) -> None:
    run = clean_only(make_run())
    here, there = ({"device": name, "commit": name[0]} for name in ("here", "there"))
    records: list[dict[str, Any]] = [
        {"event": "started", "step": 0, "environment": here},
        {"event": "epoch", "time": "Monday", "seconds": 10.0},
        {"event": "started", "step": 7, "path": "fast", "environment": there},
        {"event": "started", "step": 9, "engine": "compiled", "environment": there},
        {"event": "epoch", "time": "Tuesday", "seconds": 25.0},
    ]
    (run.folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    described = evaluated(run).trained
    assert (described.train_seconds, described.finished) == (25.0, "Tuesday")
    assert described.segments == (
        Segment(0, None, "here", "h"),
        Segment(7, "fast", "there", "t"),
        Segment(9, "compiled", "there", "t"),
    )


def test_a_single_network_has_nothing_to_differ(make_run: MakeRun) -> None:
    results = evaluated(make_run(members=1))
    assert results.collapse is None
    assert not results.is_ensemble
    assert results.clean.pairwise_kl is None
    assert results.corrupted is not None
    assert results.corrupted.aggregates.disagreement is None
    assert results.clean.honest is not None
    assert results.clean.honest.members == (results.clean.honest.ensemble,)


def test_the_health_of_the_log_is_kept(make_run: MakeRun) -> None:
    run = clean_only(make_run())
    assert evaluated(run).health is None, "an older log has none"
    health = {"channels": 100, "below_eps": 30, "dead_scales": 1, "spread_r": 0.5, "spread_s": 0.25}
    record = {"event": "epoch", "epoch": 1, "step": 5, "time": "Monday", "seconds": 10.0, "health": health}
    (run.folder / "log.jsonl").write_text(json.dumps(record) + "\n")
    kept = evaluated(run).health
    assert kept is not None
    assert kept.epochs == (HealthAfter(1, below_eps=30, dead_scales=1, spread_r=0.5, spread_s=0.25),)
    assert "try decay_rs=false" in kept.warnings[0]


def test_damaged_logits_are_named(make_run: MakeRun) -> None:
    run = clean_only(make_run())
    (run.folder / "logits" / "clean.npy").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"clean\.npy is missing or damaged .* `counterpoint evaluate"):
        evaluated(run)
    assert not (run.folder / "results.json").exists()


def test_logits_that_do_not_say_whose_they_are_are_refused(make_run: MakeRun) -> None:
    run = make_run()
    set_about(run, corrupted={"source": {"kind": "borrowed"}, "images": 30})
    with pytest.raises(InputError, match=r"about\.json is damaged \(source\.kind is 'borrowed', .* evaluate the run"):
        evaluated(run)
    set_about(run, corrupted=encode(shift_of(CORRUPTED, 30)), weights=None)
    with pytest.raises(InputError, match=r"about\.json is damaged \(weights is missing\)"):
        evaluated(run)


def clean_only(run: Run) -> Run:
    """Without a cell of the suite, which is most of the work and then left out."""
    (run.folder / "logits" / "fog-1.npy").unlink()
    return run
