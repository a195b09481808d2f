"""From given predictions to a folder with results."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterpoint
from counterpoint.errors import InputError
from counterpoint.evaluation.imported import importing
from counterpoint.evaluation.imported.importing import evaluate_logits
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.pipeline import recompute_results
from counterpoint.evaluation.results import read_current_results
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.metrics import image_scores, ood_auroc
from counterpoint.metrics.summary import figures
from counterpoint.records.files import read_results
from counterpoint.records.images import Shift, Source
from counterpoint.runs.imported import ImportedRun, load_any_run
from tests.heard import Heard
from tests.made_predictions import made_arrays, made_labels, made_logits, save, shifted_arrays, softmax
from tests.made_runs import MakeRun, copied, evaluated, files_of, keep_cells, saved


def load(folder: Path) -> ImportedRun:
    run = load_any_run(folder)
    assert isinstance(run, ImportedRun)
    return run


def test_a_file_becomes_a_folder_like_a_run_s(tmp_path: Path) -> None:
    arrays = made_arrays() | shifted_arrays() | {"name": "ours", "dataset": "toys", "classes": list("abcd")}
    path = save(tmp_path / "p.npz", arrays)
    results = evaluate_logits(path, tmp_path / "out")
    files = files_of(tmp_path / "out")
    cells = {f"logits/{name}-{severity}.npy" for name in ("fog", "night shots") for severity in (1, 3)}
    assert files.keys() - {".lock"} == cells | {
        *("run.json", "results.json", "scores.npz", "logits/about.json", "logits/factors.npz"),
        *("logits/clean.npy", "logits/labels.npy", "logits/validation.npy", "logits/validation-labels.npy"),
        *("logits/cell-labels.npy", "logits/Hospital-B/Hospital-B-1.npy", "logits/Hospital-B/labels.npy"),
    }
    for name, file in {"logits": "clean", "validation_logits": "validation", "shift/fog/3/logits": "fog-3"}.items():
        assert np.array_equal(np.load(tmp_path / "out" / "logits" / f"{file}.npy"), arrays[name])
    assert read_results(tmp_path / "out" / "results.json") == results
    assert (results.experiment, results.config, results.run, results.seed) == ("ours", {}, None, None)
    assert (results.health, results.outside) == (None, {})
    imported = results.imported
    assert imported is not None
    assert (imported.file, imported.classes) == ("p.npz", tuple("abcd"))
    assert [one.name for one in results.classes] == list("abcd")
    assert imported.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not any(str(tmp_path).encode() in content for content in files.values()), "no path of the machine is kept"


def test_predictions_for_outside_images_need_no_labels(tmp_path: Path) -> None:
    arrays = made_arrays()
    letters, photos = made_logits(made_labels(40), 2, 0.5), softmax(made_logits(made_labels(25), 2, 0.5))
    given = {"outside/letters/logits": letters, "outside/my photos/probs": photos}
    results = evaluate_logits(arrays | given, tmp_path)
    assert {name: (one.images, one.key) for name, one in results.outside.items()} == {
        "letters": (40, None),
        "my photos": (25, None),
    }
    known = softmax(arrays["logits"]).mean(axis=0).max(axis=1)
    for name, probs_MNK in (("letters", softmax(letters)), ("my photos", photos)):
        expected = ood_auroc(known, probs_MNK.mean(axis=0).max(axis=1))
        assert results.outside[name].ensemble.auroc == pytest.approx(expected, abs=1e-6)
    assert recompute_results(load(tmp_path)).outside == results.outside
    assert list(threshold_run(load(tmp_path), 0.6).outside) == ["letters", "my photos"]
    with pytest.raises(InputError, match=r"'outside/letters/logits' has 1 members and .* they must be the same"):
        evaluate_logits(arrays | {"outside/letters/logits": letters[0]}, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists(), "nothing is written"


def test_what_is_known_of_the_images(tmp_path: Path) -> None:
    results = evaluate_logits(made_arrays() | shifted_arrays() | {"dataset": "toys"}, tmp_path)
    on, validated, about = results.evaluated_on, results.validated_on, read_about(load(tmp_path))
    assert (on.dataset, on.part, on.images) == ("toys", "test", 60)
    assert validated is not None
    assert (validated.dataset, validated.part, validated.images) == ("toys", "validation", 80)
    assert on.key != validated.key
    assert results.corrupted is not None
    assert results.corrupted.shift == Shift(Source("given"), 60, "test", ("fog", "night shots"), (1, 3))
    other = results.shifts["Hospital-B"]
    assert (other.images, other.corruptions, other.severities) == (30, ("Hospital-B",), (1,))
    assert other.source.kind == "given"
    assert other.source.key not in (None, on.key)
    assert about.made_from == results.made_from == read_scores(tmp_path).made_from
    assert (about.weights, about.given) == (None, results.imported and results.imported.sha256)
    assert results.collapse is not None
    assert (results.collapse.r, len(results.collapse.severities)) == (None, 2)


def test_nothing_else_than_clean_images_is_needed(tmp_path: Path) -> None:
    results = evaluate_logits({"probs": [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]], "labels": [0, 1, 0]}, tmp_path / "mine")
    assert (results.experiment, results.evaluated_on.dataset) == ("mine", "unnamed data")
    assert (results.validated_on, results.corrupted, results.shifts) == (None, None, {})
    assert results.clean.ensemble.error == pytest.approx(1 / 3)
    assert read_about(load(tmp_path / "mine")).suites == {}


@pytest.mark.parametrize("images", [1, 2])
def test_a_few_images_are_enough(tmp_path: Path, images: int) -> None:
    labels_N = made_labels(images)
    evaluate_logits({"logits": made_logits(labels_N), "labels": labels_N}, tmp_path)
    assert read_current_results(load(tmp_path))[1].clean.ensemble.error in (0.0, 0.5, 1.0)


@pytest.mark.parametrize("members", [1, 3])
def test_figures_of_probabilities_are_those_of_these_very_probabilities(tmp_path: Path, members: int) -> None:
    labels_N = made_labels(500)
    probs_MNK = softmax(made_logits(labels_N, members))
    probs_MNK[:, :3] = np.eye(4)[[0, 1, 2]]  # as sure as can be, and perhaps wrong
    results = evaluate_logits({"probs": probs_MNK, "labels": labels_N}, tmp_path)
    for found, probs_NK in zip(
        (results.clean.ensemble, *results.clean.members), (probs_MNK.mean(axis=0), *probs_MNK), strict=True
    ):
        expected = figures(image_scores(probs_NK, labels_N))
        for name, value in vars(expected).items():
            assert getattr(found, name) == pytest.approx(value, abs=1e-9), name


def test_probabilities_and_their_logits_have_the_same_figures(tmp_path: Path) -> None:
    arrays = made_arrays() | shifted_arrays()
    as_probs = {
        name.replace("logits", "probs"): softmax(values) if "logits" in name else values
        for name, values in arrays.items()
    }
    results, others = evaluate_logits(arrays, tmp_path / "a"), evaluate_logits(as_probs, tmp_path / "b")
    assert results.clean.ensemble.nll == pytest.approx(others.clean.ensemble.nll, abs=1e-12)
    assert results.suites.keys() == others.suites.keys()
    for name, suite in results.suites.items():
        pairs = zip(suite.all_cells(), others.suites[name].all_cells(), strict=True)
        assert all(a.ensemble.nll == pytest.approx(b.ensemble.nll, abs=1e-12) for a, b in pairs)
    assert results.evaluation.precision == "logits in float64, as given"
    assert others.evaluation.precision == "probabilities in float64, as given"


def test_a_run_s_own_logits_give_the_run_s_figures(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(cell_images=80)
    keep_cells(run, "corrupted", ["fog", "snow"], [1, 4])
    expected = evaluated(run)
    arrays = {"logits": saved(run, "clean"), "labels": saved(run, "labels")}
    arrays |= {f"shift/{name}/{n}/logits": saved(run, f"{name}-{n}") for name in ("fog", "snow") for n in (1, 4)}
    results = evaluate_logits(arrays, tmp_path)
    assert results.clean == expected.clean
    assert results.corrupted is not None
    assert expected.corrupted is not None
    assert results.corrupted.cells == expected.corrupted.cells
    assert results.corrupted.aggregates == expected.corrupted.aggregates
    assert results.collapse is not None
    assert expected.collapse is not None
    assert results.collapse.severities == expected.collapse.severities


def test_the_figures_can_be_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["counterpoint", "first"])
    results = evaluate_logits(made_arrays() | shifted_arrays(), tmp_path)
    monkeypatch.setattr(sys, "argv", ["counterpoint", "second"])
    again = recompute_results(load(tmp_path))
    assert (again.clean, again.suites, again.imported) == (results.clean, results.suites, results.imported)
    assert again.imported is not None
    assert (again.imported.command, again.evaluation.command) == ("counterpoint first", "counterpoint second")
    assert results.evaluation.command == "counterpoint first"


@pytest.mark.parametrize(
    "typed",
    [["--logits", "FILE"], ["--logits=FILE"], ["--logits", "FOLDER//FILE_NAME"], ["--logits", "FOLDER/./FILE_NAME"]],
)
def test_the_command_names_the_file_without_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: list[str]
) -> None:
    path = save(tmp_path / "a file.npz", made_arrays())
    words = {"FOLDER": str(tmp_path), "FILE_NAME": path.name, "FILE": str(path)}
    arguments = list(typed)
    for word, meant in words.items():
        arguments = [argument.replace(word, meant) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["counterpoint", "evaluate", *arguments, "--out", "out"])
    results = evaluate_logits(Path(arguments[-1].removeprefix("--logits=")), tmp_path / "out")
    assert str(tmp_path) not in results.evaluation.command
    assert "a file.npz" in results.evaluation.command
    assert results.evaluation.command.endswith("--out out")


def test_another_import_replaces_the_first(tmp_path: Path) -> None:
    heard = Heard()
    first = evaluate_logits(made_arrays() | shifted_arrays() | {"name": "first"}, tmp_path)
    (tmp_path / "compared.json").write_text("{")
    (tmp_path / "notes.txt").write_text("mine")
    second = evaluate_logits(made_arrays(seed=7) | {"name": "second"}, tmp_path, watcher=heard)
    assert second.made_from != first.made_from
    assert read_current_results(load(tmp_path))[1] == second
    assert second.suites == {}
    assert not list((tmp_path / "logits").glob("fog*"))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert any("compared.json is damaged or is not JSON" in note for note in heard.notes)


@pytest.mark.parametrize("stop_before", ["write_import", "write_array", "write_arrays", "write_json", "write_results"])
def test_an_interrupted_import_is_not_used_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_before: str
) -> None:
    first = evaluate_logits(made_arrays(), tmp_path)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(importing, stop_before, stopped)
        with pytest.raises(KeyboardInterrupt):
            evaluate_logits(made_arrays(seed=7), tmp_path)
    assert read_results(tmp_path / "results.json") == first, "what is there is still whole"
    with pytest.raises(InputError, match=r"holds no logits|was made from other logits"):
        read_current_results(load(tmp_path))
    second = evaluate_logits(made_arrays(seed=7), tmp_path)
    assert read_current_results(load(tmp_path))[1] == second


def test_a_folder_with_something_else_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    run = copied(make_run(), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("dear reader")
    for folder, message in {
        run.folder: "holds a run that counterpoint trained, and it is never replaced; choose another folder",
        tmp_path / "other": "is not empty and holds no run; choose another folder",
    }.items():
        before = files_of(folder)
        with pytest.raises(InputError, match=message):
            evaluate_logits(made_arrays(), folder)
        assert files_of(folder) == before
    with pytest.raises(InputError, match=r"thesis\.tex is a file, but a folder is needed there; give another path"):
        evaluate_logits(made_arrays(), tmp_path / "other" / "thesis.tex")


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": made_labels(60) + 1},
        {"validation_logits": made_logits(made_labels(80), 3)},
        {"shift/night shots/3/logits": np.full((2, 60, 4), np.nan)},
        {"shift/Hospital-B/labels": made_labels(31)},
        {"classes": ["a", "b"]},
        {"name": 3},
        {"anything": 1},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_nothing_is_written_if_one_array_is_wrong(tmp_path: Path, wrong: dict[str, Any]) -> None:
    arrays = made_arrays() | shifted_arrays()
    with pytest.raises(InputError):
        evaluate_logits(arrays | wrong, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    evaluate_logits(arrays, tmp_path / "old")
    before = files_of(tmp_path / "old")
    with pytest.raises(InputError):
        evaluate_logits(arrays | wrong, tmp_path / "old")
    assert files_of(tmp_path / "old") == before


def test_validation_images_are_others_than_the_clean_ones(tmp_path: Path) -> None:
    arrays = made_arrays(validation=False)
    same = {"validation_logits": arrays["logits"].copy(), "validation_labels": arrays["labels"]}
    with pytest.raises(InputError, match="the validation images are the same as the clean images"):
        evaluate_logits(arrays | same, tmp_path)


def test_shifted_images_may_be_others_than_the_clean_ones(tmp_path: Path) -> None:
    labels_N = made_labels(60, seed=5)
    shifted = {"shift/b/logits": made_logits(labels_N, 2, 1.0), "shift/labels": labels_N}
    results = evaluate_logits(made_arrays() | shifted, tmp_path)
    assert results.corrupted is not None
    assert results.corrupted.source.key not in (None, results.evaluated_on.key)
    assert np.array_equal(np.load(tmp_path / "logits" / "cell-labels.npy"), labels_N)


@pytest.mark.parametrize("name", ["p.npy", "p.csv", "p.json"])
def test_only_an_npz_file_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "p.npy":
        np.save(path, np.eye(3))
    else:
        path.write_text(json.dumps({"logits": [[1, 2]], "labels": [0]}))
    with pytest.raises(InputError, match=r"is damaged or is not an .npz file"):
        evaluate_logits(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Trap:
    """Unpickling it would write a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("sprung", "w"))


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = save(tmp_path / "p.npz", made_arrays() | {"labels": np.array([Trap()] * 60, object)})
    with pytest.raises(InputError, match=r"'labels' of .*: no Python objects are read, since they can run code"):
        evaluate_logits(path, tmp_path / "out")
    assert not (tmp_path / "sprung").exists()


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    from counterpoint.storage.locks import locked

    evaluate_logits(made_arrays(), tmp_path)
    with locked(tmp_path, ""), pytest.raises(InputError, match="another process is writing to"):
        evaluate_logits(made_arrays(), tmp_path)


def test_progress_is_told_for_the_cells(tmp_path: Path) -> None:
    heard = Heard()
    evaluate_logits(made_arrays() | shifted_arrays(), tmp_path / "a", watcher=heard)
    assert [(done, total) for _, done, total in heard.counts] == [(n, 5) for n in range(6)]
    heard = Heard()
    evaluate_logits(made_arrays(), tmp_path / "b", watcher=heard)
    assert heard.counts == []


def test_it_is_a_public_name() -> None:
    assert counterpoint.evaluate_logits is evaluate_logits
