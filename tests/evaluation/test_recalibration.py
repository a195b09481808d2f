"""Recalibrations of a run: what they are fitted on and not, what they change, and what is refused."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import corrupted_differences
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.metrics import ImageScores, aggregate, calibration_differences, image_scores, mean_difference
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.summary import figures
from counterpoint.recalibration.apply import Labelled, apply, image_temperatures, member_signals
from counterpoint.recalibration.choose import HeldOut, choose, cross_fit
from counterpoint.recalibration.families import Family, families
from counterpoint.recalibration.fit import FitSet, fit
from counterpoint.records.codec import encode
from counterpoint.records.compared import CorruptedDifferences
from counterpoint.records.files import read_evaluated, read_record, read_results
from counterpoint.records.images import Images
from counterpoint.records.recalibrated import FittedOn, Recalibrated, Recalibration, ScaledCorrupted
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import read_array, write_array
from tests.heard import Heard
from tests.made_runs import (
    CELL_IMAGES,
    CLASSES,
    IMAGES,
    MakeRun,
    add_suite,
    copied,
    evaluated,
    files_of,
    keep_cells,
    saved,
    set_about,
    shift_of,
)

EXTRA, EXTRA_IMAGES = VALIDATION_EXTRA.name, 60
NAMES, SEVERITIES = ("fog", "snow", "jpeg_compression"), (2, 5)
EXTRA_NAMES, EXTRA_SEVERITIES = ("spatter", "saturate"), (3, 5)
FAMILIES = {family.name: family for family in families(2, shifted=True)}


def with_extra(run: Run) -> Run:
    """With few cells, among them the validation images under two extra corruptions; then evaluated."""
    add_suite(run, EXTRA, EXTRA_IMAGES)
    keep_cells(run, EXTRA, EXTRA_NAMES, EXTRA_SEVERITIES)
    keep_cells(run, "corrupted", NAMES, SEVERITIES)
    evaluated(run)
    return run


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    """An evaluated run on the split."""
    return with_extra(make_run(train_on="split"))


@pytest.fixture(scope="module")
def found(run: Run) -> Recalibrated:
    return recalibrate_run(run, choosing=True)


@pytest.fixture(scope="module")
def on_all(make_run: MakeRun) -> Run:
    """An evaluated run that was trained on all images."""
    run = make_run(seed=5)
    keep_cells(run, "corrupted", CORRUPTIONS, [3])
    evaluated(run)
    return run


@pytest.fixture(scope="module")
def twin(make_run: MakeRun) -> Run:
    """The twin of `on_all`, of which only the logits are needed."""
    twin = make_run("twin", seed=7, train_on="split", name="digits/twin", warmup_steps=3)
    add_suite(twin, EXTRA, EXTRA_IMAGES)
    keep_cells(twin, EXTRA, EXTRA_NAMES, EXTRA_SEVERITIES)
    return twin


@pytest.fixture(scope="module")
def of_twin(on_all: Run, twin: Run) -> Recalibrated:
    return recalibrate_run(on_all, twin, choosing=True)


def same(found: Any, expected: Any) -> bool:
    """Whether two records are equal, but for rounding errors and where a search ends."""
    ours, theirs = leaves(encode(found)), leaves(encode(expected))
    numbers = [place for place, leaf in theirs.items() if isinstance(leaf, float)]
    close = [ours.pop(place, None) for place in numbers] == pytest.approx(
        [theirs.pop(place) for place in numbers], rel=1e-5, abs=1e-7
    )
    return bool(close) and ours == theirs


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """Every number and text by its place: `approx` takes no nested values."""
    if not isinstance(value, dict | list):
        return {place: value}
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return {name: leaf for key, one in inner for name, leaf in leaves(one, f"{place}.{key}").items()}


def clean_images(run: Run) -> Labelled:
    return Labelled(saved(run, "clean").astype(np.float64), saved(run, "labels"))


def extra_images(run: Run) -> dict[str, list[Labelled]]:
    labels = saved(run, f"{EXTRA}/labels")
    return {
        name: [Labelled(saved(run, f"{EXTRA}/{name}-{i}").astype(np.float64), labels) for i in EXTRA_SEVERITIES]
        for name in EXTRA_NAMES
    }


def cell_images(run: Run) -> Iterator[tuple[str, int, Labelled]]:
    for name in NAMES:
        for severity in SEVERITIES:
            logits_MNK = saved(run, f"{name}-{severity}").astype(np.float64)
            yield name, severity, Labelled(logits_MNK, saved(run, "cell-labels"))


def fitted_by_hand(family: Family, clean: Labelled, cells: list[Labelled]) -> Recalibration:
    if family.images == "clean":
        return fit(family, [FitSet(clean, 1.0)])
    return fit(family, [FitSet(clean, 0.5), *(FitSet(one, 0.5 / len(cells)) for one in cells)])


def halves_by_hand(run: Run, family: Family) -> list[tuple[Labelled, Recalibration]]:
    """Each half of the clean images, with the parameters of the other half and its corrupted sets."""
    clean, cells = clean_images(run), [one for sets in extra_images(run).values() for one in sets]
    first, second = np.array_split(np.random.default_rng(0).permutation(IMAGES), 2)
    return [
        (
            clean.select(mine),
            fitted_by_hand(family, clean.select(other), [one.select(other[other < EXTRA_IMAGES]) for one in cells]),
        )
        for mine, other in ((first, second), (second, first))
    ]


def parameters_of(recalibrated: Recalibrated) -> dict[str, Recalibration]:
    return {name: scaled.recalibration for name, scaled in recalibrated.ways.items()}


def grid_of(run: Run, recalibration: Recalibration, member: int | None = None) -> dict[str, list[ImageScores]]:
    """The cells' scores with a recalibration, of the ensemble or of one member."""
    grid: dict[str, list[ImageScores]] = {}
    for name, _, images in cell_images(run):
        probs = apply(recalibration, images.logits_MNK)
        scaled = probs.ensemble_NK
        if member is not None:
            assert probs.members_MNK is not None
            scaled = probs.members_MNK[member]
        grid.setdefault(name, []).append(image_scores(scaled, images.labels_N))
    return grid


