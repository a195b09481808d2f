"""A run on a user's own images: reported on test images, fitted on validation images, found again by its run.json."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax

from counterpoint.data import UserImages, load_images, parts_of
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.held_out import read_held_out
from counterpoint.evaluation.image_groups import images_to_corrupt
from counterpoint.evaluation.logits import read_about, read_test
from counterpoint.evaluation.pipeline import evaluate_run, recompute_results
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.experiments.own import own_experiment
from counterpoint.own_images import OwnImages
from counterpoint.recalibration.choose import choose, fit_held_out
from counterpoint.recalibration.families import families
from counterpoint.records.codec import encode
from counterpoint.records.images import Images
from counterpoint.runs.folder import Run, load_run
from counterpoint.storage.files import read_json, write_json
from counterpoint.training.loop import Options, train
from counterpoint.training.run_images import check_unseen_by, data_name, parts_of_run, read_images
from counterpoint.training.starting_weights import weights_hash
from tests.heard import Heard
from tests.images.collection import write_collection
from tests.made_runs import IMAGES, MakeRun, evaluated, saved, set_about
from tests.small import QUICK, few_digits

ASSIGNMENTS = ["images.size=16", "depth=8", "width=4", "num_members=2", "epochs=1", "batch_size=16"]
EXPERIMENT = own_experiment("photos", None, ASSIGNMENTS)
ON_ALL = replace(EXPERIMENT, train_on="all")


@pytest.fixture(scope="module", name="place")
def a_folder_with_photos_and_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own")
    photos = write_collection(place / "photos", {"": 240})
    for name, experiment, seed in (("first", EXPERIMENT, 0), ("second", EXPERIMENT, 1), ("all", ON_ALL, 0)):
        data = read_images(experiment, photos, place / "data")
        assert train(experiment, place / name, data, seed=seed, options=Options(device="cpu"))
    return place


@pytest.fixture(name="images")
def the_images(place: Path) -> UserImages:
    return load_images(place / "photos", 16, cache=place / "data" / "images")


@pytest.fixture(name="run")
def a_run_to_change(place: Path, tmp_path: Path) -> Run:
    shutil.copytree(place / "first", tmp_path / "run")
    return load_run(tmp_path / "run")


def evaluate(run: Run, place: Path, **options: object) -> None:
    arguments = {"suites": (), "device": "cpu"} | options
    evaluate_run(run, place / "data", **arguments)  # type: ignore[arg-type]


def test_no_few_clean_images_are_taken_for_all(run: Run, place: Path) -> None:
    """The first ones would be of one class, and not those that are corrupted."""
    with pytest.raises(
        InputError, match=r"clean_images is 10, and the first 10 of 36 images of your own are not of al"
    ):
        evaluate(run, place, clean_images=10, cell_images=10)
    assert not (run.folder / "logits").exists()
    evaluate(run, place, clean_images=36)


def test_it_is_reported_on_test_images_and_keeps_logits_of_validation_images(
    run: Run, place: Path, images: UserImages
) -> None:
    results = evaluate_run(run, place / "data", suites=(), device="cpu")
    assert images.val is not None
    assert images.test is not None
    on, validated = results.evaluated_on, results.validated_on
    assert (on.dataset, on.part, on.images, on.key) == ("photos", "test", 36, images.keys["test"])
    assert validated is not None
    assert (validated.part, validated.images, validated.key) == ("validation", 36, images.keys["validation"])
    assert saved(run, "labels").tolist() == images.test.labels_N.tolist()
    assert saved(run, "validation-labels").tolist() == images.val.labels_N.tolist()
    assert saved(run, "validation").shape == saved(run, "clean").shape == (2, 36, 3)
    assert not np.array_equal(saved(run, "validation"), saved(run, "clean"))
    assert recompute_results(run).made_from == results.made_from == read_about(run).made_from


def test_every_class_has_its_own_name_and_figures(tmp_path: Path) -> None:
    """Names that are words, in the order of the file: neither that of the alphabet nor by frequency."""
    names, sizes = ("zebra", "ant", "owl"), {"train": (9, 8, 7), "val": (2, 2, 2), "test": (5, 11, 8)}
    labels = [label for counts in sizes.values() for label, count in enumerate(counts) for _ in range(count)]
    parts = [part for part, counts in sizes.items() for _ in range(sum(counts))]
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 200, (len(labels), 1, 1, 3))  # so that predictions differ
    pixels = (colours + rng.integers(0, 56, (len(labels), 16, 16, 3))).astype(np.uint8)
    np.savez(tmp_path / "animals.npz", images=pixels, labels=labels, part=parts, classes=names)
    experiment = replace(EXPERIMENT, epochs=10)
    data = read_images(experiment, tmp_path / "animals.npz", tmp_path / "data")
    assert train(experiment, tmp_path / "run", data, options=Options(device="cpu"))
    run = load_run(tmp_path / "run")
    results = evaluate_run(run, tmp_path / "data", suites=(), device="cpu")
    probs_NK = softmax(saved(run, "clean").astype(np.float64), axis=2).mean(axis=0)
    pairs = [(names[label], names[row.argmax()]) for label, row in zip(saved(run, "labels"), probs_NK, strict=True)]
    assert {predicted for _, predicted in pairs} == set(names)
    assert [one.name for one in results.classes] == list(names)
    assert [one.images for one in results.classes] == [5, 11, 8]
    for one in results.classes:
        taken_for = Counter(predicted for true, predicted in pairs if true == one.name != predicted)
        assert one.wrong == taken_for.total() > 0
        assert one.taken == max(taken_for.values())
        assert one.taken_for is not None
        assert taken_for[one.taken_for] == one.taken
        assert one.predicted == sum(predicted == one.name for _, predicted in pairs)
        assert one.predicted_right == pairs.count((one.name, one.name))
    assert read_json(run.folder / "results.json")["classes"][0]["name"] == "zebra"


def test_temperatures_and_thresholds_come_from_validation_images(run: Run, place: Path) -> None:
    evaluate(run, place)
    about = read_about(run)
    held_out, test = read_held_out(run, None), read_test(run, about)
    assert test is not None
    assert np.array_equal(held_out.clean.logits_MNK, saved(run, "validation"))
    assert np.array_equal(test.logits_MNK, saved(run, "clean"))
    recalibrated = recalibrate_run(run, care="clean")
    assert recalibrated.fitted_on.images == about.validation
    assert recalibrated.fitted_on.run == "this run"
    assert recalibrated.clean_how == recalibrated.corrupted_how == "parameters of all validation images"
    (before,) = [family for family in families(2, shifted=False) if family.name == "before"]
    assert recalibrated.ways["before"].recalibration == fit_held_out(before, held_out, "clean")
    judged = {one.name: one.clean for one in choose([before], held_out, "clean").candidates}
    assert recalibrated.ways["before"].validation_nll == pytest.approx(judged["before"])
    assert recalibrated.unscaled_validation_nll == pytest.approx(judged["none"])
    thresholded = threshold_run(run, 0.6)
    assert (thresholded.promise.images, thresholded.fitted_images) == (27, 9)
    assert thresholded.test is not None
    assert thresholded.test.images == 36


def test_suites_are_made_of_their_part_in_an_order_of_chance(run: Run, place: Path, images: UserImages) -> None:
    parts = parts_of(images, EXPERIMENT)
    for suite, part in ((CORRUPTED, images.test), (VALIDATION_EXTRA, images.val)):
        chosen = images_to_corrupt(run, parts, suite)
        assert part is not None
        assert sorted(chosen.numbers_N.tolist()) == sorted(part.numbers_N.tolist())
        assert chosen.labels_N[:12].unique().tolist() == [0, 1, 2], "the first images are of all classes"
    evaluate(run, place, suites=(CORRUPTED,), cell_images=5)
    folder = f"photos-{images.keys['test']}-C-seed0-first-5"
    assert [path.name for path in (place / "data" / "regenerated").iterdir()] == [folder]
    assert saved(run, "fog-3").shape == (2, 5, 3)


def test_a_corrupted_image_is_fitted_on_with_its_clean_one(run: Run, place: Path, images: UserImages) -> None:
    """Otherwise the half that is judged, and the images that prove a threshold, would have been fitted on."""
    few = replace(VALIDATION_EXTRA, corruptions=("saturate",), severities=(1,))
    evaluate(run, place, suites=(few,), cell_images=30)
    held_out = read_held_out(run, read_about(run).suites[few.name])
    corrupted = images_to_corrupt(run, parts_of(images, EXPERIMENT), few)
    assert images.val is not None
    numbers = images.val.numbers_N.tolist()
    places = [numbers.index(number) for number in corrupted.numbers_N.tolist()]
    assert np.array_equal(held_out.clean.logits_MNK, saved(run, "validation")[:, places])
    assert np.array_equal(held_out.clean.labels_N, corrupted.labels_N)
    np.save(run.folder / "logits" / "validation-labels.npy", np.roll(saved(run, "validation-labels"), 1))
    with pytest.raises(InputError, match=r"validation-extra are not the same; .* evaluates both again"):
        read_held_out(run, read_about(run).suites[few.name])


def test_a_suite_of_large_images_is_made_of_some(run: Run, images: UserImages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.evaluation.image_groups._SUITE_BYTES", 75 * 3 * 16 * 16 * 7)
    some = images_to_corrupt(run, parts_of(images, EXPERIMENT), CORRUPTED)
    monkeypatch.undo()
    whole = images_to_corrupt(run, parts_of(images, EXPERIMENT), CORRUPTED)
    assert len(some) == 7
    assert torch.equal(some.images_NCHW, whole.images_NCHW[:7])


def test_a_run_on_all_images_has_nothing_to_fit_on(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "all", tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert len(parts_of_run(run, place / "data").train) == 204
    evaluate(run, place)
    assert read_about(run).held_out is None
    with pytest.raises(InputError, match="was trained on all images but the test images, so none are left to fit"):
        recalibrate_run(run)
    with pytest.raises(InputError, match="none are left to choose a threshold on"):
        threshold_run(run, 0.5)
    with pytest.raises(InputError, match="validation-extra needs images that were held out"):
        evaluate(run, place, suites=(VALIDATION_EXTRA,))


def test_two_runs_on_the_same_images_are_compared_and_others_are_not(place: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(place / name, tmp_path / name)
        evaluate(load_run(tmp_path / name), place)
    compared = compare_run(tmp_path / "first", [tmp_path / "second"])
    assert compared.against[0].clean is not None
    for name in ("results.json", "logits/about.json"):
        record = read_json(tmp_path / "second" / name)
        images = record["evaluated_on" if name == "results.json" else "clean"]
        images["key"] = "of others with the same name"
        write_json(tmp_path / "second" / name, record)
    recompute_results(load_run(tmp_path / "second"))
    with pytest.raises(InputError, match="give runs evaluated on the same images"):
        compare_run(tmp_path / "first", [tmp_path / "second"])


def test_validation_logits_go_when_their_images_are_gone(tmp_path: Path, place: Path) -> None:
    photos = write_collection(tmp_path / "photos", {"train": 30, "val": 12, "test": 12})
    data = read_images(ON_ALL, photos, place / "data")
    assert train(ON_ALL, tmp_path / "run", data, options=Options(device="cpu"))
    run = load_run(tmp_path / "run")
    evaluate(run, place)
    assert read_about(run).held_out is not None, "images in a folder val are never trained on"
    shutil.rmtree(photos / "val")
    evaluate(run, place)
    assert read_about(run).held_out is None


def test_a_run_starts_from_no_weights_that_know_its_held_out_images(
    place: Path, images: UserImages, tmp_path: Path
) -> None:
    first, on_all, root = load_run(place / "first"), load_run(place / "all"), place / "data"
    check_unseen_by(first, EXPERIMENT, images, root)
    check_unseen_by(first, ON_ALL, read_images(ON_ALL, place / "photos", root), root)
    with pytest.raises(InputError, match=r"all was trained on .*, and the new run would .* \(36 such images in all\)"):
        check_unseen_by(on_all, EXPERIMENT, images, root)
    others = replace(EXPERIMENT, images=OwnImages(16, split_seed=1), starts_from=weights_hash(first))
    data = read_images(others, place / "photos", root)
    with pytest.raises(InputError, match=r"first was trained on .*, and .* or do not start from that run \(--from\)"):
        train(others, tmp_path / "new", data, start=first, root=root, options=Options(device="cpu"))
    assert not (tmp_path / "new" / "run.json").exists()
    started = replace(first, experiment=replace(EXPERIMENT, starts_from=weights_hash(on_all)))
    of_all = {**first.record, "from": str(on_all.folder)}
    with pytest.raises(InputError, match=r"all was trained on .* \(36 such images in all\)"):
        check_unseen_by(replace(started, record=of_all), EXPERIMENT, images, root)
    heard = Heard()
    nowhere = {"images": {"source": "nowhere"}}
    elsewhere = {"images": {"source": str(write_collection(tmp_path / "b", {"": 90}))}}
    for gone in (nowhere, elsewhere):
        check_unseen_by(replace(first, record={**first.record, **gone}), EXPERIMENT, images, root, heard)
        with pytest.raises(InputError, match=r"all was trained on .* \(36 such images in all\)"):
            check_unseen_by(replace(on_all, record={**on_all.record, **gone}), EXPERIMENT, images, root, heard)
    assert heard.notes == [], "the runs keep what they were trained on"
    earlier = tmp_path / "earlier"  # an earlier version began this one, and kept nothing
    earlier.mkdir()
    for run in (
        replace(first, folder=earlier, record={**first.record, **nowhere}),
        replace(first, folder=earlier, record={**first.record, **elsewhere}),
        started,
        replace(started, record={**of_all, "from": str(first.folder)}),
    ):
        check_unseen_by(run, EXPERIMENT, images, root, heard)
    assert [note.partition(": ")[0] for note in heard.notes] == [
        f"it is not known whether {folder} has learned from images that are validated or tested on here"
        for folder in (earlier, earlier, first.folder, first.folder)
    ]


def test_a_run_on_a_split_starts_from_no_run_on_all_images(tmp_path: Path) -> None:
    on_all = Run(tmp_path / "run", replace(QUICK, train_on="all"), {"seed": 0})
    data = few_digits(40)
    for experiment in (replace(QUICK, train_on="all"), replace(QUICK, dataset="cifar10", train_on="split")):
        check_unseen_by(on_all, experiment, data)
    with pytest.raises(InputError, match="trained on all images of digits, and so on those that the new run would val"):
        check_unseen_by(on_all, replace(QUICK, train_on="split"), data)


def test_a_run_without_a_source_says_so(run: Run, place: Path) -> None:
    write_json(run.folder / "run.json", {key: value for key, value in run.record.items() if key != "images"})
    with pytest.raises(InputError, match=r"run\.json does not say where its images were"):
        parts_of_run(load_run(run.folder), place / "data")


def test_a_run_on_a_named_data_set_takes_no_other_images(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", QUICK, {"seed": 0})
    with pytest.raises(InputError, match=r"run was trained on digits; leave the images \(--images, "):
        parts_of_run(run, None, tmp_path)


def test_its_images_are_called_by_their_folder_or_file(run: Run) -> None:
    assert data_name(run) == "photos"
    for source, called in (("a/b.csv", "b"), ("a/b.c", "b.c"), ("a/x.NPZ", "x")):
        moved = replace(run, record={**run.record, "images": {"source": source}})
        assert data_name(moved) == called
    assert data_name(Run(run.folder, QUICK, {"seed": 0})) == "digits"


def test_the_split_seed_decides_what_is_split_off(place: Path, images: UserImages) -> None:
    other = replace(EXPERIMENT, images=OwnImages(16, split_seed=1))
    again, others = (read_images(one, place / "photos", place / "data").keys for one in (EXPERIMENT, other))
    assert again == images.keys
    assert not set(others.values()) & set(again.values())


def test_cells_of_images_that_share_a_name_alone_are_not_compared(make_run: MakeRun) -> None:
    ours, theirs = make_run("ours"), make_run("theirs", seed=1)
    set_about(theirs, clean=encode(Images("digits", "test", IMAGES, "of others")))
    for run in (ours, theirs):
        evaluated(run)
    with pytest.raises(InputError, match="give runs evaluated on the same images"):
        compare_run(ours.folder, [theirs.folder])
