"""`counterpoint evaluate` as a user meets it, on runs with made-up logits."""

from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import StoppedError
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.parallel.world import ALONE
from counterpoint.records.files import read_results
from counterpoint.runs.folder import Run
from tests.cli.conftest import Call
from tests.made_results import make_results
from tests.made_runs import MakeRun, files_of


def test_evaluate_prints_and_writes_the_results(make_run: MakeRun, call: Call) -> None:
    run = make_run(seed=1)
    before = files_of(run.folder)
    ended = call("evaluate", run.folder, "--recompute")
    assert (ended.status, ended.err) == (0, "")
    results = read_results(run.folder / "results.json")
    assert results.evaluation.command == f"counterpoint evaluate {run.folder} --recompute"
    assert "digits/quickstart" in ended.out
    assert f"{100 * results.clean.ensemble.error:.2f}" in ended.out
    assert "The members differ" in ended.out
    assert f"written: {run.folder / 'results.json'}; next: `counterpoint report {run.folder}`" in ended.out
    assert "recalibrate" not in ended.out, "a run on all images has none to fit on"
    after = files_of(run.folder)
    assert after.keys() - before.keys() == {"results.json", "scores.npz"}
    assert after.items() >= before.items()


def test_what_became_stale_is_printed(make_run: MakeRun, call: Call) -> None:
    run = make_run(seed=1)
    (run.folder / "logits" / "fog-1.npy").unlink()  # without cells it is quicker
    (run.folder / "compared.json").write_text("{")
    ended = call("evaluate", run.folder, "--recompute")
    assert ended.status == 0
    assert "compared.json is damaged or is not JSON" in ended.out
    assert f"`counterpoint compare {run.folder} OTHER` makes it again" in ended.out


def test_all_options_reach_the_evaluation(make_run: MakeRun, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def evaluate_run(run: Run, root: Path | None, **options: Any) -> Any:
        del options["watcher"]
        assert options.pop("world") == ALONE
        asked.append((run.folder, root, options))
        return make_results()

    monkeypatch.setattr("counterpoint.evaluation.pipeline.evaluate_run", evaluate_run)
    monkeypatch.delenv("COUNTERPOINT_DATA", raising=False)
    folder = make_run(seed=1).folder
    assert call("evaluate", folder).status == 0
    given = ("--sets", "validation-extra, corrupted", "--cell-images", 5, "--precision", "strict", "--device", "cpu")
    shifts = ("--shift", "fog=f", "--shift", "night=a=b", "--outside", "cats=c", "--skip-bad", "--max-minutes", 30)
    assert call("evaluate", folder, *given, *shifts, "--data", "d", "--model", "resnet", "--images", "i").status == 0
    default: dict[str, Any] = {
        "suites": [CORRUPTED],
        "device": "auto",
        "precision": "headline",
        "cell_images": None,
        "trusted_model": None,
        "max_minutes": None,
    }
    default |= {"source": None, "shifts": {}, "outside": {}, "skip_bad": False}
    suites = [VALIDATION_EXTRA, CORRUPTED]
    chosen: dict[str, Any] = {
        "suites": suites,
        "device": "cpu",
        "precision": "strict",
        "cell_images": 5,
        "trusted_model": "resnet",
        "max_minutes": 30.0,
    }
    chosen |= {"source": Path("i"), "shifts": {"fog": Path("f"), "night": Path("a=b")}, "skip_bad": True}
    chosen |= {"outside": {"cats": Path("c")}}
    assert asked == [(folder, None, default), (folder, Path("d"), chosen)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recompute", "--cell-images", "5"], "--recompute uses the saved logits as they are; leave --sets, "),
        (["--recompute", "--precision", "bf16"], "--recompute uses the saved logits as they are; leave --sets, "),
        (["--recompute", "--sets", "validation-extra"], "--recompute uses the saved logits as they are; leave --sets"),
        (["--recompute", "--max-minutes", "5"], "--recompute uses the saved logits as they are; leave --sets, "),
        (["--precision", "bf61"], "unknown precision 'bf61'"),
        (
            ["--sets", "corrupted,validation"],
            "unknown set of images 'validation'; did you mean 'validation-extra'? (known: corrupted, validation-extra)",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_before_anything_is_done(
    make_run: MakeRun, call: Call, arguments: list[str], message: str
) -> None:
    folder = make_run(seed=1).folder
    before = files_of(folder)
    ended = call("evaluate", folder, *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err
    assert files_of(folder) == before


def test_a_stop_says_how_to_go_on(make_run: MakeRun, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("counterpoint.evaluation.pipeline.evaluate_run", interrupted)
    ended = call("evaluate", make_run(seed=1).folder)
    assert ended.status == 130
    assert "stopped; the same command continues from there" in ended.out


def test_a_limit_of_time_ends_it_well(make_run: MakeRun, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, max_minutes: float, **__: object) -> None:
        assert max_minutes == 0.5
        raise StoppedError

    monkeypatch.setattr("counterpoint.evaluation.pipeline.evaluate_run", stopped)
    ended = call("evaluate", make_run(seed=1).folder, "--max-minutes", 0.5)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "stopped; the same command continues from there"


def test_help_says_what_it_does(call: Call) -> None:
    ended = call("evaluate", "--help")
    assert ended.status == 0
    for word in ("results.json", "--sets", "validation-extra", "--recompute", "counterpoint recalibrate"):
        assert word in ended.out
