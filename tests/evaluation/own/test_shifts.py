"""A user's own shift: its images reach the network as the run's do, are found again, and are recorded by their hash."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.evaluation.own.groups import check_shift_names
from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
from counterpoint.experiments.own import own_experiment
from counterpoint.images import Decoding, decode
from counterpoint.records.results import Results
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from counterpoint.training.run_images import read_images
from counterpoint.training.starting_weights import weights_hash
from tests.heard import Heard
from tests.images.collection import CLASSES, write_collection
from tests.images.pictures import saved as png
from tests.made_runs import saved
from tests.small import few_digits

EXPERIMENT = own_experiment(
    "photos", None, ["images.size=16", "depth=8", "width=4", "num_members=2", "epochs=1", "batch_size=16"]
)


@pytest.fixture(scope="module", name="place")
def a_folder_with_photos_a_run_and_shifts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shifts")
    photos = write_collection(place / "photos", {"train": 30, "test": 12})
    data = read_images(replace(EXPERIMENT, train_on="all"), photos, place / "data")
    assert train(replace(EXPERIMENT, train_on="all"), place / "run", data, options=Options(device="cpu"))
    write_collection(place / "hospital", {"": 9}, seed=1)
    for severity in (1, 2, 3):
        write_collection(place / "fog", {str(severity): 6}, seed=severity)
    return place


@pytest.fixture(name="run")
def a_run_to_change(place: Path, tmp_path: Path) -> Run:
    shutil.copytree(place / "run", tmp_path / "run")
    return load_run(tmp_path / "run")


def evaluate(
    run: Run, place: Path, shifts: dict[str, Path], *, skip_bad: bool = False, heard: Heard | None = None
) -> Results:
    watcher = heard or Heard()
    return evaluate_run(run, place / "data", suites=(), shifts=shifts, skip_bad=skip_bad, device="cpu", watcher=watcher)


def by_hand(run: Run, files: list[Path]) -> np.ndarray:
    """The members' logits of pictures that are decoded one by one."""
    model, _ = load_model(run, torch.device("cpu"))
    pixels = np.stack([decode(file.read_bytes(), Decoding(16)) for file in files])
    return model.predict_members((torch.from_numpy(pixels) / 255 - 0.5) / 0.5).log().numpy()


def assert_same_probabilities(found_MNK: np.ndarray, log_probs_MNK: np.ndarray) -> None:
    logits = torch.from_numpy(found_MNK.astype(np.float32))
    assert torch.allclose(logits.log_softmax(dim=2), torch.from_numpy(log_probs_MNK), atol=5e-3)  # saved in float16


def test_the_figures_are_of_the_named_pictures(run: Run, place: Path) -> None:
    results = evaluate(run, place, {"hospital": place / "hospital", "fog": place / "fog"})
    files = sorted((place / "hospital").rglob("*.*"))
    assert_same_probabilities(saved(run, "hospital/hospital-1"), by_hand(run, files))
    assert saved(run, "hospital/labels").tolist() == [CLASSES.index(file.parent.name) for file in files]
    hospital, fog = results.shifts["hospital"], results.shifts["fog"]
    wrong = saved(run, "hospital/hospital-1").astype(np.float64)
    probs = np.exp(wrong - wrong.max(2, keepdims=True))
    ensemble = (probs / probs.sum(2, keepdims=True)).mean(0)
    error = (ensemble.argmax(1) != saved(run, "hospital/labels")).mean()
    assert hospital.cells["hospital"][0].ensemble.error == pytest.approx(error)
    assert (hospital.images, hospital.severities, hospital.shift.has_severities) == (9, (1,), False)
    assert (fog.images, fog.severities, fog.shift.has_severities) == (6, (1, 2, 3), True)
    for severity in (1, 2, 3):
        files = sorted((place / "fog" / str(severity)).rglob("*.*"))
        assert_same_probabilities(saved(run, f"fog/fog-{severity}"), by_hand(run, files))
    assert [results.shifts[name].source.kind for name in ("hospital", "fog")] == ["own", "own"]
    assert str(place) not in json.dumps(json.loads((run.folder / "logits" / "about.json").read_text()))
    assert recompute_results(run).shifts == results.shifts


