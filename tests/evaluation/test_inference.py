"""Logits on disk: whose they are, which are computed again and when, and what is kept beside them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor

from counterpoint.data import parts_of
from counterpoint.data.sets import DataSet
from counterpoint.devices import Precision, describe_precision
from counterpoint.errors import InputError, StoppedError
from counterpoint.evaluation.image_groups import (
    ImageGroup,
    clean_group,
    images_to_corrupt,
    outside_group,
    suite_group,
)
from counterpoint.evaluation.inference import collect_logits
from counterpoint.evaluation.logits import (
    map_cells,
    read_about,
    read_factors,
    read_labels,
    read_logits,
)
from counterpoint.evaluation.members import Members, fold_members, load_model, member_logits
from counterpoint.evaluation.pipeline import recompute_results
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA, CorruptedSet, Suite, corrupted_set
from counterpoint.policy import MemberPolicy
from counterpoint.records.images import Images, Shift, Source
from counterpoint.runs.checkpoints import Checkpoint, save_checkpoint
from counterpoint.runs.folder import Run, open_run
from counterpoint.storage.files import read_json, write_json
from counterpoint.training.batches import total_steps
from counterpoint.training.network import build_model, describe_run
from tests.heard import Heard
from tests.made_runs import retrain
from tests.small import QUICK, TINY, few_digits, held_out_images, noise_data

CPU = torch.device("cpu")


class Counted:
    """The network's work on a set of images, counted, and interrupted where a test asks for it."""

    def __init__(self) -> None:
        self.sets = 0
        self.interrupt_at: int | None = None

    def __call__(self, members: Members, images_NCHW: Tensor) -> np.ndarray:
        if self.sets == self.interrupt_at:
            raise KeyboardInterrupt
        self.sets += 1
        return member_logits(members, images_NCHW)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr("counterpoint.evaluation.inference.member_logits", counted)
    return counted


@pytest.fixture
def collect(run: Run, root: Path) -> Callable[..., None]:
    """Collects the logits of the clean images and of the paper's suite."""
    data = few_digits(40)

    def collect(clean: int | None = None, cells: int = 10, **options: Any) -> None:
        groups = [
            clean_group(run, parts_of(data, run.experiment), clean),
            suite_group(corrupted_set(data, root), cells),
        ]
        collect_logits(run, groups, device=CPU, **options)

    return collect


def split_groups(run: Run, data: DataSet, root: Path, suites: Sequence[Suite], cells: int = 5) -> list[ImageGroup]:
    made = [
        corrupted_set(data, root, suite, images_to_corrupt(run, parts_of(data, run.experiment), suite))
        for suite in suites
    ]
    return [clean_group(run, parts_of(data, run.experiment)), *(suite_group(corrupted, cells) for corrupted in made)]


def made_at(run: Run) -> dict[str, int]:
    """When each file of logits was written."""
    folder = run.folder / "logits"
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*-[1-5].npy")} | {
        "clean.npy": (folder / "clean.npy").stat().st_mtime_ns
    }


def test_an_interrupted_evaluation_goes_on(run: Run, collect: Callable[..., None], network: Counted) -> None:
    network.interrupt_at = 5
    with pytest.raises(KeyboardInterrupt):
        collect()
    assert read_about(run).suites == {}, "a half-finished suite is not taken for a whole one"
    assert recompute_results(run).corrupted is None
    network.interrupt_at = None
    heard = Heard()
    collect(watcher=heard)
    assert network.sets == 76, "the clean set and four cells are not computed again"
    assert heard.counts == [(f"evaluating {run.experiment.name}", done, 76) for done in range(5, 77)]
    found = recompute_results(run).corrupted
    assert found is not None
    assert found.images == 10


def test_a_stop_keeps_the_cells_that_are_done(run: Run, collect: Callable[..., None], network: Counted) -> None:
    with pytest.raises(StoppedError):
        collect(should_stop=lambda: network.sets == 3)
    assert len(list((run.folder / "logits").glob("*-[1-5].npy"))) == 2
    collect()
    assert network.sets == 76, "none is computed twice"


def test_what_is_there_is_not_computed_again(run: Run, collect: Callable[..., None], network: Counted) -> None:
    collect()
    before = made_at(run)
    collect()
    assert network.sets == 76
    assert made_at(run) == before


def test_logits_are_kept_in_the_precision_that_they_need(run: Run, collect: Callable[..., None]) -> None:
    collect()
    assert read_logits(run, "fog-1").shape == (4, 10, 10)
    assert read_logits(run, "fog-1").dtype == np.float16
    assert read_logits(run, "clean").dtype == np.float32


