"""Both formats hold the same function, for batches of any size, and name no folder of this machine."""

import builtins
import io
import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor, nn

import counterpoint
from counterpoint.augment.standard import to_unit
from counterpoint.errors import InputError
from counterpoint.export import onnx_file
from counterpoint.export.formats import FORMATS, format_of
from counterpoint.export.network import WholeNetwork, trace
from counterpoint.normalisation import Normalisation
from counterpoint.recalibration.apply import apply
from counterpoint.recalibration.choose import NONE
from counterpoint.records.recalibrated import Recalibration
from tests.export.kinds import KINDS
from tests.small import noise

FACTS = {"classes": json.dumps(["ant", "蜂", 'b"ee']), "recalibration": "none"}
COLOURS = Normalisation((0.5, 0.4, 0.3), (0.2, 0.25, 0.3))


class Member(nn.Module):
    """Logits that differ much between images and members."""

    def __init__(self, number: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(number)
        self.conv = nn.Conv2d(3, 4, 3, stride=2)
        self.linear = nn.Linear(4 * 9, 5)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) / 2

    def forward(self, images_NCHW: Tensor) -> Tensor:
        logits_NK: Tensor = self.linear(self.conv(images_NCHW).relu().flatten(1))
        return logits_NK


def small_network(recalibration: Recalibration = NONE) -> WholeNetwork:
    members = nn.ModuleList(Member(number) for number in range(3)).requires_grad_(False)
    return WholeNetwork(members, COLOURS, recalibration).eval()


def content_of(kind: str, network: WholeNetwork, facts: Mapping[str, str] = FACTS) -> bytes:
    return FORMATS[kind].write(trace(network, noise(2).permute(0, 2, 3, 1), "it"), facts)