def test_the_same_images_are_not_run_again_and_others_replace_them(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(run, place, {"fog": place / "fog", "hospital": place / "hospital"})
    moved = shutil.copytree(place / "fog", tmp_path / "moved")
    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.evaluation.inference.member_logits", lambda *_: pytest.fail("it ran the network"))
        assert evaluate(run, place, {"fog": moved}).shifts == first.shifts
        assert evaluate(run, place, {}).shifts == first.shifts, "earlier ones stay"
    shutil.rmtree(moved / "3")
    others = evaluate(run, place, {"Fog": moved})
    assert list(others.shifts) == ["hospital", "Fog"], "capitals make no other name"
    assert others.shifts["Fog"].severities == (1, 2)
    files = {path.name for path in (run.folder / "logits").rglob("*og-*")}
    assert files == {"Fog-1.npy", "Fog-2.npy"}, "nothing of the earlier images is left"
    shutil.rmtree(run.folder / "logits" / "hospital")
    heard = Heard()
    assert list(recompute_results(run, heard).shifts) == ["Fog"]
    assert heard.notes == [], "a shift whose folder is removed is forgotten"
    (run.folder / "logits" / "Fog" / "Fog-2.npy").unlink()
    assert not recompute_results(run, heard).shifts
    assert "--shift Fog=PATH` makes them" in heard.notes[0]


def test_other_pictures_with_the_same_names_are_other_images(run: Run, place: Path, tmp_path: Path) -> None:
    """As many pictures, in the same classes: nothing but their contents tells them from those before."""
    first = evaluate(run, place, {"hospital": place / "hospital"})
    before = saved(run, "hospital/hospital-1")
    turned = shutil.copytree(place / "hospital", tmp_path / "turned")
    for path in turned.rglob("*.*"):
        with Image.open(path) as picture:
            content = png(picture.convert("RGB").rotate(90, expand=True))
        path.unlink()
        path.with_suffix(".png").write_bytes(content)
    second = evaluate(run, place, {"hospital": turned})
    assert second.shifts["hospital"].source.key != first.shifts["hospital"].source.key
    assert not np.array_equal(saved(run, "hospital/hospital-1"), before)


def test_images_that_the_run_has_seen_are_refused_and_their_names_are_noted(
    run: Run, place: Path, tmp_path: Path
) -> None:
    seen = next((place / "photos" / "train" / CLASSES[0]).iterdir())
    folder = tmp_path / "shifted" / CLASSES[0]
    folder.mkdir(parents=True)
    shutil.copy(seen, folder / "other.png")
    with pytest.raises(InputError, match=r"other.png of .* is the same image as train/.*; leave it out"):
        evaluate(run, place, {"shifted": folder.parent})
    (folder / "other.png").unlink()
    picture = next((place / "hospital" / CLASSES[0]).iterdir())
    tested = {path.stem for path in (place / "photos" / "test" / CLASSES[0]).iterdir()}
    only_seen = next(p for p in (place / "photos" / "train" / CLASSES[0]).iterdir() if p.stem not in tested)
    shutil.copy(picture, folder / f"{only_seen.stem}.png")
    heard = Heard()
    evaluate(run, place, {"shifted": folder.parent}, heard=heard)
    assert (
        f"shifted has no images of {', '.join(CLASSES[1:])}: its figures say nothing about these classes" in heard.notes
    )
    assert any("1 of 1 pictures have the names of images that the run was trained" in note for note in heard.notes)


def test_test_images_without_any_change_are_named(run: Run, place: Path, tmp_path: Path) -> None:
    tested = place / "photos" / "test"
    folder = shutil.copytree(place / "hospital", tmp_path / "mixed")
    one = min((tested / CLASSES[1]).iterdir())
    shutil.copy(one, folder / CLASSES[1] / "0 again.png")
    heard = Heard()
    evaluate(run, place, {"tested": tested, "mixed": folder, "new": place / "hospital"}, heard=heard)
    found = [note for note in heard.notes if "they show no shift" in note]
    assert found == [
        f"tested: 12 of 12 pictures are test images of the run without any change (such as {shown(tested)}, the same "
        f"image as test/{shown(tested)}): they show no shift",
        f"mixed: 1 of 10 pictures are test images of the run without any change (such as {CLASSES[1]}/0 again.png, the "
        f"same image as test/{CLASSES[1]}/{one.name}): they show no shift",
    ]


def shown(folder: Path) -> str:
    """The first picture of a folder of classes."""
    return min(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


def test_images_that_an_earlier_run_has_seen_are_refused(run: Run, place: Path, tmp_path: Path) -> None:
    others = write_collection(tmp_path / "others", {"train": 30, "test": 12}, seed=7)
    new = replace(EXPERIMENT, train_on="all", starts_from=weights_hash(run))
    data = read_images(new, others, place / "data")
    assert train(new, tmp_path / "new", data, start=run, root=place / "data", options=Options(device="cpu"))
    shift = {"shifted": place / "photos" / "train"}
    match = rf"is the same image as train/.*, which {run.folder}, whose weights the run started from, was trained on"
    with pytest.raises(InputError, match=match):
        evaluate(load_run(tmp_path / "new"), place, shift)
    evaluate(load_run(tmp_path / "new"), place, {"shifted": place / "photos" / "test"})
    shutil.rmtree(run.folder)
    heard = Heard()
    evaluate(load_run(tmp_path / "new"), place, shift, heard=heard)
    assert [note for note in heard.notes if "it started from another run, which is gone or has changed" in note]


def test_bad_files_are_all_named_or_left_out_of_every_severity(run: Run, place: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(place / "fog", tmp_path / "fog")
    bad = next((folder / "2" / CLASSES[0]).iterdir())
    bad.write_bytes(b"no picture")
    (folder / "notes.txt").write_text("by hand")
    with pytest.raises(InputError, match=r"(?s)2 files of .*notes.txt: lies in no class folder.*is no picture"):
        evaluate(run, place, {"fog": folder})
    heard = Heard()
    results = evaluate(run, place, {"fog": folder}, skip_bad=True, heard=heard)
    assert results.shifts["fog"].images == 5
    assert "fog: left out: 2 more, since the picture is bad at another severity" in heard.notes
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="empty has no class folders; put the pictures of each class"):
        evaluate(run, place, {"fog": empty})


@pytest.mark.parametrize(
    "name", ["", "-fog", "a b", "a/b", "..", "clean", "Outside", "Corrupted", "validation-extra", "f" * 61]
)
def test_names_that_cannot_be_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a shift"):
        check_shift_names([name])


def test_names_that_differ_in_capitals_are_refused() -> None:
    check_shift_names(["fog", "fog-1", "туман", "hospital_B"])
    with pytest.raises(InputError, match="differ in capitals only"):
        check_shift_names(["fog", "Fog"])


def test_a_run_on_digits_takes_pictures_in_folders_of_its_classes(
    short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: few_digits(40))
    shutil.copytree(short_run.folder, tmp_path / "run")
    run, test = load_run(tmp_path / "run"), few_digits(40).test
    names = [f"{label}/{image}.png" for image, label in enumerate(test.labels_N.tolist())]
    for name, pixels_CHW in zip(names, test.images_NCHW, strict=True):
        (tmp_path / "ours" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ours" / name).write_bytes(png(pixels_CHW[0].numpy()))
    heard = Heard()
    results = evaluate(run, tmp_path, {"ours": tmp_path / "ours"}, heard=heard)
    assert any("40 of 40 pictures are test images of the run" in note for note in heard.notes)
    order = sorted(range(40), key=lambda image: names[image])
    assert saved(run, "ours/labels").tolist() == test.labels_N[order].tolist()
    assert np.allclose(saved(run, "ours/ours-1"), saved(run, "clean")[:, order], atol=2e-2), "the very pixels"
    assert results.shifts["ours"].cells["ours"][0].ensemble.error == pytest.approx(results.clean.ensemble.error)
    trained_on = few_digits(40).train
    (tmp_path / "ours" / "3" / "seen.png").write_bytes(png(trained_on.images_NCHW[11, 0].numpy()))
    with pytest.raises(
        InputError, match=r"3/seen\.png of .* is the same image as image 11 of digits's training images"
    ):
        evaluate(run, tmp_path, {"ours": tmp_path / "ours"})
    both = replace(few_digits(40), test=trained_on)
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: both)
    assert evaluate(run, tmp_path, {"ours": tmp_path / "ours"}).shifts["ours"].images == 41, "it is a test image too"