def plain_grid(run: Run) -> dict[str, list[ImageScores]]:
    grid: dict[str, list[ImageScores]] = {}
    for name, _, images in cell_images(run):
        grid.setdefault(name, []).append(image_scores(softmax(images.logits_MNK, axis=2).mean(axis=0), images.labels_N))
    return grid


def corrupted_of(recalibrated: Recalibrated, name: str) -> ScaledCorrupted:
    corrupted = recalibrated.ways[name].corrupted
    assert corrupted is not None
    return corrupted


def test_the_record_says_what_was_fitted_on(run: Run, found: Recalibrated) -> None:
    shift = shift_of(VALIDATION_EXTRA, EXTRA_IMAGES)
    assert found.fitted_on.shift is not None
    assert (found.fitted_on.shift.part, found.fitted_on.shift.images) == (shift.part, EXTRA_IMAGES)
    assert found.fitted_on.shift.corruptions == EXTRA_NAMES
    assert found.fitted_on == FittedOn(
        Images("digits", "validation", IMAGES), found.fitted_on.shift, "this run", "weights of seed 0"
    )
    assert found.clean_how == "cross-fitted on two seeded halves of the validation images"
    assert found.corrupted_how == "parameters of all validation images"
    assert found.care == "both"
    assert found.made_from == read_results(run.folder / "results.json").made_from


def test_every_family_is_fitted_to_all_images_that_it_is_for(run: Run, found: Recalibrated) -> None:
    assert list(found.ways) == list(FAMILIES)
    clean, cells = clean_images(run), [one for sets in extra_images(run).values() for one in sets]
    for name, family in FAMILIES.items():
        assert same(found.ways[name].recalibration, fitted_by_hand(family, clean, cells))


