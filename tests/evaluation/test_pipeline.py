"""Evaluation of a real, short run: logits, figures, resumption, and what is refused."""

import itertools
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from counterpoint.config import to_dict
from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, corrupt, find_frost, frost_source, read_cell
from counterpoint.data.cifar import CIFAR10
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError, StoppedError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.image_groups import OUTSIDE
from counterpoint.evaluation.members import load_model, member_logits
from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.metrics import brier, disagreement, ece, ece_rms, error, nll
from counterpoint.records.files import read_evaluated, read_results, write_record
from counterpoint.records.images import Images, Source
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.records.results import Results
from counterpoint.report.run import label_runs
from counterpoint.runs.folder import Run
from tests.heard import Heard
from tests.made_results import make_recalibrated
from tests.made_runs import copied, files_of, retrain
from tests.small import FOUR_STEPS, few_digits, held_out_images

CPU = torch.device("cpu")


def evaluate(run: Run, root: Path, **options: Any) -> Results:
    return evaluate_run(run, root, device="cpu", **options)


def without_times(results: Results) -> Results:
    return replace(results, evaluation=replace(results.evaluation, command="", finished="", seconds=0.0))


def member_probs(run: Run, images_NCHW: Tensor) -> np.ndarray:
    model, _ = load_model(run, CPU)
    return model.predict_members((images_NCHW / 255 - 0.5) / 0.5).double().numpy()


