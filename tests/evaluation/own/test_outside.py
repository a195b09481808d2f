"""A user's outside images: they reach the network as the run's do, are found again, and are recorded by their hash."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.evaluation.own.groups import check_outside_names
from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
from counterpoint.experiments.own import own_experiment
from counterpoint.images import Decoding, decode
from counterpoint.records.results import Results
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from counterpoint.training.run_images import read_images
from tests.heard import Heard
from tests.images.collection import CLASSES, write_collection
from tests.images.pictures import saved as png
from tests.made_runs import saved
from tests.small import few_digits


@pytest.fixture(name="photos")
def pictures_at_any_depth(tmp_path: Path) -> Path:
    """Colour pictures of another size, in folders that mean nothing."""
    rng = np.random.default_rng(0)
    for name in ("a.png", "deep/b.png", "deep/deeper/c.png", "d.png", "other/e.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8)))
    return tmp_path / "photos"


def evaluate(
    run: Run, outside: dict[str, Path], *, skip_bad: bool = False, heard: Heard | None = None, count: int = 12
) -> Results:
    return evaluate_run(
        run,
        run.folder.parent / "data",
        suites=(),
        outside=outside,
        skip_bad=skip_bad,
        device="cpu",
        clean_images=count,
        watcher=heard or Heard(),
    )


def test_the_figures_are_of_the_named_pictures(run: Run, photos: Path) -> None:
    results = evaluate(run, {"photos": photos})
    files = sorted(photos.rglob("*.png"), key=lambda path: path.relative_to(photos).as_posix())
    model, _ = load_model(run, torch.device("cpu"))
    size = few_digits(40).test.image_shape[1]
    pixels = np.stack([decode(file.read_bytes(), Decoding(size, grey=True)) for file in files])
    expected_MNK = model.predict_members((torch.from_numpy(pixels) / 255 - 0.5) / 0.5).numpy()
    found_MNK = torch.from_numpy(saved(run, "outside/photos")).softmax(dim=2).numpy()
    assert found_MNK == pytest.approx(expected_MNK, abs=1e-5)
    assert saved(run, "outside/photos").dtype == np.float32
    one = results.outside["photos"]
    assert (one.images, len(one.members)) == (5, len(found_MNK))
    assert one.ensemble.mean_confidence == pytest.approx(expected_MNK.mean(axis=0).max(axis=1).mean(), abs=1e-5)
    for file in ("logits/about.json", "results.json"):
        assert str(photos) not in (run.folder / file).read_text()
    assert recompute_results(run).outside == results.outside


def test_the_same_images_are_not_run_again_and_others_replace_them(
    run: Run, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(run, {"photos": photos, "more": photos})
    assert first.outside["photos"] == first.outside["more"]
    moved = shutil.copytree(photos, tmp_path / "moved")
    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.evaluation.inference.member_logits", lambda *_: pytest.fail("it ran the network"))
        assert evaluate(run, {"photos": moved}).outside == first.outside
        assert evaluate(run, {}).outside == first.outside, "earlier ones stay"
    (moved / "deep" / "b.png").write_bytes(png(np.zeros((9, 9, 3), dtype=np.uint8)))
    second = evaluate(run, {"Photos": moved})
    assert list(second.outside) == ["more", "Photos"], "capitals make no other name"
    assert second.outside["Photos"].images == 5
    assert second.outside["Photos"].key != first.outside["photos"].key
    assert {path.name for path in (run.folder / "logits" / "outside").iterdir()} == {"more.npy", "Photos.npy"}


def test_rows_of_an_archive_need_no_labels(run: Run, tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (4, 20, 20, 3), dtype=np.uint8)
    np.savez(tmp_path / "rows.npz", images=pixels)
    np.savez(tmp_path / "labelled.npz", images=pixels, labels=np.arange(4))
    found = evaluate(run, {"rows": tmp_path / "rows.npz", "labelled": tmp_path / "labelled.npz"}).outside
    assert found["rows"] == found["labelled"]
    assert found["rows"].images == 4


def test_images_that_the_run_has_seen_are_refused(run: Run, photos: Path) -> None:
    trained_on = few_digits(40).train
    (photos / "deep" / "seen.png").write_bytes(png(trained_on.images_NCHW[11, 0].numpy()))
    with pytest.raises(InputError, match=r"deep/seen\.png of .* is the same image as image 11 of digits's .*; leave"):
        evaluate(run, {"photos": photos})
    assert not (run.folder / "logits").exists(), "it is refused before the network runs"


def test_test_images_are_refused(run: Run, photos: Path) -> None:
    (photos / "known.png").write_bytes(png(few_digits(40).test.images_NCHW[7, 0].numpy()))
    match = r"known\.png of .* is the same image as image 7 of digits's test images, which is a test image of the run; "
    with pytest.raises(InputError, match=match + "leave it out, since it belongs to a class of the run"):
        evaluate(run, {"photos": photos}, count=5)
    assert not (run.folder / "logits").exists(), "it is refused before the network runs"


def test_test_images_of_ones_own_are_refused(tmp_path: Path) -> None:
    photos = write_collection(tmp_path / "photos", {"train": 30, "test": 12})
    experiment = own_experiment(
        "photos", None, ["images.size=16", "depth=8", "width=4", "num_members=2", "steps=1", "batch_size=8"]
    )
    data = read_images(experiment, photos, tmp_path / "data")
    assert train(experiment, tmp_path / "run", data, options=Options(device="cpu"))
    shutil.copytree(photos / "test" / CLASSES[0], tmp_path / "outside")
    with pytest.raises(InputError, match=r"is the same image as test/.*, which is a test image of the run \(\d such"):
        evaluate(load_run(tmp_path / "run"), {"outside": tmp_path / "outside"})


def test_bad_files_are_all_named_or_left_out(run: Run, photos: Path, tmp_path: Path) -> None:
    (photos / "notes.txt").write_text("by hand")
    (photos / "deep" / "broken.png").write_bytes(b"no picture")
    (photos / ".hidden").write_text("the system's own")
    with pytest.raises(InputError, match=r"(?s)2 files of .*broken.png: is no picture.*notes.txt: is no picture"):
        evaluate(run, {"photos": photos})
    heard = Heard()
    assert evaluate(run, {"photos": photos}, skip_bad=True, heard=heard).outside["photos"].images == 5
    assert [note for note in heard.notes if note.startswith("photos: left out: ") and "notes.txt" in note]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty has no pictures; name a folder that has some, at any depth"):
        evaluate(run, {"photos": tmp_path / "empty"})
    for path, problem in ((tmp_path / "none", "does not exist"), (photos / "a.png", "is no folder or .npz file")):
        with pytest.raises(InputError, match=rf"{problem}; name a folder of pictures, or an \.npz file"):
            evaluate(run, {"photos": path})


def test_a_link_that_leads_out_of_the_folder_is_refused(run: Run, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (photos / "way out").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="the link way out leads to"):
        evaluate(run, {"photos": photos})


@pytest.mark.parametrize("name", ["", "-photos", "a b", "a/b", "..", "CIFAR100", "f" * 61])
def test_names_that_cannot_be_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of outside images"):
        check_outside_names([name], "cifar10")


def test_names_that_may_be() -> None:
    check_outside_names(["cifar100", "letters", "clean", "фото", "photos_B"], "digits")
    with pytest.raises(InputError, match="differ in capitals only"):
        check_outside_names(["photos", "Photos"], "digits")


def test_a_set_of_the_same_name_may_be_a_shift_too(run: Run, photos: Path, tmp_path: Path) -> None:
    test = few_digits(40).test
    for image, label in enumerate(test.labels_N.tolist()):
        path = tmp_path / "shifted" / str(label) / f"{image}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(test.images_NCHW[image, 0].numpy()))
    root, shifts = tmp_path / "data", {"photos": tmp_path / "shifted"}
    results = evaluate_run(run, root, suites=(), device="cpu", outside={"photos": photos}, shifts=shifts)
    assert (results.outside["photos"].images, results.shifts["photos"].images) == (5, 40)
    with pytest.raises(InputError, match="'outside' cannot be the name of a shift"):
        evaluate_run(run, root, suites=(), device="cpu", shifts={"outside": tmp_path / "shifted"})


def test_an_evaluation_of_an_earlier_version_keeps_its_outside_images(run: Run, photos: Path) -> None:
    """It had the other CIFAR in ood.npy. A new evaluation adds to it."""
    evaluate(run, {})
    path = run.folder / "logits" / "about.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"ood": {"dataset": "cifar10", "images": 12}}))
    np.save(run.folder / "logits" / "ood.npy", saved(run, "clean").astype(np.float16))
    found = evaluate(run, {"photos": photos}).outside
    assert list(found) == ["cifar10", "photos"]
    assert found["cifar10"] == replace(found["cifar10"], images=12, key=None)
    assert found["cifar10"].ensemble.auroc == pytest.approx(0.5, abs=0.02), "they are the clean images"