def test_the_choice_is_that_of_the_validation_images(run: Run, found: Recalibrated) -> None:
    expected = choose(list(FAMILIES.values()), HeldOut(clean_images(run), extra_images(run)), "both")
    assert found.choice is not None
    assert same(found.choice, expected)
    assert found.choice.images == EXTRA_IMAGES
    assert found.choice.chosen in FAMILIES, "so that these tests see what the chosen one has more"


@pytest.mark.parametrize("name", FAMILIES)
def test_clean_images_are_cross_fitted(run: Run, found: Recalibrated, name: str) -> None:
    halves = halves_by_hand(run, FAMILIES[name])
    ensemble, changed = [], []
    members: list[list[ImageScores]] = [[], []]
    for images, recalibration in halves:
        probs = apply(recalibration, images.logits_MNK)
        ensemble.append(image_scores(probs.ensemble_NK, images.labels_N))
        plain = softmax(images.logits_MNK, axis=2).mean(axis=0).argmax(axis=1)
        changed.extend(probs.ensemble_NK.argmax(axis=1) != plain)
        for i, member in enumerate(probs.members_MNK if probs.members_MNK is not None else ()):
            members[i].append(image_scores(member, images.labels_N))
    clean = found.ways[name].clean
    assert same(clean.ensemble, figures(join_scores(ensemble)))
    assert clean.changed_predictions == pytest.approx(np.mean(changed))
    if FAMILIES[name].acts == "after":
        assert clean.members == read_results(run.folder / "results.json").clean.members, "as they were"
        assert clean.changed_predictions == 0
    else:
        assert same(clean.members, [figures(join_scores(both)) for both in members])


@pytest.mark.parametrize("name", FAMILIES)
def test_cells_are_scaled_with_the_parameters_of_all_images(run: Run, found: Recalibrated, name: str) -> None:
    corrupted, recalibration = corrupted_of(found, name), found.ways[name].recalibration
    grid = grid_of(run, recalibration)
    assert same(corrupted.ensemble, aggregate(grid))
    assert same(
        corrupted.severities,
        [figures(join_scores([grid[corruption][i] for corruption in NAMES])) for i in range(len(SEVERITIES))],
    )
    assert tuple(corrupted.corruptions) == NAMES
    assert same(corrupted.corruptions, {corruption: figures(join_scores(cells)) for corruption, cells in grid.items()})
    changed = [
        apply(recalibration, images.logits_MNK).ensemble_NK.argmax(axis=1)
        != softmax(images.logits_MNK, axis=2).mean(axis=0).argmax(axis=1)
        for _, _, images in cell_images(run)
    ]
    assert corrupted.changed_predictions == pytest.approx(np.mean(changed))


@pytest.mark.parametrize("name", ["after", "before", "per-member", "by both"])
def test_members_are_scaled_in_the_cells_too(run: Run, found: Recalibrated, name: str) -> None:
    members = corrupted_of(found, name).members
    if name == "after":
        plain = read_results(run.folder / "results.json").corrupted
        assert plain is not None
        assert members == plain.aggregates.members, "as they were"
        return
    assert same(members, [aggregate(grid_of(run, found.ways[name].recalibration, member)) for member in range(2)])


