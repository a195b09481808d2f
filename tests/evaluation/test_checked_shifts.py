"""Recalibration, threshold and comparison on a user's own shifts, and what counts after these have changed."""

import csv
import io

import numpy as np
import pytest
from scipy.special import softmax

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.metrics import ece, nll
from counterpoint.records.codec import encode
from counterpoint.records.files import read_evaluated, stale_notes
from counterpoint.records.images import Shift, Source
from counterpoint.records.results import Results
from counterpoint.report import render, to_csv, to_markdown
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from counterpoint.storage.files import read_json, write_json
from tests.made_runs import CLASSES, MakeRun, evaluated, made_logits, saved

IMAGES = 40


@pytest.fixture(name="run")
def a_run_with_two_shifts(make_run: MakeRun) -> Run:
    return with_shifts(make_run("ours", train_on="split"))


def with_shifts(run: Run, seed: int = 0) -> Run:
    """The clean set and two shifts: one at three severities, one without."""
    path = run.folder / "logits" / "about.json"
    about = read_json(path)
    del about["corrupted"]
    shifts = {"fog": shift_of("fog", 3), "hospital": shift_of("hospital", 1)}
    write_json(path, about | {"suites": {name: encode(shift) for name, shift in shifts.items()}})
    rng, labels_N = np.random.default_rng(seed), np.arange(IMAGES) % CLASSES
    for name, shift in shifts.items():
        write_array(path.parent / name / "labels.npy", labels_N)
        for severity in shift.severities:
            logits_MNK = made_logits(rng, labels_N, run.experiment.members, 2 - 0.5 * severity).astype(np.float16)
            write_array(path.parent / name / f"{name}-{severity}.npy", logits_MNK)
    return run


def shift_of(name: str, severities: int, key: str = "key") -> Shift:
    return Shift(Source("own", key=f"{key} of {name}"), IMAGES, "test", (name,), tuple(range(1, severities + 1)))


def set_key(run: Run, name: str, key: str) -> Results:
    """Let the shift's images be others."""
    path = run.folder / "logits" / "about.json"
    about = read_json(path)
    about["suites"][name]["source"]["key"] = key
    write_json(path, about)
    return evaluated(run)


def test_a_temperature_is_applied_to_the_shifts(run: Run) -> None:
    evaluated(run)
    recalibrated = recalibrate_run(run)
    way = recalibrated.ways["before"]
    temperature = np.exp(way.recalibration.log_temperatures[0].value)
    labels_N = saved(run, "fog/labels")

    def probs(file: str) -> np.ndarray:
        return np.asarray(softmax(saved(run, file).astype(np.float64) / temperature, axis=2).mean(axis=0))

    hospital, fog = way.shifts["hospital"], way.shifts["fog"]
    probs_NK = probs("hospital/hospital-1")
    assert hospital.ensemble["by-corruption"].nll == pytest.approx(nll(probs_NK, labels_N))
    expected = ece(probs_NK.max(1), probs_NK.argmax(1) == labels_N)
    assert hospital.ensemble["by-corruption"].ece_width15 == pytest.approx(expected)
    by_hand = [nll(probs(f"fog/fog-{severity}"), labels_N) for severity in (1, 2, 3)]
    assert [figures.nll for figures in fog.severities] == pytest.approx(by_hand)
    assert fog.differences is not None
    assert recalibrated.shifts == {"fog": shift_of("fog", 3), "hospital": shift_of("hospital", 1)}


def test_a_promise_is_checked_on_the_shifts(run: Run) -> None:
    evaluated(run)
    found = threshold_run(run, 0.5)
    labels_N = saved(run, "fog/labels")
    for name, severity, checked in [
        ("hospital", 1, found.shifts["hospital"].cells[0]),
        ("fog", 3, found.shifts["fog"].cells[2]),
    ]:
        probs_NK = softmax(saved(run, f"{name}/{name}-{severity}").astype(np.float64), axis=2).mean(axis=0)
        kept = probs_NK.max(1) >= found.promise.chosen.threshold
        wrong = (probs_NK.argmax(1) != labels_N)[kept].sum()
        assert (checked.images, checked.kept, checked.wrong) == (IMAGES, kept.sum(), wrong)


