"""Runs of every kind, exported from start to end."""

import json
import os
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from counterpoint.augment.standard import to_unit
from counterpoint.data import load
from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.export import export_run
from counterpoint.export import run as exporting
from counterpoint.export.check import TOLERANCE
from counterpoint.export.formats import FORMATS, Exported, Format
from counterpoint.export.network import WholeNetwork, whole_network
from counterpoint.nn import Ensemble
from counterpoint.normalisation import Normalisation
from counterpoint.recalibration.apply import apply
from counterpoint.records.recalibrated import Recalibration
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import Correction, find_correction
from counterpoint.serving.predict import Prediction, Predictor
from tests.export.conftest import ENSEMBLES, MakeTrained
from tests.export.kinds import kinds
from tests.export.photograph import write_photograph
from tests.made_runs import copied, files_of
from tests.small import noise


def slow_probs(run: Run, recalibration: Recalibration, images_NCHW: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The ensemble as it was trained, nothing folded, and the recalibration in float64."""
    model, _ = load_model(run, torch.device("cpu"))
    seen = run.description.normalisation.apply(to_unit(images_NCHW))
    with torch.no_grad():
        logits_MNK = model(seen.expand(model.num_members, *seen.shape)).double().numpy()
    corrected = apply(recalibration, logits_MNK)
    members_MNK = softmax(logits_MNK, axis=2) if corrected.members_MNK is None else corrected.members_MNK
    return corrected.ensemble_NK, members_MNK


def read(path: Path) -> Exported:
    return FORMATS[path.suffix[1:]].read(path.read_bytes())


@pytest.mark.parametrize(
    ("ensemble", "dataset"), [*zip(ENSEMBLES, ("digits", "cifar10", "cifar10", "digits"), strict=True)]
)
def test_onnx_says_what_pytorch_says(
    trained: MakeTrained, ensemble: str, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(ensemble, dataset)
    name, recalibration = list(kinds(run.experiment.members).items())[-1]
    monkeypatch.setattr(exporting, "find_correction", lambda *_: Correction(recalibration, name))
    written = export_run(run, tmp_path / "model.onnx")
    assert written.agreement.difference < TOLERANCE
    assert written.size == (tmp_path / "model.onnx").stat().st_size
    channels = run.description.channels
    for count in (1, 3, 17):
        images_NCHW = noise(count, 32, channels, name=f"{count} more")
        if dataset == "digits":
            images_NCHW = load("digits").test.images_NCHW[100 : 100 + count]
        found = read(written.path)(images_NCHW.permute(0, 2, 3, 1).contiguous().numpy())
        for ours, expected in zip(found, slow_probs(run, recalibration, images_NCHW), strict=True):
            np.testing.assert_allclose(ours, expected, atol=TOLERANCE, rtol=0)


def test_real_cifar_images_are_compared_on(trained: MakeTrained, real_data: Path, tmp_path: Path) -> None:
    written = export_run(trained("per-member BatchNorm", "cifar10"), tmp_path / "model.onnx", real_data)
    assert written.agreement.words == "16 test images of cifar10 and 12 made ones"
    assert written.agreement.difference < TOLERANCE


def test_pt2_says_what_pytorch_says(trained: MakeTrained, tmp_path: Path) -> None:
    run = trained()
    written = export_run(run, tmp_path / "new" / "model.pt2")
    images_NCHW = load("digits").test.images_NCHW[100:105]
    found = read(written.path)(images_NCHW.permute(0, 2, 3, 1).contiguous().numpy())
    for ours, expected in zip(found, slow_probs(run, kinds(2)["none"], images_NCHW), strict=True):
        np.testing.assert_allclose(ours, expected, atol=TOLERANCE, rtol=0)
    assert sorted(path.name for path in written.path.parent.iterdir()) == ["model.pt2", "model.pt2.md"]


def test_two_files_of_one_name_have_a_card_each(trained: MakeTrained, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for ending in ("pt2", "onnx"):
        export_run(trained(), tmp_path / f"model.{ending}")
    for ending in ("pt2", "onnx"):
        assert f"model.{ending}, exported by" in (tmp_path / f"model.{ending}.md").read_text(encoding="utf-8")


def test_an_onnx_file_says_what_it_is_of(trained: MakeTrained, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = trained()
    written = export_run(run, tmp_path / "model.onnx", not_sure_below="75%")
    facts = onnxruntime.InferenceSession(written.path.read_bytes()).get_modelmeta().custom_metadata_map
    assert json.loads(facts.pop("classes")) == list(run.description.classes)
    assert len(facts.pop("weights")) == 16
    assert facts.pop("counterpoint")
    assert facts == {"recalibration": "none", "experiment": "tiny", "sure_from": "0.75"}
    for path in (written.path, written.card):
        for folder in (str(run.folder.parent), str(tmp_path), os.getcwd(), "site-packages"):
            assert folder.encode() not in path.read_bytes()


class Brighter(WholeNetwork):
    """A hundredth wrong."""

    def forward(self, images_NHWC: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        probs_NK, members_MNK = super().forward(images_NHWC)
        return probs_NK + 0.01, members_MNK


@pytest.mark.parametrize("ending", FORMATS)
def test_a_file_that_differs_is_refused_and_leaves_nothing(
    trained: MakeTrained, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(model: Ensemble, normalisation: Normalisation, recalibration: Recalibration) -> WholeNetwork:
        return Brighter(whole_network(model, normalisation, recalibration).members, normalisation, recalibration)

    path = tmp_path / f"model.{ending}"
    path.write_text("an earlier one")
    monkeypatch.setattr(exporting, "whole_network", wrong)
    with pytest.raises(InputError, match=r"was not written: .* differ from PyTorch's by up to 0\.01 on 16 test images"):
        export_run(trained(), path)
    assert files_of(tmp_path) == {path.name: b"an earlier one"}


def test_a_file_that_is_damaged_on_the_way_is_refused(
    trained: MakeTrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compared is what is written, and not the graph that it was made from."""
    kind = FORMATS["pt2"]

    def read_other(content: bytes) -> Exported:
        exported = kind.read(content)
        return lambda images_NHWC: exported(255 - images_NHWC)

    monkeypatch.setattr(exporting, "format_of", lambda _: Format(kind.write, read_other, ()))
    with pytest.raises(InputError, match="was not written"):
        export_run(trained(), tmp_path / "model.pt2")
    assert not files_of(tmp_path)


def test_an_earlier_export_is_replaced_and_somebodys_text_is_not(trained: MakeTrained, tmp_path: Path) -> None:
    path, card = tmp_path / "README.pt2", tmp_path / "README.pt2.md"
    export_run(trained(), path)
    first = files_of(tmp_path)
    export_run(trained(), path)
    assert files_of(tmp_path) == first
    card.write_text("# My project\n\n- counterpoint\n")
    with pytest.raises(
        InputError, match=r"would replace .*README\.pt2\.md, which counterpoint did not write; choose anot"
    ):
        export_run(trained(), path)
    assert card.read_text().startswith("# My project")


def test_an_unfinished_run_is_refused(trained: MakeTrained, tmp_path: Path) -> None:
    run = copied(trained(), tmp_path / "run")
    for checkpoint in (run.folder / "checkpoints").iterdir():
        checkpoint.unlink()
    with pytest.raises(InputError, match="is not finished: 0 of 12 steps are done; continue it with"):
        export_run(run, tmp_path / "model.onnx")
    assert not list(tmp_path.glob("model*"))


def test_a_function_of_the_users_must_be_named(trained: MakeTrained, tmp_path: Path) -> None:
    run = trained()
    somebodys = replace(run, experiment=replace(run.experiment, model="mymodule:make_model"))
    with pytest.raises(InputError, match="its network is made by mymodule:make_model, but a run's files alone never"):
        export_run(somebodys, tmp_path / "model.onnx")
    with pytest.raises(InputError, match=r"the model of .* is mymodule:make_model, not resnet"):
        export_run(somebodys, tmp_path / "model.onnx", trusted_model="resnet")


def test_a_correction_for_other_weights_is_refused(
    trained: MakeTrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    correction = replace(find_correction(trained().folder), weights="others")
    monkeypatch.setattr(exporting, "find_correction", lambda *_: correction)
    with pytest.raises(InputError, match="was recalibrated with other weights than it has now"):
        export_run(trained(), tmp_path / "model.onnx")


def test_a_run_of_an_earlier_version_says_how_it_gets_a_description(trained: MakeTrained, tmp_path: Path) -> None:
    run = copied(trained(), tmp_path / "run")
    record = {key: value for key, value in run.record.items() if key != "description"}
    (run.folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="does not say yet what its network was trained on"):
        export_run(load_run(run.folder), tmp_path / "model.onnx")


@pytest.mark.parametrize("dataset", ["digits", "cifar10"])
@pytest.mark.parametrize("ending", FORMATS)
def test_the_lines_in_the_card_say_what_predict_says(
    trained: MakeTrained,
    ending: str,
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = trained("deep ensemble", dataset)
    write_photograph(tmp_path / "photo.jpg", run.description.channels)
    card = export_run(run, tmp_path / f"model.{ending}").card.read_text(encoding="utf-8")
    (lines,) = re.findall(r"^For example:\n\n((?:    .*\n)+)", card, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(compile(textwrap.dedent(lines), "model.md", "exec"), found)
    assert (tuple(found["probs"].shape), tuple(found["members"].shape)) == ((1, 10), (2, 1, 10))
    name, confidence = capsys.readouterr().out.split()
    (answer,) = Predictor(run, find_correction(run.folder), device="cpu").predict([tmp_path / "photo.jpg"])
    assert isinstance(answer, Prediction)
    assert name == answer.ensemble.name
    assert float(confidence) == pytest.approx(answer.ensemble.confidence, abs=1e-5)