def test_the_simplest_and_the_chosen_one_are_compared_with_none(run: Run, found: Recalibrated) -> None:
    assert found.choice is not None
    plain = plain_grid(run)
    for name in FAMILIES:
        corrupted = corrupted_of(found, name)
        if name not in ("before", found.choice.chosen):
            assert (corrupted.differences, corrupted.calibration_differences) == (None, ())
            assert found.ways[name].clean.differences is None
            continue
        assert found.ways[name].clean.differences is not None
        grid = grid_of(run, found.ways[name].recalibration)
        assert isinstance(corrupted.differences, CorruptedDifferences)
        assert same(corrupted.differences, corrupted_differences(grid, plain))
        ours = np.mean([scores.nll for cells in grid.values() for scores in cells])
        theirs = np.mean([scores.nll for cells in plain.values() for scores in cells])
        assert corrupted.differences.mean.nll.difference == pytest.approx(ours - theirs)
        assert len(corrupted.calibration_differences) == len(SEVERITIES)
        for i, at_severity in enumerate(corrupted.calibration_differences):
            of_metrics = calibration_differences(
                {"all corruptions": [cells[i] for cells in grid.values()]},
                {"all corruptions": [cells[i] for cells in plain.values()]},
            )
            assert same(
                at_severity,
                {
                    measure: {"difference": one.value, "low": one.low, "high": one.high}
                    for measure, one in of_metrics.items()
                },
            )


def test_without_a_choice_only_the_simplest_is_compared(on_all: Run, twin: Run, tmp_path: Path) -> None:
    plainly = recalibrate_run(copied(on_all, tmp_path / "run"), twin)
    assert plainly.choice is None
    assert [name for name in plainly.ways if corrupted_of(plainly, name).differences] == ["before"]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_temperature_moves_with_the_images(run: Run, found: Recalibrated, name: str) -> None:
    moves, recalibration = found.ways[name].moves, found.ways[name].recalibration
    if not FAMILIES[name].signals:
        assert moves == ()
        return
    sets = {"clean": [clean_images(run).logits_MNK]}
    for severity in SEVERITIES:
        sets[f"severity {severity}"] = [images.logits_MNK for _, at, images in cell_images(run) if at == severity]
    assert [moved.images for moved in moves] == list(sets)
    for moved, arrays in zip(moves, sets.values(), strict=True):
        together = np.concatenate(arrays, axis=1)
        signals = member_signals(together)
        assert moved.temperature == pytest.approx(image_temperatures(recalibration, together).mean())
        assert moved.entropy == pytest.approx(signals["entropy"].mean())
        assert moved.disagreement == pytest.approx(signals["disagreement"].mean())


def test_a_run_on_everything_takes_the_parameters_of_its_twin(on_all: Run, twin: Run, of_twin: Recalibrated) -> None:
    clean, cells = clean_images(twin), [one for sets in extra_images(twin).values() for one in sets]
    for name, family in FAMILIES.items():
        recalibration = fitted_by_hand(family, clean, cells)
        assert same(of_twin.ways[name].recalibration, recalibration)
        scaled = apply(recalibration, saved(on_all, "clean")).ensemble_NK
        assert same(of_twin.ways[name].clean.ensemble, figures(image_scores(scaled, saved(on_all, "labels"))))
    assert of_twin.fitted_on.images == Images("digits", "validation", IMAGES)
    assert (of_twin.fitted_on.run, of_twin.fitted_on.weights) == ("digits/twin, seed 7", "weights of seed 7")
    assert of_twin.clean_how == of_twin.corrupted_how == "parameters of the twin run digits/twin, seed 7"
    assert of_twin.choice is not None
    assert same(of_twin.choice, choose(list(FAMILIES.values()), HeldOut(clean, extra_images(twin)), "both"))


@pytest.mark.parametrize("care", ["clean", "shift"])
def test_what_is_cared_for_is_handed_on(on_all: Run, twin: Run, tmp_path: Path, care: Any) -> None:
    found = recalibrate_run(copied(on_all, tmp_path / "run"), twin, care=care, choosing=True)
    assert found.choice is not None
    assert found.care == found.choice.care == care
    if care == "clean":
        assert list(found.ways) == ["before", "after", "per-member"], "the others would be the same once more"
        return
    cells = [one for sets in extra_images(twin).values() for one in sets]
    expected = fit(FAMILIES["by entropy"], [FitSet(one, 1 / len(cells)) for one in cells])
    assert same(found.ways["by entropy"].recalibration, expected)