def slow_probs(network: WholeNetwork, images_NCHW: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """One member after the other, then `recalibration.apply` in float64."""
    mean, std = (torch.tensor(values)[:, None, None] for values in (COLOURS.mean, COLOURS.std))
    seen = (to_unit(images_NCHW) - mean) / std
    logits_MNK = np.stack([member(seen).double().numpy() for member in network.members])
    corrected = apply(network.recalibration, logits_MNK)
    members_MNK = softmax(logits_MNK, axis=2) if corrected.members_MNK is None else corrected.members_MNK
    return corrected.ensemble_NK, members_MNK


@pytest.mark.parametrize(
    ("kind", "recalibration"), [*(("onnx", name) for name in KINDS), ("pt2", "none"), ("pt2", "by both")]
)
def test_a_file_says_what_predict_says_for_batches_of_any_size(kind: str, recalibration: str) -> None:
    network = small_network(KINDS[recalibration])
    exported = FORMATS[kind].read(content_of(kind, network))
    for count in (1, 3, 17):
        images_NCHW = noise(count, name=f"batch of {count}")
        found = exported(images_NCHW.permute(0, 2, 3, 1).contiguous().numpy())
        for ours, expected in zip(found, slow_probs(network, images_NCHW), strict=True):
            assert ours.dtype == np.float32
            np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_names_no_folder_of_this_machine(kind: str) -> None:
    content = content_of(kind, small_network(KINDS["by both"]))
    assert b"classes" in content  # neither is compressed, so that one would be found
    for path in (
        Path(counterpoint.__file__).parents[2],
        Path(__file__).parent,
        Path(torch.__file__).parent,
        Path.home(),
    ):
        assert str(path).encode() not in content
    for word in (b"site-packages", b"File ", b"test_formats.py", b"/usr/", b"/tmp/", b"/home/", b"stack_trace"):
        assert word not in content


def test_an_onnx_file_says_what_it_is() -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(content_of("onnx", small_network()))
    assert {one.key: one.value for one in model.metadata_props} == FACTS
    values = {
        value.name: (value.type.tensor_type.elem_type, [one.dim_param or one.dim_value for one in shape_of(value)])
        for value in (*model.graph.input, *model.graph.output)
    }
    kinds = onnx.TensorProto
    assert values == {
        "images": (kinds.UINT8, ["N", 8, 8, 3]),
        "probabilities": (kinds.FLOAT, ["N", 5]),
        "members": (kinds.FLOAT, [3, "N", 5]),
    }
    assert {opset.domain for opset in model.opset_import} == {""}, "no operators of somebody's own"


def shape_of(value: Any) -> Any:
    return value.type.tensor_type.shape.dim


def test_a_pt2_file_holds_the_facts_and_no_pickle() -> None:
    with zipfile.ZipFile(io.BytesIO(content_of("pt2", small_network()))) as archive:
        names = {name.partition("/")[2]: name for name in archive.namelist()}
        assert json.loads(archive.read(names["extra/counterpoint.json"])) == FACTS
        assert archive.getinfo(names["data/sample_inputs/model.pt"]).file_size == 0
        weights = json.loads(archive.read(names["data/weights/model_weights_config.json"]))["config"]
        assert len(weights) == 12
        assert not any(weight["use_pickle"] for weight in weights.values())
        assert json.loads(archive.read(names["data/constants/model_constants_config.json"]))["config"] == {}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_network_gives_the_same_bytes(kind: str) -> None:
    first, second = (content_of(kind, small_network(KINDS["after"])) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["model", "model.pb", "model.onnx.zip", "onnx"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is no name for an exported model; give a file that ends in \.onnx or \.pt2"):
        format_of(tmp_path / name)
    assert format_of(tmp_path / "Model.PT2") is FORMATS["pt2"]


@pytest.mark.parametrize("package", FORMATS["onnx"].packages)
def test_a_missing_package_is_named_with_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **by_name: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return imported(name, *arguments, **by_name)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("counterpoint.export.onnx_file.import_module", without)
    monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(
        InputError, match=rf"needs {package}, which is not installed; pip install 'counterpoint\[export"
    ):
        format_of(Path("model.onnx"))
    assert format_of(Path("model.pt2")) is FORMATS["pt2"]


def test_weights_that_one_file_cannot_hold_are_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_file, "_MOST_BYTES", 1000)
    monkeypatch.setattr(torch.onnx, "export", None)
    with pytest.raises(InputError, match=r"one ONNX file holds at most .* GB; write a file that ends in \.pt2"):
        content_of("onnx", small_network())


class OfTheBatch(Member):
    """What it computes depends on how many images there are."""

    def forward(self, images_NCHW: Tensor) -> Tensor:
        return super().forward(images_NCHW) * (1.0 if images_NCHW.shape[0] > 5 else 2.0)


class OfThePixels(Member):
    def forward(self, images_NCHW: Tensor) -> Tensor:
        return super().forward(images_NCHW) * (1.0 if images_NCHW.mean() > 0 else 2.0)


@pytest.mark.parametrize("member", [OfTheBatch, OfThePixels])
def test_a_network_without_one_graph_is_refused_by_name(member: type[Member]) -> None:
    network = WholeNetwork(nn.ModuleList([member(0)]), COLOURS, NONE)
    with pytest.raises(InputError, match=r"mymodule:make cannot be exported: torch\.export finds no graph of it"):
        trace(network, noise(2).permute(0, 2, 3, 1), "mymodule:make")


class NotInOnnx(Member):
    def forward(self, images_NCHW: Tensor) -> Tensor:
        return torch.special.bessel_j0(super().forward(images_NCHW))


def test_an_operation_that_onnx_does_not_have_leaves_the_other_format() -> None:
    network = WholeNetwork(nn.ModuleList([NotInOnnx(0)]), COLOURS, NONE)
    with pytest.raises(InputError, match=r"operations that ONNX does not have .*; write a file that ends in \.pt2"):
        content_of("onnx", network)
    assert content_of("pt2", network)
