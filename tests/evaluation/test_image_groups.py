"""The groups of images that a run is evaluated on: which images, which files, which labels."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.data import parts_of
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.evaluation.image_groups import (
    clean_group,
    images_to_corrupt,
    outside_group,
    suite_group,
    validation_group,
)
from counterpoint.evaluation.logits import cell_file, labels_file
from counterpoint.evaluation.suites import CORRUPTED, SUITES, VALIDATION_EXTRA, corrupted_set
from counterpoint.runs.folder import Run
from tests.small import QUICK, few_digits, held_out_images

ON_ALL = Run(Path("run"), QUICK, {"seed": 0})
ON_SPLIT = Run(Path("run"), replace(QUICK, train_on="split"), {"seed": 0})


def test_a_run_on_everything_is_evaluated_on_the_test_images() -> None:
    data = few_digits(40)
    group = clean_group(ON_ALL, parts_of(data, QUICK))
    assert group.about == {"dataset": "digits", "part": "test", "images": 40}
    assert torch.equal(group.files["clean"]()[:], data.test.images_NCHW)
    assert group.labels is not None
    assert torch.equal(group.labels[1], data.test.labels_N)


def test_a_run_on_cifars_split_is_evaluated_on_its_held_out_images() -> None:
    data = replace(few_digits(40), reported="validation")
    held_out = held_out_images(data, ON_SPLIT.experiment)
    group = clean_group(ON_SPLIT, parts_of(data, ON_SPLIT.experiment))
    assert group.about == {"dataset": "digits", "part": "validation", "images": 449}
    assert torch.equal(group.files["clean"]()[:], held_out.images_NCHW)
    assert group.labels is not None
    assert torch.equal(group.labels[1], held_out.labels_N)
    assert validation_group(parts_of(data, ON_SPLIT.experiment)) is None


def test_a_run_on_the_digits_split_is_evaluated_on_the_test_images_and_keeps_its_held_out_ones_apart() -> None:
    data = few_digits(40)
    parts = parts_of(data, ON_SPLIT.experiment)
    clean, validation = clean_group(ON_SPLIT, parts), validation_group(parts)
    assert clean.about == {"dataset": "digits", "part": "test", "images": 40}
    assert validation is not None
    assert validation.about == {"dataset": "digits", "part": "validation", "images": 449}
    assert torch.equal(validation.files["validation"]()[:], held_out_images(data, ON_SPLIT.experiment).images_NCHW)


@pytest.mark.parametrize(("asked", "used"), [(None, 40), (15, 15), (100, 40)])
def test_a_group_says_how_many_images_it_has(root: Path, asked: int | None, used: int) -> None:
    data = few_digits(40)
    for group in (
        clean_group(ON_ALL, parts_of(data, QUICK), asked),
        outside_group(data, asked),
        suite_group(corrupted_set(data, root), asked),
    ):
        assert (group.about["images"], group.largest) == (used, used)
        assert {len(read()) for read in list(group.files.values())[:3]} == {used}
        assert group.labels is None or len(group.labels[1]) == used


def test_images_of_another_data_set_have_no_labels() -> None:
    data = few_digits(40, "cifar100")
    group = outside_group(data, 7)
    assert group.labels is None
    assert group.about == {"dataset": "cifar100", "images": 7}
    assert torch.equal(group.files["ood"]()[:], data.test.images_NCHW[:7])


def test_a_suite_has_a_file_of_each_cell(root: Path) -> None:
    corrupted = corrupted_set(few_digits(40), root)
    group = suite_group(corrupted, 10)
    assert list(group.files) == [f"{name}-{severity}" for name, severity in CORRUPTED.cells]
    assert group.name == "corrupted"
    assert group.about["corruptions"] == list(CORRUPTED.corruptions)
    assert group.about["source"]["kind"] == "regenerated"
    fog_NCHW = group.files["fog-3"]()[:].numpy()
    assert np.array_equal(fog_NCHW.transpose(0, 2, 3, 1), corrupted.read("fog", 3)[:10])


def test_no_two_suites_share_a_file() -> None:
    files = [
        file
        for name, suite in SUITES.items()
        for file in (labels_file(name), *(cell_file(name, *cell) for cell in suite.cells))
    ]
    assert len(files) == len(set(files))
    assert not {"clean", "labels", "ood"} & set(files)


def test_the_papers_cells_lie_beside_the_clean_logits_and_others_in_a_folder() -> None:
    assert cell_file("corrupted", "fog", 3) == "fog-3"
    assert labels_file("corrupted") == "cell-labels"
    assert cell_file("validation-extra", "spatter", 2) == "validation-extra/spatter-2"
    assert labels_file("validation-extra") == "validation-extra/labels"


def test_the_test_suite_is_made_from_the_test_images() -> None:
    data = few_digits(40)
    for run in (ON_ALL, ON_SPLIT):
        assert images_to_corrupt(run, parts_of(data, run.experiment), CORRUPTED) is data.test


def test_the_validation_suite_is_made_from_held_out_images_and_refused_without_them(split_data: DataSet) -> None:
    images = images_to_corrupt(ON_SPLIT, parts_of(split_data, ON_SPLIT.experiment), VALIDATION_EXTRA)
    held_out = held_out_images(split_data, ON_SPLIT.experiment)
    assert len(images) == 30
    assert torch.equal(images.images_NCHW, held_out.images_NCHW)
    with pytest.raises(
        InputError, match=r"validation-extra needs images that were held out, and run was .* train_on=split"
    ):
        images_to_corrupt(ON_ALL, parts_of(split_data, QUICK), VALIDATION_EXTRA)