def nonsense(path: Path) -> None:
    """Other logits, or another label for every image."""
    array = np.load(path)
    if array.ndim == 1:
        write_array(path, (array + 1) % CLASSES)
    else:
        write_array(path, -array[:, ::-1])


def test_no_corrupted_test_image_has_a_say(run: Run, found: Recalibrated, tmp_path: Path) -> None:
    run = copied(run, tmp_path / "run")
    for file in ("cell-labels", *(f"{name}-{severity}" for name in NAMES for severity in SEVERITIES)):
        nonsense(run.folder / "logits" / f"{file}.npy")
    changed = recalibrate_run(run, choosing=True)
    assert parameters_of(changed) == parameters_of(found)
    assert changed.choice == found.choice
    assert {name: scaled.clean for name, scaled in changed.ways.items()} == {
        name: scaled.clean for name, scaled in found.ways.items()
    }
    assert corrupted_of(changed, "before").ensemble != corrupted_of(found, "before").ensemble, "which they must"


def test_no_test_image_has_a_say(on_all: Run, twin: Run, of_twin: Recalibrated, tmp_path: Path) -> None:
    """Clean or under any of the 15 corruptions, of a run whose clean images are test images, and of its twin."""
    run, same_twin = copied(on_all, tmp_path / "run"), copied(twin, tmp_path / "twin")
    for folder in (run.folder / "logits", same_twin.folder / "logits"):
        for path in folder.glob("*.npy"):
            if folder.parent == run.folder or path.stem not in ("clean", "labels"):
                nonsense(path)
    changed = recalibrate_run(run, same_twin, choosing=True)
    assert parameters_of(changed) == parameters_of(of_twin)
    assert changed.choice == of_twin.choice
    assert {name: way.validation_nll for name, way in changed.ways.items()} == {
        name: way.validation_nll for name, way in of_twin.ways.items()
    }
    assert changed.ways["before"].clean.ensemble != of_twin.ways["before"].clean.ensemble, "which they must"


@pytest.mark.parametrize("files", [("clean",), ("labels", f"{EXTRA}/labels"), (f"{EXTRA}/spatter-3",)], ids=str)
def test_validation_images_have_a_say(
    on_all: Run, twin: Run, of_twin: Recalibrated, tmp_path: Path, files: tuple[str, ...]
) -> None:
    other_twin = copied(twin, tmp_path / "twin")
    for file in files:
        path = other_twin.folder / "logits" / f"{file}.npy"
        array = np.load(path)
        array[..., :5] = (array[..., :5] + 1) % CLASSES if array.ndim == 1 else array[..., :5]
        write_array(path, array if array.ndim == 1 else 0.5 * array)
    changed = recalibrate_run(copied(on_all, tmp_path / "run"), other_twin)
    of_clean_ones = "/" not in files[0]
    for name in ["before", "by both"] if of_clean_ones else ["by both"]:
        assert parameters_of(changed)[name] != parameters_of(of_twin)[name]
    if not of_clean_ones:
        assert parameters_of(changed)["before"] == parameters_of(of_twin)["before"]


def test_what_is_no_held_out_image_is_refused(run: Run, tmp_path: Path) -> None:
    run = copied(run, tmp_path / "run")
    (run.folder / "recalibrated.json").unlink(missing_ok=True)
    about = json.loads((run.folder / "logits" / "about.json").read_text())[EXTRA]
    set_about(run, **{EXTRA: about | {"part": "test"}})
    with pytest.raises(
        InputError,
        match="has test images under spatter, saturate; a recalibration is fitted only on validation images under",
    ):
        recalibrate_run(run)
    write_array(run.folder / "logits" / EXTRA / "fog-3.npy", saved(run, "fog-2"))
    write_array(run.folder / "logits" / EXTRA / "fog-5.npy", saved(run, "fog-5"))
    set_about(run, **{EXTRA: about | {"corruptions": ["spatter", "fog"]}})
    with pytest.raises(
        InputError,
        match="has validation images under spatter, fog; a recalibration is fitted only on validation images under",
    ):
        recalibrate_run(run)
    clean = Images("digits", "test", IMAGES)
    set_about(run, **{EXTRA: about}, clean=encode(clean))
    results = json.loads((run.folder / "results.json").read_text())
    (run.folder / "results.json").write_text(json.dumps(results | {"evaluated_on": encode(clean)}))
    with pytest.raises(InputError, match="none are left to fit a temperature on"):
        recalibrate_run(run)
    assert not (run.folder / "recalibrated.json").exists()