def test_a_limit_of_time_stops_it_and_the_same_call_goes_on(
    run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = without_times(evaluate(run, root, cell_images=5))
    shutil.rmtree(run.folder / "logits")
    (run.folder / "results.json").unlink()
    seconds = itertools.count(step=10)  # every look at the clock is ten seconds after the one before
    for module in ("evaluation.pipeline", "evaluation.results", "time_limit"):
        clock = SimpleNamespace(monotonic=lambda: next(seconds))
        monkeypatch.setattr(f"counterpoint.{module}.time", clock)
    calls = 0
    while not (run.folder / "results.json").exists():
        calls += 1
        with suppress(StoppedError):
            results = evaluate(run, root, cell_images=5, max_minutes=5)
    assert calls == 3, "76 sets of images and the figures, of 10 s each, at most 29 in five minutes"
    assert 770 < results.evaluation.seconds < 900, "the seconds of all calls"
    assert evaluate(run, root, cell_images=5).evaluation.seconds < 100, "an evaluation that was finished does not count"
    assert without_times(results) == whole


def test_the_commands_that_made_other_sets_are_kept(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def commands(words: str, evaluate_again: Callable[[], Results]) -> tuple[tuple[str, ...], str]:
        monkeypatch.setattr(sys, "argv", words.split())
        evaluation = evaluate_again().evaluation
        return evaluation.earlier_commands, evaluation.command

    def corrupted() -> Results:
        return evaluate(run, root, cell_images=5)

    first, then, last = (
        f"counterpoint evaluate run {option}" for option in ("--cell-images 5", "--clean-images 40", "--recompute")
    )
    assert commands(first, corrupted) == ((), first)
    assert commands(then, lambda: evaluate(run, root, suites=())) == ((first,), then)
    assert commands(last, lambda: recompute_results(run)) == ((first, then), last)
    (reported,) = label_runs([read_evaluated(run.folder)])
    assert reported.commands[-3:] == (first, then, last)
    assert commands(first, corrupted) == ((then,), first)


def test_two_evaluations_of_one_run_do_not_mix_their_logits(run: Run, root: Path) -> None:
    whole, refused = without_times(evaluate(run, root, cell_images=5)), 0
    shutil.rmtree(run.folder / "logits")

    def evaluate_beside() -> bool:
        nonlocal refused
        if refused < 2:
            with pytest.raises(InputError, match=r"another process is training or evaluating in .*; wait for it"):
                evaluate(run, root, cell_images=5, precision="bf16")
            refused += 1
        return False

    assert without_times(evaluate(run, root, cell_images=5, should_stop=evaluate_beside)) == whole
    assert refused == 2


def test_the_figures_are_those_of_the_network(run: Run, root: Path) -> None:
    results = evaluate(run, root)
    data = few_digits(40)
    labels = data.test.labels_N.numpy()
    clean = member_probs(run, data.test.images_NCHW)
    for probs, figures in [
        (clean.mean(0), results.clean.ensemble),
        *zip(clean, results.clean.members, strict=True),
    ]:
        confidence, correct = probs.max(1), probs.argmax(1) == labels
        assert figures.error == pytest.approx(error(probs, labels))
        assert figures.nll == pytest.approx(nll(probs, labels), rel=1e-4)
        assert figures.brier == pytest.approx(brier(probs, labels), rel=1e-4)
        assert figures.ece_width15 == pytest.approx(ece(confidence, correct), abs=1e-5)
        assert figures.ece_rms_mass15 == pytest.approx(ece_rms(confidence, correct, binning="mass"), abs=1e-5)

    assert [one.name for one in results.classes] == list(data.test.classes)
    assert sum(one.wrong for one in results.classes) == round(40 * results.clean.ensemble.error)

    assert results.corrupted is not None
    fog = torch.from_numpy(read_cell(root / "regenerated" / "digits-C-seed0", "fog", 3, 40).copy()).permute(0, 3, 1, 2)
    cell = results.corrupted.cells["fog"][2]
    saved_in_float16 = 1e-3
    assert cell.ensemble.nll == pytest.approx(nll(member_probs(run, fog).mean(0), labels), rel=saved_in_float16)
    aggregates, cells = results.corrupted.aggregates, list(results.corrupted.all_cells())
    for i, member in enumerate(aggregates.members):
        assert member["pooled"].nll == pytest.approx(np.mean([cell.members[i].nll for cell in cells]))
    by_cell = np.mean([cell.ensemble.error for cell in cells])
    for figures in aggregates.ensemble.values():
        assert figures.error == pytest.approx(by_cell)


def test_results_say_what_they_are(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("counterpoint.evaluation.image_groups.load_outside", lambda *arguments: asked.append(arguments))
    results = evaluate(run, root, cell_images=25)
    assert asked == [("digits", root)]
    assert read_results(run.folder / "results.json") == results
    assert results.config == to_dict(FOUR_STEPS)
    assert results.seed == 3
    assert results.evaluated_on == Images("digits", "test", 40)
    assert results.corrupted is not None
    assert results.corrupted.source == Source("regenerated", 0, "1", frost_source(find_frost(root)))
    assert (results.corrupted.images, results.corrupted.part) == (25, "test")
    assert tuple(results.corrupted.cells) == CORRUPTIONS
    assert results.shifts == {}
    scores = np.load(run.folder / "scores.npz")
    assert scores["clean/confidence"].shape == (40,)
    assert scores["snow-5/correct"].dtype == bool
    assert (~scores["snow-5/correct"]).mean() == pytest.approx(results.corrupted.cells["snow"][4].ensemble.error)


def test_evaluate_writes_the_results_and_the_scores_alone(run: Run, root: Path) -> None:
    before = files_of(run.folder)
    evaluate(run, root, cell_images=5)
    after = files_of(run.folder)
    added = {name for name in after.keys() - before.keys() if not name.startswith("logits/")}
    assert added == {"results.json", "scores.npz"}
    assert after.items() >= before.items()


def test_recompute_needs_no_network_and_no_images(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(run, root, cell_images=10)
    shutil.rmtree(run.folder / "checkpoints")
    before = files_of(run.folder)
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: pytest.fail("it read the data set"))
    again = recompute_results(run)
    assert without_times(again) == without_times(first)
    after = files_of(run.folder)
    assert {name for name in after if after[name] != before.get(name)} <= {"results.json"}


def test_all_that_was_asked_for_reaches_the_network(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.evaluation.image_groups.load_outside", lambda *_: few_digits(40, "cifar10"))
    monkeypatch.setitem(OUTSIDE, "digits", CIFAR10)
    results = evaluate(run, root, clean_images=15, cell_images=10, precision="bf16")
    assert results.evaluation.precision == "bf16 activations and convolutions, fp32 linear layers"
    assert results.corrupted is not None
    assert (results.evaluated_on.images, results.corrupted.images) == (15, 10)
    assert results.outside["cifar10"].images == 15
    assert results.outside["cifar10"].ensemble.auroc == pytest.approx(0.5, abs=0.02), "they are the same images"


def test_the_watcher_hears_of_the_corrupted_set_and_of_the_cells(run: Run, tmp_path: Path) -> None:
    heard = Heard()
    evaluate(run, tmp_path / "without a set", cell_images=2, watcher=heard)
    making, evaluating = "making digits-C-seed0-first-2", f"evaluating {run.experiment.name}"
    assert list(dict.fromkeys(work for work, _, _ in heard.counts)) == [making, evaluating]
    assert (making, 150, 150) in heard.counts, "2 images in each of 75 cells"
    assert (evaluating, 76, 76) in heard.counts
    assert heard.notes == []


def test_a_few_images_of_each_cell_have_the_figures_that_they_have_in_the_whole_set(
    run: Run, root: Path, tmp_path: Path
) -> None:
    from_whole = evaluate(run, root, cell_images=4)
    shutil.rmtree(run.folder / "logits")
    assert without_times(evaluate(run, tmp_path / "without a set", cell_images=4)) == without_times(from_whole)
    whole = evaluate(run, tmp_path / "without a set")
    assert whole.corrupted is not None
    assert whole.corrupted.images == 40
    assert without_times(whole) == without_times(evaluate(run, root))


def test_without_suites_there_are_clean_figures_only(run: Run, tmp_path: Path) -> None:
    results = evaluate(run, tmp_path / "without a set", suites=())
    assert results.corrupted is None
    assert results.made_from.corrupted is None
    assert read_results(run.folder / "results.json") == results
    assert not (tmp_path / "without a set").exists()


def test_held_out_images_under_other_corruptions(split_run: Run, split_data: DataSet, root: Path) -> None:
    results = evaluate(split_run, root, suites=[VALIDATION_EXTRA])
    assert results.corrupted is None
    (name, shifted), *others = results.shifts.items()
    assert (name, others) == ("validation-extra", [])
    assert (shifted.part, shifted.images, shifted.severities) == ("validation", 30, (1, 2, 3, 4, 5))
    assert {name: len(cells) for name, cells in shifted.cells.items()} == dict.fromkeys(EXTRA_CORRUPTIONS, 5)
    assert results.evaluated_on == Images("digits", "validation", 30)

    held_out = held_out_images(split_data, split_run.experiment)
    images_NHWC = held_out.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    spatter_NHWC = corrupt(images_NHWC, "spatter", 4, seed=0)
    probs_MNK = member_probs(split_run, torch.from_numpy(spatter_NHWC).permute(0, 3, 1, 2))
    labels, mean_NK, cell = held_out.labels_N.numpy(), probs_MNK.mean(0), shifted.cells["spatter"][3]
    assert cell.ensemble.error == pytest.approx(error(mean_NK, labels))
    assert cell.ensemble.nll == pytest.approx(nll(mean_NK, labels), rel=1e-3)
    assert cell.ensemble.brier == pytest.approx(brier(mean_NK, labels), rel=1e-3)
    assert [member.nll for member in cell.members] == pytest.approx([nll(p, labels) for p in probs_MNK], rel=1e-3)
    assert cell.disagreement == pytest.approx(disagreement(probs_MNK))
    cells = list(shifted.all_cells())
    assert shifted.aggregates.ensemble["by-cell"].error == pytest.approx(np.mean([c.ensemble.error for c in cells]))


def test_suites_of_earlier_evaluations_stay_in_the_results(split_run: Run, root: Path) -> None:
    first = evaluate(split_run, root, suites=[VALIDATION_EXTRA], cell_images=5)
    both = evaluate(split_run, root, suites=[CORRUPTED], cell_images=5)
    assert list(both.suites) == ["corrupted", "validation-extra"]
    assert both.shifts == first.shifts
    assert both.corrupted is not None
    assert (both.corrupted.part, both.corrupted.images) == ("test", 5)
    assert read_results(split_run.folder / "results.json") == both
    again = evaluate(split_run, root, suites=[VALIDATION_EXTRA], cell_images=5)
    assert without_times(again) == without_times(both)


def test_an_interrupted_suite_leaves_the_first_one_whole(
    split_run: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = evaluate(split_run, root, cell_images=5)
    scores = (split_run.folder / "scores.npz").read_bytes()
    sets = 0

    def interrupted(*arguments: Any) -> np.ndarray:
        nonlocal sets
        if sets == 4:
            raise KeyboardInterrupt
        sets += 1
        return member_logits(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.evaluation.inference.member_logits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate(split_run, root, suites=[VALIDATION_EXTRA], cell_images=5)
        assert read_results(split_run.folder / "results.json") == before
        heard = Heard()
        again = recompute_results(split_run, heard)
        (note,) = heard.notes
        assert note.startswith("validation-extra is left out: 16 of its files are missing; `counterpoint evaluate ")
        assert note.endswith(" --sets validation-extra` makes them")
        assert without_times(again) == without_times(before)
        assert again.shifts == {}
        assert (split_run.folder / "scores.npz").read_bytes() == scores
        sets = -12  # 16 more of them until it would be interrupted again
        results = evaluate(split_run, root, suites=[VALIDATION_EXTRA], cell_images=5)
    assert sets == 4, "the four cells that were finished are not computed again"
    assert results.corrupted == before.corrupted
    assert len(results.shifts["validation-extra"].cells) == 4


def test_a_run_on_everything_has_no_held_out_images_to_corrupt(run: Run, tmp_path: Path) -> None:
    before = files_of(run.folder)
    with pytest.raises(InputError, match=r"validation-extra needs images .* was trained on all; .*train_on=split"):
        evaluate(run, tmp_path / "nothing", suites=[CORRUPTED, VALIDATION_EXTRA])
    assert files_of(run.folder) == before
    assert not (tmp_path / "nothing").exists()


def test_an_unfinished_run_is_refused_before_anything_is_made(run: Run, tmp_path: Path) -> None:
    shutil.rmtree(run.folder / "checkpoints")
    with pytest.raises(InputError, match="is not finished: 0 of 4 steps are done"):
        evaluate(run, tmp_path / "nothing")
    assert not (run.folder / "logits").exists()
    assert not (tmp_path / "nothing").exists()


def recalibrated_beside(run: Run) -> Recalibrated:
    """A record as `recalibrate` leaves it: a network of so few steps is too poor to fit a temperature to."""
    record = replace(make_recalibrated(), made_from=read_results(run.folder / "results.json").made_from)
    write_record(run.folder / "recalibrated.json", record)
    return record


@pytest.mark.parametrize("change", ["cell images", "precision", "weights"])
def test_what_became_stale_is_told_and_left_out(split_run: Run, root: Path, tmp_path: Path, change: str) -> None:
    before: dict[str, Any] = {"cell_images": 5} if change == "cell images" else {"suites": ()}
    evaluate(split_run, root, **before)
    compare_run(split_run.folder, [copied(split_run, tmp_path / "other").folder])
    recalibrated_beside(split_run)
    whole = read_evaluated(split_run.folder)
    assert whole.notes == ()
    assert whole.recalibrated is not None
    assert whole.compared is not None

    if change == "weights":
        retrain(split_run)
    changes: dict[str, dict[str, Any]] = {
        "cell images": {"cell_images": 6},
        "precision": {"precision": "bf16"},
        "weights": {},
    }
    heard = Heard()
    evaluate(split_run, root, **before | changes[change], watcher=heard)
    folder = split_run.folder
    expected = [
        f"{folder / 'recalibrated.json'} was made from other logits than results.json; "
        f"`counterpoint recalibrate {folder}` makes it again",
        f"{folder / 'compared.json'} was made from other logits than results.json; "
        f"`counterpoint compare {folder} OTHER` makes it again",
    ]
    assert heard.notes == expected
    found = read_evaluated(folder)
    assert (found.recalibrated, found.compared) == (None, None)
    assert found.notes == tuple(f"left out: {note}" for note in expected)
    recomputing = Heard()
    recompute_results(split_run, recomputing)
    assert recomputing.notes == expected


def test_another_suite_makes_nothing_stale(split_run: Run, root: Path) -> None:
    evaluate(split_run, root, suites=())
    recalibrated = recalibrated_beside(split_run)
    heard = Heard()
    evaluate(split_run, root, suites=[VALIDATION_EXTRA], cell_images=5, watcher=heard)
    assert heard.notes == []
    assert read_evaluated(split_run.folder).recalibrated == recalibrated


def test_a_damaged_neighbour_is_told_and_fails_only_who_reads_it(run: Run, root: Path) -> None:
    (run.folder / "recalibrated.json").write_text("{")
    heard = Heard()
    results = evaluate(run, root, suites=(), watcher=heard)
    (note,) = heard.notes
    assert "recalibrated.json is damaged or is not JSON" in note
    assert f"`counterpoint recalibrate {run.folder}` makes it again" in note
    assert read_results(run.folder / "results.json") == results
    assert os.path.getsize(run.folder / "recalibrated.json") == 1, "it is not touched"
    with pytest.raises(InputError, match=r"recalibrated\.json is damaged or is not JSON"):
        read_evaluated(run.folder)