def test_other_cell_images_replace_the_cells_alone(run: Run, collect: Callable[..., None], network: Counted) -> None:
    collect(cells=10)
    before = made_at(run)
    collect(cells=20)
    assert network.sets == 76 + 75
    assert made_at(run)["clean.npy"] == before["clean.npy"]
    assert {read_logits(run, f"{name}-{severity}").shape[1] for name, severity in CORRUPTED.cells} == {20}
    assert len(read_labels(run, "cell-labels", 20)) == 20
    assert read_about(run).suites["corrupted"].images == 20


def test_other_clean_images_replace_the_clean_ones_alone(
    run: Run, collect: Callable[..., None], network: Counted
) -> None:
    collect(clean=30)
    before = made_at(run)
    collect(clean=20)
    assert network.sets == 76 + 1
    assert read_logits(run, "clean").shape == (4, 20, 10)
    assert len(read_labels(run, "labels", 20)) == 20
    assert read_about(run).clean == Images("digits", "test", 20)
    assert {file for file, when in made_at(run).items() if when != before[file]} == {"clean.npy"}


def test_another_corrupted_set_replaces_the_cells(run: Run, root: Path, network: Counted) -> None:
    data = few_digits(40)
    shifted = corrupted_set(data, root)
    collect_logits(run, [suite_group(shifted, 10), clean_group(run, parts_of(data, run.experiment))], device=CPU)
    official = replace(shifted, source=Source("official"))
    collect_logits(run, [suite_group(official, 10), clean_group(run, parts_of(data, run.experiment))], device=CPU)
    assert network.sets == 76 + 75
    assert read_about(run).suites["corrupted"].source == Source("official")


@pytest.mark.parametrize("change", ["weights", "precision"])
def test_other_weights_or_another_precision_empty_the_folder(
    run: Run, collect: Callable[..., None], network: Counted, change: str
) -> None:
    collect()
    before, about = read_logits(run, "clean"), read_about(run)
    other = run.folder / "logits" / "validation-extra" / "labels.npy"
    other.parent.mkdir()
    other.touch()
    if change == "weights":
        retrain(run)
    collect(precision="bf16" if change == "precision" else "headline")
    assert network.sets == 2 * 76
    assert not other.exists(), "whatever else was there"
    assert not np.array_equal(read_logits(run, "clean"), before)
    assert getattr(read_about(run), change) != getattr(about, change)


def test_another_suite_leaves_the_first_one_alone(
    split_run: Run, split_data: DataSet, root: Path, network: Counted
) -> None:
    collect_logits(split_run, split_groups(split_run, split_data, root, [CORRUPTED]), device=CPU)
    before = made_at(split_run)
    collect_logits(split_run, split_groups(split_run, split_data, root, [VALIDATION_EXTRA]), device=CPU)
    assert network.sets == 76 + 20
    assert made_at(split_run).items() >= before.items()
    suites = read_about(split_run).suites
    assert {name: (shift.part, shift.images, len(shift.corruptions)) for name, shift in suites.items()} == {
        "corrupted": ("test", 5, 15),
        "validation-extra": ("validation", 5, 4),
    }
    held_out = held_out_images(split_data, split_run.experiment)
    assert np.array_equal(read_labels(split_run, "validation-extra/labels", 5), held_out.labels_N[:5].numpy())


def test_logits_of_the_earlier_version_are_not_computed_again(
    run: Run, collect: Callable[..., None], network: Counted
) -> None:
    collect()
    path, now = run.folder / "logits" / "about.json", read_about(run)
    written = read_json(path)
    earlier = {key: written[key] for key in ("step", "weights", "clean")}
    earlier["corrupted"] = {key: written["corrupted"][key] for key in ("source", "images")}
    write_json(path, earlier | {"precision": written["precision"]})
    assert read_about(run) == replace(now, commands=())
    collect()
    assert network.sets == 76
    assert read_json(path) == written


@pytest.mark.parametrize(
    "damage",
    [lambda _: "{", lambda _: "[]", lambda _: "{}", lambda text: text.replace('"images": 10', '"images": "ten"')],
    ids=["cut", "a list", "empty", "not a number"],
)
def test_a_damaged_about_file_starts_over(
    run: Run, collect: Callable[..., None], network: Counted, damage: Callable[[str], str]
) -> None:
    collect()
    path = run.folder / "logits" / "about.json"
    whole = path.read_text()
    path.write_text(damage(whole))
    assert path.read_text() != whole
    with pytest.raises(InputError, match=r"about\.json is damaged"):
        read_about(run)
    made = network.sets
    collect()
    assert network.sets >= made + 75
    assert path.read_text() == whole


