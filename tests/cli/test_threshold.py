"""`counterpoint threshold` as a user meets it, on runs with made-up logits."""

import numpy as np
import pytest

from counterpoint.cli.threshold import parse_share
from counterpoint.errors import InputError
from counterpoint.records.codec import encode
from counterpoint.records.files import read_evaluated
from counterpoint.records.images import Images
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from tests.cli.conftest import Call
from tests.made_runs import CLASSES, MakeRun, evaluated, files_of, keep_cells, made_logits, set_about


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    """400 validation images, of which few are wrong, and test images under two corruptions."""
    run = make_run(train_on="split")
    labels_N = np.arange(400) % CLASSES
    logits_MNK = made_logits(np.random.default_rng(5), labels_N, 2, 3.2)
    write_array(run.folder / "logits" / "labels.npy", labels_N)
    write_array(run.folder / "logits" / "clean.npy", logits_MNK.astype(np.float32))
    set_about(run, clean=encode(Images("digits", "validation", 400)))
    keep_cells(run, "corrupted", ["fog", "snow"], [1, 5])
    evaluated(run)
    return run


def test_the_promise_is_printed_with_where_it_breaks(run: Run, call: Call) -> None:
    before = files_of(run.folder)
    ended = call("threshold", run.folder, "--error", "4%")
    assert (ended.status, ended.err) == (0, "")
    found = read_evaluated(run.folder).thresholded
    assert found is not None
    assert found.command == f"counterpoint threshold {run.folder} --error 4%"
    promise = found.promise
    for words in (
        f"Keep predictions with a confidence of {promise.chosen.threshold} or more: with 95 % confidence, the error of",
        "is below 4.00 % on images like the validation images",
        f"About {100 * promise.coverage:.2f} % of such images are kept (interval ",
        "The threshold was chosen on 300 validation images that no temperature was fitted on. It keeps "
        f"{promise.chosen.kept} of them, and {promise.chosen.wrong} of these ",
        "The other 100 validation images only gave the threshold at which the search began.",
        "severity 1",
        "severity 5",
        "breaks in 2 of 2",
        "error of what is kept, %; ✗ breaks: above 4.00 % by more than chance",
        "Snow",
        "✗ ",
        f"written: {run.folder / 'threshold.json'}; next: `counterpoint predict {run.folder} PICTURES --not-sure-below",
    ):
        assert words in ended.out, words
    after = files_of(run.folder)
    assert after.keys() - before.keys() == {"threshold.json"}
    assert after.items() >= before.items()


def test_a_recalibrated_run_says_which_confidences_it_is_for(run: Run, call: Call) -> None:
    assert call("recalibrate", run.folder).status == 0
    ended = call("threshold", run.folder, "--error", "0.04")
    (run.folder / "recalibrated.json").unlink()
    assert (ended.status, ended.err) == (0, "")
    assert (
        "The confidences are recalibrated with “before averaging”. Its parameters come from the other 100" in ended.out
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("0.1%", "an error below 0.1 % cannot be promised with 300 images"),
        ("1", "--error 1: it must be above 0% and below 100%, such as 1% or 0.01; for 1 percent write 1%"),
        ("0", "--error 0: it must be above 0% and below 100%, such as 1% or 0.01"),
        ("100%", "--error 100%: it must be above 0% and below 100%"),
        ("nan", "--error nan: it must be above 0%"),
        ("little", "--error little: it must be a share such as 1% or 0.01"),
    ],
)
def test_a_target_that_cannot_be_is_refused(run: Run, call: Call, error: str, message: str) -> None:
    (run.folder / "threshold.json").unlink(missing_ok=True)
    ended = call("threshold", run.folder, "--error", error)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert not (run.folder / "threshold.json").exists()


def test_what_has_no_validation_images_is_refused(make_run: MakeRun, call: Call) -> None:
    ended = call("threshold", make_run().folder, "--error", "5%")
    assert (ended.status, ended.out) == (2, "")
    assert "was trained on all images, so none are left to choose a threshold on" in ended.err
    assert "nowhere does not exist" in call("threshold", "nowhere", "--error", "5%").err
    assert "Missing option '--error'" in call("threshold", "nowhere").err


@pytest.mark.parametrize(
    ("text", "share"), [("1%", 0.01), (" 0.5 % ", 0.005), ("0.7%", 0.007), ("0.01", 0.01), ("1e-3", 0.001)]
)
def test_shares(text: str, share: float) -> None:
    assert parse_share(text) == share


def test_a_share_without_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="it must be a share"):
        parse_share("%")


def test_help_says_what_it_promises(call: Call) -> None:
    ended = call("threshold", "--help")
    assert ended.status == 0
    for words in ("95 % confidence", "no temperature was fitted", "threshold.json", "1% or 0.01", "Under shift"):
        assert words in ended.out