def test_two_runs_are_compared_on_the_shifts_that_they_share(run: Run, make_run: MakeRun) -> None:
    other = with_shifts(make_run("theirs", seed=1, train_on="split"), seed=1)
    evaluated(run)
    evaluated(other)
    set_key(other, "fog", "of others")
    (comparison,) = compare_run(run.folder, [other.folder]).against
    assert list(comparison.shifts) == ["hospital"]
    ours, theirs = (read_scores(one.folder).shifts["hospital"][1][0] for one in (run, other))
    difference = comparison.shifts["hospital"].differences.mean.error.difference
    assert difference == pytest.approx((~ours.correct).mean() - (~theirs.correct).mean())
    set_key(run, "hospital", "of others")
    assert not read_evaluated(run.folder).compared.against[0].shifts  # type: ignore[union-attr]


def test_what_was_found_on_other_images_does_not_count(run: Run) -> None:
    evaluated(run)
    recalibrate_run(run)
    threshold_run(run, 0.5)
    assert read_evaluated(run.folder).notes == ()
    results = set_key(run, "fog", "of others")
    found = read_evaluated(run.folder)
    assert found.recalibrated is not None
    assert found.thresholded is not None
    assert list(found.recalibrated.shifts) == list(found.recalibrated.ways["before"].shifts) == ["hospital"]
    assert list(found.thresholded.shifts) == ["hospital"]
    assert "does not cover fog, which changed in a later evaluation; `counterpoint recalibrate" in found.notes[0]
    assert len(stale_notes(run.folder, results)) == 2
    recalibrate_run(run)
    threshold_run(run, 0.5)
    assert read_evaluated(run.folder).notes == ()


def test_logits_that_were_replaced_in_between_are_not_read(run: Run) -> None:
    evaluated(run)
    path = run.folder / "logits" / "about.json"
    about = read_json(path)
    about["suites"]["fog"]["source"]["key"] = "of others"
    write_json(path, about)
    with pytest.raises(InputError, match="was made from other logits"):
        recalibrate_run(run)


def test_the_page_shows_shifts_and_no_severity_where_there_is_none(run: Run) -> None:
    evaluated(run)
    recalibrate_run(run)
    threshold_run(run, 0.5)
    page, text = render([read_evaluated(run.folder)]), to_markdown([read_evaluated(run.folder)])
    for shown in (page, text):
        assert "on fog" in shown
        assert "named with --shift (key key of" in shown
        assert "On hospital the ECE is" in shown
        assert "on hospital it " in shown
        assert "regenerated with" not in shown
    rows = [*csv.DictReader(io.StringIO(to_csv([read_evaluated(run.folder)])))]
    assert {row["severity"] for row in rows if row["corruption"] == "fog"} == {"1", "2", "3"}
    assert {row["severity"] for row in rows if row["corruption"] == "hospital"} == {""}
    assert {row["recalibration"] for row in rows if row["dataset"] == "fog"} >= {"", "before"}


def test_a_shift_without_severities_alone_names_none(run: Run) -> None:
    path = run.folder / "logits" / "about.json"
    about = read_json(path)
    del about["suites"]["fog"]
    write_json(path, about)
    evaluated(run)
    recalibrate_run(run)
    threshold_run(run, 0.5)
    text = to_markdown([read_evaluated(run.folder)]).lower()
    assert "hospital" in text
    assert "severity 1" not in text
    assert "all images" in text


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "a/b", "a\\b", ""])
@pytest.mark.parametrize("what", ["suite", "corruption"])
def test_a_strangers_names_do_not_lead_outside_the_folder(run: Run, name: str, what: str) -> None:
    path = run.folder / "logits" / "about.json"
    about = read_json(path)
    fog = about["suites"].pop("fog")
    about["suites"][name if what == "suite" else "fog"] = fog | {"corruptions": [name]}
    write_json(path, about)
    with pytest.raises(InputError, match=r"about\.json is damaged .*cannot be part of a file's name"):
        read_about(run)