@pytest.mark.parametrize("group", ["clean", "corrupted"])
def test_a_group_that_is_no_object_is_computed_again(
    run: Run, collect: Callable[..., None], network: Counted, group: str
) -> None:
    collect()
    path = run.folder / "logits" / "about.json"
    whole = read_json(path)
    write_json(path, whole | {group: 5})
    collect()
    assert network.sets == 76 + {"clean": 1, "corrupted": 75}[group]
    assert read_json(path) == whole


def test_a_run_without_logits_says_what_to_do(run: Run) -> None:
    with pytest.raises(InputError, match=r"holds no logits; `counterpoint evaluate .*`, without --recompute, makes"):
        read_about(run)


def test_a_missing_cell_hides_its_suite_and_is_made_again(
    run: Run, collect: Callable[..., None], network: Counted
) -> None:
    collect()
    (run.folder / "logits" / "snow-2.npy").unlink()
    assert read_about(run).suites == {}
    collect()
    assert network.sets == 77
    assert list(read_about(run).suites) == ["corrupted"]


def test_cells_come_in_the_order_of_the_suite(run: Run, collect: Callable[..., None]) -> None:
    collect()
    shift = read_about(run).suites["corrupted"]
    cells = list(map_cells(lambda cell: cell, run, "corrupted", shift))
    assert [(name, severity) for name, severity, _ in cells] == CORRUPTED.cells
    for name, severity, images in cells:
        assert np.array_equal(images.logits_MNK, np.load(run.folder / "logits" / f"{name}-{severity}.npy"))
        assert np.array_equal(images.labels_N, read_labels(run, "cell-labels", shift.images))


@pytest.mark.parametrize(("cells", "most"), [(0.5, 1), (2.5, 2)])
def test_no_more_cells_are_in_memory_than_their_logits_allow(
    run: Run, collect: Callable[..., None], monkeypatch: pytest.MonkeyPatch, cells: float, most: int
) -> None:
    collect()
    shift = read_about(run).suites["corrupted"]
    of_a_cell = np.load(run.folder / "logits" / "snow-2.npy").size
    asked: list[int | None] = []

    def noted(work: Callable[[Any], Any], tasks: Sequence[Any], most: int | None = None) -> Any:
        asked.append(most)
        return map(work, tasks)

    monkeypatch.setattr("counterpoint.evaluation.logits._MOST_LOGITS", int(cells * of_a_cell))
    monkeypatch.setattr("counterpoint.evaluation.logits.in_threads", noted)
    assert len(list(map_cells(len, run, "corrupted", shift))) == 75
    assert asked == [most]


def test_what_the_network_knows_is_kept_beside_the_logits(run: Run, network: Counted) -> None:
    data = few_digits(40)
    model, _ = load_model(run, CPU)
    outside = replace(data, name="cifar10", test=data.test.select(torch.arange(40).flip(0)))
    groups = [clean_group(run, parts_of(data, run.experiment)), outside_group(outside)]
    collect_logits(run, groups, device=CPU)
    assert read_logits(run, "ood") == pytest.approx(read_logits(run, "clean")[:, ::-1], rel=1e-4, abs=1e-4)
    assert read_logits(run, "ood").dtype == np.float32
    for kind, layers in read_factors(run).items():
        expected = [p.detach().numpy() for name, p in model.named_parameters() if name.split(".")[-1] == kind]
        assert len(expected) > 5
        for found, layer in zip(layers, expected, strict=True):
            np.testing.assert_array_equal(found, layer)
    collect_logits(run, [clean_group(run, parts_of(data, run.experiment)), outside_group(outside, 7)], device=CPU)
    assert network.sets == 3, "other outside images are computed again, the clean ones are not"
    assert read_logits(run, "ood").shape[1] == 7