def test_a_thousand_images_of_a_corrupted_set_are_fitted_on(on_all: Run, twin: Run, tmp_path: Path) -> None:
    run, twin = copied(on_all, tmp_path / "run"), copied(twin, tmp_path / "twin")
    add_suite(twin, EXTRA, 1_004)
    keep_cells(twin, EXTRA, ["spatter"], [3])
    found = recalibrate_run(run, twin)
    assert found.fitted_on.shift is not None
    assert found.fitted_on.shift.images == 1_000
    for file in ("spatter-3", "labels"):
        path = twin.folder / "logits" / EXTRA / f"{file}.npy"
        array = np.load(path)
        array[..., 1_000:] = 0 if array.ndim == 1 else array[..., 1_000:]
        if array.ndim == 3:
            array[:, 1_000:] *= -3
        write_array(path, array)
    assert parameters_of(recalibrate_run(run, twin)) == parameters_of(found)
    path = twin.folder / "logits" / EXTRA / "spatter-3.npy"
    array = np.load(path)
    array[:, 999] *= -3
    write_array(path, array)
    assert parameters_of(recalibrate_run(run, twin)) != parameters_of(found)


def test_each_file_is_read_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()

    def counted(path: Path, remedy: str) -> np.ndarray:
        read[path.relative_to(tmp_path / "run" / "logits").with_suffix("").as_posix()] += 1
        return read_array(path, remedy)

    monkeypatch.setattr("counterpoint.evaluation.logits.read_array", counted)
    recalibrate_run(copied(run, tmp_path / "run"))
    cells = [f"{name}-{severity}" for name in NAMES for severity in SEVERITIES]
    cells += [f"{EXTRA}/{name}-{severity}" for name in EXTRA_NAMES for severity in EXTRA_SEVERITIES]
    assert {name: read[name] for name in cells} == dict.fromkeys(cells, 1)
    assert set(read) == {*cells, "clean", "labels", "cell-labels", f"{EXTRA}/labels"}


def test_the_file_holds_it_all(run: Run, found: Recalibrated, on_all: Run, of_twin: Recalibrated) -> None:
    for one, expected in ((run, found), (on_all, of_twin)):
        assert read_record(one.folder / "recalibrated.json", Recalibrated, "") == expected
        assert read_evaluated(one.folder).recalibrated == expected


def test_recalibrate_writes_its_own_file_alone(on_all: Run, twin: Run, tmp_path: Path) -> None:
    run = copied(on_all, tmp_path / "run")
    (run.folder / "recalibrated.json").unlink(missing_ok=True)
    before = files_of(run.folder), files_of(twin.folder)
    recalibrate_run(run, twin)
    after = files_of(run.folder)
    assert after.keys() - before[0].keys() == {"recalibrated.json"}
    assert after.items() >= before[0].items()
    assert files_of(twin.folder) == before[1]


