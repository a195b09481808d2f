"""From a folder of pictures to predictions, as a user does it: every command, on pictures as people have them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.cli.arguments.own_images import describe_images, slow_on_cpu
from counterpoint.data import load_images
from counterpoint.experiments import find_experiment
from counterpoint.experiments.own import own_experiment, with_warmup
from counterpoint.records.files import read_results
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from counterpoint.training.run_images import parts_of_run
from counterpoint.training.starting_weights import weights_hash
from counterpoint.watching import SILENT
from tests.cli.conftest import Call
from tests.images.collection import CLASSES, add_bad_files, write_collection
from tests.images.pictures import write_classes

SMALL = "--set images.size=16 --set depth=8 --set width=8 --set num_members=2 --set epochs=12 --device cpu".split()
QUICK = [*SMALL, "--set", "epochs=1"]
ON_ALL = ("--set", "train_on=all")


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def test_from_a_thousand_pictures_to_predictions(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"train": 500, "val": 300, "test": 200})
    bad = add_bad_files(photos / "train" / CLASSES[0])
    first = photos / "train" / CLASSES[1] / "1 rgb.png"
    again = Path(shutil.copy(first, photos / "test" / CLASSES[1] / "again.png"))

    twice = call("train", "--images", photos, "--out", "run", *SMALL)
    assert twice.status == 2
    for path in (first, again):
        assert path.relative_to(photos).as_posix() in twice.err, "the same content in two parts: both are named"
    again.unlink()
    refused = call("train", "--images", photos, "--out", "run", *SMALL)
    assert refused.status == 2
    assert all(path.name in refused.err for path in bad)
    assert "3 files of" in refused.err
    assert "--skip-bad" in refused.err
    assert not Path("run").exists(), "nothing is left behind"

    trained = call("train", "--images", photos, "--out", "run", "--skip-bad", *SMALL)
    assert trained.status == 0, trained.err
    assert "photos: images 500 to train on, 300 to validate on and 200 to test on; 3 classes" in trained.out
    assert "left out: train/gestreift quer/bomb.png" in trained.out
    assert "validation: error" in trained.out
    run = load_run(Path("run"))
    assert run.description.classes == CLASSES
    epochs = [record for record in run.read_log() if record["event"] == "epoch"]
    assert all(set(record["validation"]) == {"error", "nll", "ece"} for record in epochs)
    assert epochs[-1]["validation"]["error"] < 0.1

    evaluated = call(
        "evaluate", "run", "--sets", "corrupted,validation-extra", "--cell-images", "40", "--device", "cpu"
    )
    assert evaluated.status == 0, evaluated.err
    results = read_results(Path("run/results.json"))
    assert (results.evaluated_on.part, results.evaluated_on.images) == ("test", 200)
    assert results.validated_on is not None
    assert (results.validated_on.part, results.validated_on.images) == ("validation", 300)
    assert results.clean.ensemble.error < 0.1

    recalibrated = call("recalibrate", "run")
    assert recalibrated.status == 0, recalibrated.err
    fitted_on = json.loads(Path("run/recalibrated.json").read_text())["fitted_on"]
    assert (fitted_on["images"]["part"], fitted_on["images"]["images"], fitted_on["run"]) == (
        "validation",
        300,
        "this run",
    )
    thresholded = call("threshold", "run", "--error", "10%")
    assert thresholded.status == 0, thresholded.err
    promise = json.loads(Path("run/threshold.json").read_text())
    assert promise["test"]["images"] == 200
    assert promise["test"]["verdict"] != "breaks"
    beyond = call("threshold", "run", "--error", "0.1%")
    assert beyond.status == 2
    assert "an error below 0.1 % cannot be promised with 225 images" in beyond.err

    some = sorted((photos / "test").rglob("*[0-9] *"))[:30]
    predicted = call(
        "predict", "run", *some, bad[0], "--not-sure-below", "threshold", "--format", "jsonl", "--device", "cpu"
    )
    assert predicted.status == 1, "one of the files is bad"
    lines = [json.loads(line) for line in predicted.out.replace('} {"path"', '}\n{"path"').splitlines()]
    assert len(lines) == len(some) + 1
    right = [line["class"] == path.parent.name for line, path in zip(lines, some, strict=False)]
    assert sum(right) >= 27
    assert "cut short" in lines[-1]["error"]
    report = call("report", "run", "--out", "report.html")
    assert report.status == 0, report.err
    assert CLASSES[2] not in report.err
    assert "photos" in Path("report.html").read_text(encoding="utf-8")
    listed = call("settings", "images")
    assert "images.size" in listed.out


def test_a_run_starts_from_another_also_with_other_classes(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"": 90})
    others = write_collection(tmp_path / "others", {"": 60}, classes=CLASSES[1:], seed=5)
    assert call("train", "--images", photos, "--out", "first", *QUICK).status == 0
    second = call("train", "--images", others, "--out", "second", "--from", "first", *QUICK)
    assert second.status == 0, second.err
    assert "starts from" in second.out
    assert "because the classes differ" in second.out
    run = load_run(Path("second"))
    assert run.experiment.starts_from is not None
    assert (run.experiment.learning_rate, run.experiment.init_std) == (0.01, None)
    assert Path(run.record["from"]) == tmp_path / "first"
    again = call("train", "--images", others, "--out", "second", "--from", "first", *QUICK)
    assert again.status == 0, "the same command finds the run finished"
    other = call("train", "--images", others, "--out", "second", *QUICK)
    assert other.status == 2
    assert "starts_from" in other.err
    missing = call("train", "--images", others, "--out", "third", "--from", "nothing", *QUICK)
    assert (missing.status, Path("third").exists()) == (2, False)
    assert "nothing does not exist" in missing.err


def test_images_that_moved_or_changed_are_told(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"train": 60})
    assert call("train", "--images", photos, "--out", "run", *QUICK).status == 0
    untested = call("evaluate", "run", "--device", "cpu")
    assert untested.status == 2
    assert "there are no test images for run" in untested.err
    assert "Add a folder test beside train" in untested.err
    write_collection(photos, {"test": 30}, seed=3)
    tested = call("evaluate", "run", "--sets", "", "--device", "cpu")
    assert tested.status == 0, tested.err
    photos.rename(tmp_path / "moved")
    lost = call("evaluate", "run", "--sets", "", "--device", "cpu")
    assert lost.status == 2
    assert "are no longer at" in lost.err
    found = call("evaluate", "run", "--sets", "", "--images", "moved", "--device", "cpu")
    assert found.status == 0, found.err
    before = Path("run", "results.json").read_bytes()
    add_pictures(tmp_path / "moved" / "train", 3)
    grown = call("evaluate", "run", "--sets", "", "--images", "moved", "--device", "cpu")
    assert grown.status == 0, grown.err
    assert "3 images of moved were added since run was begun: they are left out" in grown.out
    assert json.loads(Path("run", "results.json").read_bytes())["clean"] == json.loads(before)["clean"]
    next(path for path in (tmp_path / "moved" / "train" / CLASSES[0]).iterdir() if "new" not in path.name).unlink()
    changed = call("evaluate", "run", "--sets", "", "--images", "moved", "--device", "cpu")
    assert changed.status == 2
    assert "1 of the images that the run was begun with are gone from moved, or have changed" in changed.err
    Path("run", "split.npz").unlink()  # as of a run that an earlier version began
    changed = call("evaluate", "run", "--sets", "", "--images", "moved", "--device", "cpu")
    assert changed.status == 2
    assert "the images to train on are not those that run was begun with" in changed.err


def add_pictures(folder: Path, count: int, seed: int = 9) -> None:
    """More pictures of the classes, which come before those that are there and between them."""
    more = write_collection(folder.parent / "more", {"": count}, seed=seed)
    for number, path in enumerate(sorted(more.rglob("*.*"))):
        path.rename(folder / path.parent.name / f"{number} new {seed} {path.name}")
    shutil.rmtree(more)


def test_a_collection_grows_and_a_run_goes_on_from_the_one_before(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"": 90})
    assert call("train", "--images", photos, "--out", "first", *QUICK).status == 0
    whole = parts_of_run(load_run(Path("first")))
    add_pictures(photos, 30)
    assert call("evaluate", "first", "--sets", "", "--device", "cpu").status == 0
    shown = call("train", "--images", photos, "--out", "second", "--from", "first", *QUICK)
    assert shown.status == 0, shown.err
    assert "images 84 to train on, 18 to validate on and 18 to test on" in shown.out
    assert "90 different images stay in the parts that the earlier run has them in" in shown.out
    again, grown = (parts_of_run(load_run(Path(run))) for run in ("first", "second"))
    for part in ("train", "validation", "test"):
        assert again.keys[part] == whole.keys[part]
    assert set(whole.tested) < set(grown.tested)
    assert whole.seen is not None
    assert grown.seen is not None
    assert set(whole.seen.contents) < set(grown.seen.contents)
    add_pictures(photos, 3, seed=10)
    found = call("train", "--images", photos, "--out", "second", "--from", "first", *QUICK)
    assert found.status == 0, found.err
    assert "3 images were added since the run was begun: they are left out" in found.out
    assert "that the earlier run has them in" not in found.out, "it is the run itself"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "run"], "name an experiment (`counterpoint experiments` lists them), or give your own images"),
        (["digits/quickstart", "--out", "run", "--skip-bad"], "--skip-bad works only with your own images"),
        (["--images", "gone", "--out", "run"], "gone"),
        (["--images", "photos", "--out", "run", "--set", "images.size=0"], "images.size is 0"),
        (["--images", "photos", "--out", "run", "--set", "images.val=1"], "images.val is 1.0; it must be at least 0"),
        (
            ["--images", "photos", "--out", "run", "--set", "images.val=0.6", "--set", "images.test=0.4"],
            "leaves nothing",
        ),
        (["--images", "photos", "--out", "run", "--set", "images.colour=red"], "unknown key 'images.colour'"),
        (["--images", "photos", "--out", "run", "--pretrained"], "pretrained"),
        (["--images", "gone", "--out", "run", "--model", "timm/nothing"], "timm/nothing"),
        (["digits/quickstart", "--out", "run", "--set", "images.size=8"], "dataset is digits, and the settings images"),
        (["digits/quickstart", "--out", "run", *ON_ALL, "--validate"], "there are no images of digits to validate on"),
        (["digits/quickstart", "--out", "run", "--set", "starts_from=abc"], "name the run with --from"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], said: str, tmp_path: Path, call: Call) -> None:
    write_collection(tmp_path / "photos", {"": 12})
    ended = call("train", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--device", "gpu"], "device 'gpu' is not known"),
        (["--engine", "steam"], "unknown engine 'steam'"),
        (["--out", "photos"], "photos is not empty and holds no run"),
        (["--out", "photos/run"], "photos/run lies in photos, where every folder and file is taken for a class"),
        (["--out", "mine.py"], "mine.py is a file, but a folder is needed there; give another path"),
        (["--out", "mine.py/run"], "mine.py is a file, but a folder is needed there; give another path"),
        (["--set", "depth=7"], "depth is 7; it must be 6n + 2"),
        (["--model", "nowhere:make_model"], "the model nowhere:make_model needs a module 'nowhere'"),
        (["--model", "mine:made"], "unknown function of mine"),
        (["--model", "mine:make_model"], "mine:make_model does not take the call make_model(num_classes=…, in_chann"),
    ],
)
def test_what_is_wrong_is_said_before_images_are_read(option: list[str], said: str, tmp_path: Path, call: Call) -> None:
    write_collection(tmp_path / "photos", {"": 12})
    Path("mine.py").write_text("def make_model(classes): ...")
    ended = call("train", "--images", "photos", "--out", "run", *option)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize("command", ["views", "sweep"])
def test_nothing_is_written_among_the_pictures(command: str, tmp_path: Path, call: Call) -> None:
    write_collection(tmp_path / "photos", {"": 12})
    ended = call(command, "--images", "photos", "--out", "photos/new.png")
    assert ended.status == 2
    assert "photos/new.png lies in photos" in ended.err
    assert not Path("photos/new.png").exists()


@pytest.fixture
def write_archive(tmp_path: Path) -> Callable[..., Path]:
    """A file with so many images of each class in each part."""

    def write(**parts: dict[str, int]) -> Path:
        rows = [(part, label) for part, counts in parts.items() for label, n in counts.items() for _ in range(n)]
        pixels = np.random.default_rng(0).integers(0, 256, (len(rows), 4, 4), np.uint8)
        part_N, labels_N = zip(*rows, strict=True)
        np.savez(tmp_path / "made.npz", images=pixels, labels=labels_N, part=part_N)
        return tmp_path / "made.npz"

    return write


def test_a_note_says_what_guessing_the_largest_class_would_give(write_archive: Callable[..., Path]) -> None:
    unequal = write_archive(train={"bird": 6, "car": 2, "cat": 5}, val={"car": 1}, test={"bird": 3, "car": 5})
    *_, sizes, guess = describe_images(load_images(unequal, 4)).splitlines()
    assert sizes == "the classes differ in size: of the images to train on, 2 are of car and 6 of bird"
    assert guess == "always guessing bird is wrong on 62.5 % of the images to test on: compare the error with that"
    alike = write_archive(train={"car": 5, "cat": 2}, val={"car": 1}, test={"car": 1})
    assert describe_images(load_images(alike, 4)) == (
        "made: images 7 to train on, 1 to validate on and 1 to test on; 2 classes: car, cat"
    )


def test_what_was_drawn_and_left_out_is_said(tmp_path: Path) -> None:
    photos = write_classes(tmp_path / "photos", {"cat": 10, "dog": 10})
    for number in range(9):
        (photos / "cat" / f"note {number}.txt").write_text("no picture")
    _, drawn, left_out, *_ = describe_images(load_images(photos, 4, skip_bad=True)).splitlines()
    assert drawn == "the images to validate on and to test on were drawn at random"
    assert left_out == "left out: " + ", ".join(f"cat/note {number}.txt" for number in range(9))


def test_a_note_says_which_commands_will_refuse_the_run(write_archive: Callable[..., Path]) -> None:
    _, val, test = describe_images(load_images(write_archive(train={"car": 2, "cat": 2}), 4, val=0)).splitlines()
    assert val == "there are no images to validate on, so `recalibrate` and `threshold` will refuse the run"
    assert test == "there are no images to test on, so `evaluate` will refuse the run until you add some"


def test_large_images_on_a_cpu_get_a_note() -> None:
    large = own_experiment("photos", None, ["images.size=224"])
    note = slow_on_cpu(large, "cpu")
    assert note is not None
    assert note == (
        "training on images of 224 × 224 pixels takes long on a CPU; for a first try, --set images.size=64 has 1/12 of "
        "the pixels per image"
    )
    assert slow_on_cpu(large, "cuda") is None
    assert slow_on_cpu(own_experiment("photos", None, ["images.size=64"]), "cpu") is None
    assert slow_on_cpu(find_experiment("cifar10/single"), "cpu") is None


def test_a_run_goes_on_with_the_size_that_it_has(tmp_path: Path, call: Call) -> None:
    """So do runs that were begun when the default was another."""
    photos = write_collection(tmp_path / "photos", {"": 60})
    quick = [word for word in QUICK if word != "images.size=16"]
    quick.remove("--set")
    sized = [*quick, "--set", "images.size=20", "--set", "epochs=2"]
    experiment = own_experiment("photos", None, [word for word in sized if "=" in word])
    data = load_images(photos, 20)
    begun = with_warmup(experiment, len(data.train), [])
    on_cpu = Options(device="cpu")
    assert not train(begun, Path("run"), data, options=on_cpu, watcher=SILENT, should_stop=lambda: True)
    ended = call("train", "--images", photos, "--out", "run", *quick, "--set", "epochs=2")
    assert ended.status == 0, ended.err
    assert "finished: run" in ended.out
    other = call("train", "--images", photos, "--out", "run", *quick, "--set", "images.size=16")
    assert (other.status, "holds another run" in other.err) == (2, True)


def test_a_recipe_of_the_paper_on_your_own_images(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"": 40})
    recipe = ["digits/quickstart", "--images", photos, "--set", "images.grey=true", "--set", "steps=2"]
    assert call("train", *recipe, "--out", "run", "--no-validate", "--device", "cpu").status == 0
    run = load_run(Path("run"))
    assert (run.experiment.name, run.experiment.epochs, run.experiment.policy.flip) == ("photos/quickstart", 30, False)
    assert (run.description.channels, run.description.height) == (1, 32)
    assert "validation" not in run.read_log()[-1]
    drawn = call("views", "--images", photos, "--count", "3", "--out", "views.png", "--set", "images.size=16")
    assert drawn.status == 0, drawn.err
    assert Path("views.png").read_bytes()[:4] == b"\x89PNG"


def test_a_run_from_another_goes_on_from_its_own_checkpoint(tmp_path: Path, call: Call) -> None:
    photos = write_collection(tmp_path / "photos", {"": 90})
    assert call("train", "--images", photos, "--out", "first", *QUICK).status == 0
    start, data = load_run(Path("first")), load_images(photos, 16)
    experiment = replace(start.experiment, starts_from=weights_hash(start), epochs=3, batch_size=16)
    options, stops = Options(device="cpu"), iter([False] * 4 + [True])
    assert train(experiment, Path("whole"), data, start=start, options=options)
    assert not train(experiment, Path("halted"), data, start=start, options=options, should_stop=lambda: next(stops))
    assert train(experiment, Path("halted"), data, start=start, options=options)
    whole, halted = (latest_checkpoint(Path(name)) for name in ("whole", "halted"))
    assert whole is not None
    assert halted is not None
    assert all(torch.equal(tensor, halted.tensors[name]) for name, tensor in whole.tensors.items())
    events = [record["step"] for record in load_run(Path("halted")).read_log() if record["event"] == "started"]
    assert events[0] == 0 < events[1]