def test_logits_beyond_float16_keep_their_probabilities(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(members: Members, images_NCHW: Tensor) -> np.ndarray:
        return member_logits(members, images_NCHW) + np.float32(1e5)

    monkeypatch.setattr("counterpoint.evaluation.inference.member_logits", large)
    data = few_digits(40)
    in_float16 = replace(outside_group(data), dtype=np.float16)
    collect_logits(run, [clean_group(run, parts_of(data, run.experiment)), in_float16], device=CPU)
    assert softmax(read_logits(run, "ood"), axis=2) == pytest.approx(
        softmax(read_logits(run, "clean"), axis=2), abs=1e-2
    )
    assert np.array_equal(read_logits(run, "ood").max(axis=2), np.zeros(read_logits(run, "ood").shape[:2]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_network_that_gives_no_numbers_is_told_at_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """Evaluating again, which is the advice for a damaged file, would not help."""

    def broken(members: Members, images_NCHW: Tensor) -> np.ndarray:
        logits_MNK = member_logits(members, images_NCHW)
        logits_MNK[1, [3, 4], 0] = value
        return logits_MNK

    monkeypatch.setattr("counterpoint.evaluation.inference.member_logits", broken)
    group = clean_group(run, parts_of(few_digits(40), run.experiment))
    with pytest.raises(InputError, match=r"no numbers \(NaN\) for 2 of 40 images of 'clean', first for number 3; look"):
        collect_logits(run, [group], device=CPU)
    assert not (run.folder / "logits" / "clean.npy").exists()


def test_the_labels_on_the_split_are_those_of_the_held_out_images(tmp_path: Path) -> None:
    data = replace(few_digits(40), reported="validation")
    experiment = replace(QUICK, train_on="split", num_members=None, policy=MemberPolicy())
    model = build_model(experiment, 10, 1, seed=0).eval()
    held_out = held_out_images(data, experiment).first(30)
    steps = total_steps(experiment, len(data.train) - 449)
    run = finished_run(tmp_path / "run", replace(experiment, steps=steps), data, model)
    collect_logits(run, [clean_group(run, parts_of(data, run.experiment), 30)], device=CPU)
    assert np.array_equal(read_labels(run, "labels", len(held_out)), held_out.labels_N.numpy())
    with torch.no_grad():
        expected_MNK = model(((held_out.images_NCHW / 255 - 0.5) / 0.5)[None]).numpy()
    assert read_logits(run, "clean") == pytest.approx(expected_MNK, rel=1e-4, abs=1e-5)


def test_the_images_are_normalised_as_the_run_says(tmp_path: Path) -> None:
    data, experiment = few_digits(20), replace(QUICK, num_members=None, policy=MemberPolicy())
    model = build_model(experiment, 10, 1, seed=0).eval()
    run = finished_run(tmp_path / "run", experiment, data, model)
    description = run.record["description"] | {"normalisation": {"mean": [0.4], "std": [0.3]}}
    collect_logits(
        replace(run, record={**run.record, "description": description}),
        [clean_group(run, parts_of(data, run.experiment))],
        device=CPU,
    )
    with torch.no_grad():
        expected_MNK = model(((data.test.images_NCHW / 255 - 0.4) / 0.3)[None]).numpy()
    assert read_logits(run, "clean") == pytest.approx(expected_MNK, rel=1e-4, abs=1e-5)


def finished_run(folder: Path, experiment: Any, data: DataSet, model: torch.nn.Module) -> Run:
    """A run that counts as finished with this model."""
    run = describe_run(open_run(folder, experiment, seed=0, options={}, environment={}), parts_of(data, experiment))
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    save_checkpoint(run.folder, Checkpoint(tensors, run.description.total_steps, 0.0))
    return run


def test_the_precision_is_recorded_and_another_one_starts_over(tmp_path: Path) -> None:
    data = noise_data(30, 10, test=5)
    experiment = replace(TINY, num_members=4, epochs=1, batch_size=30, policy=MemberPolicy())
    model = build_model(experiment, 10, 3, seed=0).train()
    with torch.no_grad():
        model(torch.randn(4, 64, 3, 8, 8, generator=torch.Generator().manual_seed(0)))  # for BatchNorm's statistics
    run = finished_run(tmp_path / "run", experiment, data, model)
    (tmp_path / "corrupted").mkdir()
    fog_NHWC = np.random.default_rng(0).integers(0, 256, (25, 8, 8, 3), np.uint8)
    np.save(tmp_path / "corrupted" / "fog.npy", fog_NHWC)
    suite = replace(CORRUPTED, corruptions=("fog",))
    shifted = CorruptedSet(suite, tmp_path / "corrupted", data.test.labels_N, Source("official"))
    groups = [clean_group(run, parts_of(data, run.experiment)), suite_group(shifted)]
    model, _ = load_model(run, CPU)
    fog_NCHW = torch.from_numpy(fog_NHWC[5:10]).permute(0, 3, 1, 2)
    fog = {}
    for precision in get_args(Precision):
        collect_logits(run, groups, device=CPU, precision=precision)
        about = read_about(run)
        assert about.precision == describe_precision(precision, CPU)
        assert about.suites == {"corrupted": Shift(Source("official"), 5, "test", ("fog",), (1, 2, 3, 4, 5))}
        fog[precision] = read_logits(run, "fog-2")
        expected = member_logits(fold_members(model, CPU, precision), fog_NCHW).astype(np.float16)
        assert np.array_equal(fog[precision], expected)
    assert np.array_equal(fog["headline"], fog["strict"])
    assert not np.array_equal(fog["headline"], fog["bf16"])