def test_without_cells_the_clean_figures_are_recalibrated(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    (run.folder / "logits" / "fog-1.npy").unlink()
    evaluated(run)
    found = recalibrate_run(run)
    assert [scaled.corrupted for scaled in found.ways.values()] == [None] * 3
    assert list(found.ways) == ["before", "after", "per-member"], "without images under shift"
    assert (found.fitted_on.shift, found.choice) == (None, None)
    assert read_evaluated(run.folder).recalibrated == found


def test_a_single_network_has_the_ways_that_it_can_show_alone(make_run: MakeRun) -> None:
    run = make_run(train_on="split", members=1)
    add_suite(run, EXTRA, EXTRA_IMAGES)
    keep_cells(run, EXTRA, EXTRA_NAMES, EXTRA_SEVERITIES)
    keep_cells(run, "corrupted", ["fog"], [1])
    evaluated(run)
    found = recalibrate_run(run, choosing=True)
    assert list(found.ways) == ["before", "before, shifted", "by entropy"]
    assert found.choice is not None
    assert [one.name for one in found.choice.candidates] == ["none", *found.ways]
    for name, scaled in found.ways.items():
        assert len(scaled.clean.members) == 1
        assert scaled.clean.ensemble == scaled.clean.members[0]
        assert scaled.clean.changed_predictions == corrupted_of(found, name).changed_predictions == 0
    assert [moved.disagreement for moved in found.ways["by entropy"].moves] == pytest.approx([0, 0], abs=1e-12)
    assert read_evaluated(run.folder).recalibrated == found


def test_choosing_without_images_under_shift_says_how_to_make_them(on_all: Run, make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    (run.folder / "logits" / "fog-1.npy").unlink()
    evaluated(run)
    folder = run.folder
    says = rf"^{folder} has no logits of validation images .* `counterpoint evaluate {folder} --sets validation-extra`"
    with pytest.raises(InputError, match=says):
        recalibrate_run(run, choosing=True)
    assert not (folder / "recalibrated.json").exists()
    without = make_run("without", seed=7, train_on="split", name="digits/twin", warmup_steps=3)
    with pytest.raises(InputError, match=rf"`counterpoint evaluate {without.folder} --sets validation-extra` makes"):
        recalibrate_run(on_all, without, choosing=True)


def test_half_a_suite_is_none(run: Run, tmp_path: Path) -> None:
    run = copied(run, tmp_path / "run")
    (run.folder / "logits" / EXTRA / "saturate-5.npy").unlink()
    with pytest.raises(InputError, match="has no logits of validation images under shift to choose on"):
        recalibrate_run(run, choosing=True)


def test_a_way_that_the_images_do_not_determine_is_left_out_with_a_note(
    run: Run, found: Recalibrated, tmp_path: Path
) -> None:
    """The second member gets every clean image right; under shift it does not."""
    run, heard = copied(run, tmp_path / "run"), Heard()
    clean = saved(run, "clean")
    clean[1] = 8 * np.eye(CLASSES)[saved(run, "labels")]
    clean[0] = clean[0] * np.where((clean[0].argmax(axis=1) == saved(run, "labels"))[:, None], 1, 4)
    write_array(run.folder / "logits" / "clean.npy", clean)
    evaluated(run)
    changed = recalibrate_run(run, choosing=True, watcher=heard)
    left_out = [name for name in found.ways if name not in changed.ways]
    assert "per-member" in left_out
    assert "per-member, shifted" not in left_out
    assert [note.split(" is left out: ")[0] for note in heard.notes] == left_out
    assert all("do not determine a temperature" in note for note in heard.notes)
    assert changed.choice is not None
    assert not {one.name for one in changed.choice.candidates} & set(left_out)
    assert heard.notes == [f"{name} is left out: {changed.choice.refused[name]}" for name in left_out]
    assert read_evaluated(run.folder).recalibrated == changed


def test_where_nothing_is_determined_the_reason_is_given(make_run: MakeRun) -> None:
    run, heard = make_run(train_on="split"), Heard()
    right = 4 * np.eye(CLASSES)[saved(run, "labels")][None].repeat(2, axis=0)
    write_array(run.folder / "logits" / "clean.npy", right.astype(np.float32))
    keep_cells(run, "corrupted", ["fog"], [1])
    evaluated(run)
    with pytest.raises(InputError, match=r"^these 80 images .* Perhaps all of them are predicted right"):
        recalibrate_run(run, watcher=heard)
    assert heard.notes == []
    assert not (run.folder / "recalibrated.json").exists()


def test_what_was_not_evaluated_is_refused(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    with pytest.raises(InputError, match=r"has no results\.json; `counterpoint evaluate .*` makes it"):
        recalibrate_run(run)
    assert not (run.folder / "recalibrated.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"weights": "others"},
        {"precision": "bf16"},
        {"corrupted": {"source": {"kind": "official"}, "images": CELL_IMAGES}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_results_of_other_logits_are_refused(run: Run, tmp_path: Path, change: dict[str, Any]) -> None:
    run = copied(run, tmp_path / "run")
    (run.folder / "recalibrated.json").unlink(missing_ok=True)
    set_about(run, **change)
    with pytest.raises(
        InputError, match=r"results\.json was made from other logits than those in .* evaluate .*run --recompute` makes"
    ):
        recalibrate_run(run)
    assert not (run.folder / "recalibrated.json").exists()


@pytest.mark.parametrize("change", ["weights", "precision", "images"])
def test_recalibrations_of_other_logits_are_left_out_with_a_note(
    run: Run, found: Recalibrated, tmp_path: Path, change: str
) -> None:
    run = copied(run, tmp_path / "run")
    assert read_evaluated(run.folder).recalibrated == found
    path = run.folder / "results.json"
    results = json.loads(path.read_text())
    results["corrupted" if change == "images" else "evaluation"][change] = 29 if change == "images" else "another"
    path.write_text(json.dumps(results))
    evaluation = read_evaluated(run.folder)
    assert evaluation.recalibrated is None
    (note,) = evaluation.notes
    assert note == (
        f"left out: {run.folder / 'recalibrated.json'} was made from other logits than results.json; "
        f"`counterpoint recalibrate {run.folder}` makes it again"
    )


def test_wrong_twins_are_refused(run: Run, on_all: Run) -> None:
    with pytest.raises(
        InputError, match=r"trained on all images, .* --set train_on=split --out TWIN` .* \(--twin TWIN\)"
    ):
        recalibrate_run(on_all)
    with pytest.raises(InputError, match=r"has validation images of its own; leave the twin \(--twin\) out"):
        recalibrate_run(run, run)


def test_on_clean_images_the_differences_are_of_the_same_images(run: Run, found: Recalibrated) -> None:
    clean = clean_images(run)
    plain = image_scores(softmax(clean.logits_MNK, axis=2).mean(axis=0), clean.labels_N)
    crossed_N = np.empty(len(clean))
    held_out = HeldOut(clean, extra_images(run))
    for images, one in cross_fit(FAMILIES["before"], held_out, "both"):
        half = clean.select(images)
        crossed_N[images] = image_scores(apply(one, half.logits_MNK).ensemble_NK, half.labels_N).nll
    assert found.ways["before"].clean.differences is not None
    nll = found.ways["before"].clean.differences.nll
    expected = mean_difference(crossed_N, plain.nll)
    assert (nll.difference, nll.low, nll.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_a_family_whose_halves_determine_nothing_is_left_out(run: Run, tmp_path: Path) -> None:
    """One wrong image is in one of the two halves, and the other half is all right."""
    copy = copied(run, tmp_path / "run")
    labels_N = saved(copy, "labels")
    sure_NK = 10 * np.eye(CLASSES)[labels_N]
    wrong_NK = sure_NK.copy()
    wrong_NK[0] = np.roll(wrong_NK[0], 1)
    write_array(copy.folder / "logits" / "clean.npy", np.stack([wrong_NK, wrong_NK]).astype(np.float32))
    evaluated(copy)
    heard = Heard()
    found = recalibrate_run(copy, choosing=True, watcher=heard)
    assert "before" not in found.ways
    assert found.choice is not None
    assert "Perhaps all of them are predicted right" in found.choice.refused["before"]
    assert any(note.startswith("before is left out: ") for note in heard.notes)
